/** Slots whose calls cost the same: most calls of a large batch are plain texts of a few sizes. */
import { areAlike } from "../../call.ts";
import type { SlotFacts } from "./slot.ts";

/**
 * Whether a slot's call costs what another one costs, and waits where it waits, without a look at all of it: copies are one object, and
 * plain calls differ in a few fields.
 */
export function isAlike(known: SlotFacts, facts: SlotFacts): boolean {
  return known === facts || (known.modelIndex === facts.modelIndex && areAlike(known, facts, 1));
}
