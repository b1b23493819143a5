/** Calls that cost the same: most calls of a large batch are plain texts of a few sizes. */
import type { SlotFacts } from "./slot.ts";

/**
 * Whether a call costs what another one costs, and waits where it waits, without a look at all of it: copies are one object, and
 * plain calls differ in a few fields.
 */
export function isAlike(known: SlotFacts, facts: SlotFacts): boolean {
  if (known === facts) return true;
  for (const name of PLAIN) if (known[name] !== facts[name]) return false;
  return Object.keys(known).length === PLAIN.length && Object.keys(facts).length === PLAIN.length;
}

/** What the facts of a plain call are. Those of another one have more. */
const PLAIN = [
  "promptBytes",
  "messageCount",
  "modelIndex",
  "model",
  "maxTokens",
  "priority",
  "timeoutMs",
  "mediaParts",
] as const satisfies readonly (keyof SlotFacts)[];
