/**
 * The facts with which a task's calls are quoted before anything ran: its prompt with outputs of assumed lengths in it. The
 * worst case follows from the completion caps of its dependencies, the likely one from the length of a likely answer.
 */
import type { CallFacts } from "../../call.ts";
import { COMPLETION_TOKENS_DEFAULT, LIKELY_BYTES_PER_TOKEN, LIKELY_COMPLETION_TOKENS } from "../../limits.ts";
import type { CompiledGraph, CompiledTask } from "./types.ts";

/** A character of JavaScript's texts takes at most three bytes of UTF-8. */
const BYTES_PER_CHAR_MAX = 3;

/** The facts of one call of each task: those of its worst case, and those of its likely one. */
export type QuoteFacts = { worst: CallFacts; likely: CallFacts };

export function quoteFactsOf(graph: CompiledGraph, facts: readonly CallFacts[]): QuoteFacts[] {
  return graph.tasks.map((task, position) => {
    const own = facts[position];
    if (own === undefined) throw new Error(`task ${task.id} has no facts`);
    const capOf = (dependency: number): number => facts[dependency]?.maxTokens ?? COMPLETION_TOKENS_DEFAULT;
    const insertedBytes = (tokensOf: (dependency: number) => number): number => {
      const bytesOf = (dependency: number): number => limited(task, tokensOf(dependency) * LIKELY_BYTES_PER_TOKEN);
      const outputs = (task.inserted ?? []).reduce(
        (bytes, [dependency, factor]) => bytes + factor * slotsOf(graph, dependency) * bytesOf(dependency),
        0,
      );
      return outputs + (task.itemFactor ?? 0) * (task.foreach === undefined ? 0 : bytesOf(task.foreach.source));
    };
    const likelyTokens = (dependency: number): number => Math.min(capOf(dependency), LIKELY_COMPLETION_TOKENS);
    return { worst: longer(own, insertedBytes(capOf)), likely: longer(own, insertedBytes(likelyTokens)) };
  });
}

function slotsOf(graph: CompiledGraph, task: number): number {
  return graph.tasks[task]?.slots ?? 1;
}

/** The bytes of one inserted output under the limit of the task. */
function limited({ contextLimitChars }: CompiledTask, bytes: number): number {
  return contextLimitChars === undefined ? bytes : Math.min(bytes, contextLimitChars * BYTES_PER_CHAR_MAX);
}

function longer(facts: CallFacts, bytes: number): CallFacts {
  if (bytes === 0) return facts;
  const { textTokensMax, ...others } = facts;
  const grown: CallFacts = { ...others, promptBytes: facts.promptBytes + bytes };
  return textTokensMax === undefined ? grown : { ...grown, textTokensMax: textTokensMax + bytes };
}
