/**
 * What the model and the tools have seen of conversations, and what of it must not have happened: a turn that had ended and was sent
 * again, a call of a tool that was made twice.
 */
import { z } from "zod";
import type { ByteUpstream } from "../../test/support/byte-upstream.ts";
import { costUsdOf, heard } from "../../test/support/tool-model.ts";
import type { ToolServer } from "../../test/support/tool-server.ts";

/** Turns of a conversation; all but the last ask for two words. */
export const TURNS = 5;
const WORDS = 2 * (TURNS - 1);

/** The words of a slot: each word of all slots is another one, so it says which call of which slot it is. */
export const wordsOf = (slot: number): string[] =>
  Array.from({ length: WORDS }, (_, at) => `s${slot}${"x".repeat(at)}`);
export const promptOf = (slot: number): string => `How long are ${wordsOf(slot).join(", ")}?`;
/** The answer, if no result was lost. */
export const lettersOf = (slot: number): number => wordsOf(slot).join("").length;

const sent = z.object({ input: z.object({ word: z.string() }) });
const toolWords = (tools: ToolServer): string[] =>
  tools.requests.map(({ body }) => sent.parse(JSON.parse(body)).input.word);

/** USD of all requests that have reached the model. */
export const billedUsd = (upstream: ByteUpstream): number =>
  upstream.calls.reduce((sum, { body }) => sum + costUsdOf(body.toString("utf8")), 0);

/** Calls of tools beyond one for each that a model has asked for. */
export function repeatedTools(tools: ToolServer): number {
  const words = toolWords(tools);
  return words.length - new Set(words).size;
}

/** Requests to the model by turn, and those of turns that had ended: something that follows from their answer came before them. */
export function turnsSent(upstream: ByteUpstream): {
  sent: number;
  turns: number;
  repeated: number;
  afterTheirEnd: number;
} {
  const seen = new Map<string, number>();
  const latest = new Map<string, number>();
  let afterTheirEnd = 0;
  for (const { body } of upstream.calls) {
    const { user, calls } = heard(body.toString("utf8"));
    const turn = calls.length;
    const key = `${user} ${turn}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    if (turn < (latest.get(user) ?? 0)) afterTheirEnd += 1;
    latest.set(user, Math.max(turn, latest.get(user) ?? 0));
  }
  const all = upstream.calls.length;
  return { sent: all, turns: seen.size, repeated: all - seen.size, afterTheirEnd };
}
