/** What chat and text completions have in common: choices whose pieces take turns, and usage in a chunk of its own. */
import { isRecord } from "./record.ts";
import type { Job } from "./simulated-protocol.ts";
import { dataFrame, type Frame } from "./simulated-stream.ts";
import type { Completion } from "./simulated-tokens.ts";

/** A piece of each choice, then the next piece of each: as a provider that writes them side by side sends them. */
export function* inTurns(
  completions: readonly Completion[],
  split: (text: string) => readonly string[],
): Generator<{ index: number; piece: string }> {
  const pieces = completions.map(({ text }) => split(text));
  const rounds = pieces.reduce((most, { length }) => Math.max(most, length), 0);
  for (let round = 0; round < rounds; round++) {
    for (const [index, { [round]: piece }] of pieces.entries()) if (piece !== undefined) yield { index, piece };
  }
}

export function finishReason({ isCut }: Completion): "length" | "stop" {
  return isCut ? "length" : "stop";
}

export function completionUsage({ asked, completionTokens }: Job) {
  return {
    prompt_tokens: asked.promptTokens,
    completion_tokens: completionTokens,
    total_tokens: asked.promptTokens + completionTokens,
  };
}

/** Fields of every chunk but the one with the usage: a client that asked for usage finds it null until then. */
export function usageToCome(job: Job): { usage?: null } {
  return wantsUsage(job) ? { usage: null } : {};
}

/** The chunk without choices that carries the usage, for a client that asked for it. */
export function* usageFrames(job: Job, head: Record<string, unknown>): Generator<Frame> {
  if (wantsUsage(job)) yield dataFrame("closing", { ...head, choices: [], usage: completionUsage(job) });
}

function wantsUsage({ request }: Job): boolean {
  const options = request["stream_options"];
  return isRecord(options) && options["include_usage"] === true;
}
