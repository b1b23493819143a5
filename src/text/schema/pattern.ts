/** A `pattern` of a schema: matching it counts among the steps of the check. */
import { compilePattern } from "../pattern/pattern.ts";
import type { CountedPattern } from "./types.ts";

/** A compiled pattern with the number of its states, or what is wrong with it. */
export type CompiledPattern = { ok: true; matches: CountedPattern; states: number } | { ok: false; problem: string };

/** Compiles a regular expression. */
export function countedPattern(source: string): CompiledPattern {
  const compiled = compilePattern(source);
  if (!compiled.ok) return { ok: false, problem: compiled.message };
  const { pattern } = compiled;
  const matches: CountedPattern = (text, steps) => {
    // A match begins with a note for every state, whatever the text is.
    steps.spend(pattern.states);
    const found = pattern.match(text, steps.left);
    steps.spend(found.steps);
    return found.isFound === true;
  };
  return { ok: true, matches, states: pattern.states };
}
