/** The parts of an answer in its replies: written as they are kept, so that numbers and the order of keys stay the upstream's. */
import type { AnswerParts } from "../../call.ts";
import type { SlotView } from "../../objects/methods/groups.ts";

/** An object as JSON text, with `message` and `logprobs` as its last members if the answer has them. */
export function withParts(fields: object, parts: AnswerParts | undefined): string {
  const json = JSON.stringify(fields);
  if (parts === undefined) return json;
  const members = membersOf(parts);
  return json === "{}" ? `{${members.slice(1)}}` : `${json.slice(0, -1)}${members}}`;
}

/** The parts as members that follow others: each after a comma. */
export function membersOf({ message, logprobs }: AnswerParts): string {
  const named = message === undefined ? "" : `,"message":${message}`;
  return logprobs === undefined ? named : `${named},"logprobs":${logprobs}`;
}

/** The parts of a slot's answer; undefined if it has none, or has not completed. */
export function partsOfSlot({ state, parts }: Pick<SlotView, "state" | "parts">): AnswerParts | undefined {
  return state === "completed" ? parts : undefined;
}
