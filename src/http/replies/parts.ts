/** The parts of an answer in its replies: written as they are kept, so that numbers and the order of keys stay the upstream's. */
import type { AnswerParts } from "../../call.ts";
import type { SlotView } from "../../objects/methods/groups.ts";

/** An object as JSON text, with `message`, `logprobs` and `transcript` as its last members if the answer has them. */
export function withParts(fields: object, parts: AnswerParts | undefined): string {
  const json = JSON.stringify(fields);
  if (parts === undefined) return json;
  const members = membersOf(parts);
  return json === "{}" ? `{${members.slice(1)}}` : `${json.slice(0, -1)}${members}}`;
}

const PARTS = ["message", "logprobs", "transcript"] as const satisfies readonly (keyof AnswerParts)[];

/** The parts as members that follow others: each after a comma. */
export function membersOf(parts: AnswerParts): string {
  const members = PARTS.map((name) => (parts[name] === undefined ? "" : `,"${name}":${parts[name]}`));
  return members.join("");
}

/** The parts of a slot's answer; undefined if it has none, or has not completed. */
export function partsOfSlot({ state, parts }: Pick<SlotView, "state" | "parts">): AnswerParts | undefined {
  return state === "completed" ? parts : undefined;
}
