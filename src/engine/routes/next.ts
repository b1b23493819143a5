/** What follows a failed attempt of a call that has choices. */
import type { ChosenFrom, Position } from "../shard.ts";
import type { Cause } from "./cause.ts";
import type { Gates } from "./choose.ts";

/** The next attempt of a call. */
export type Next = { delayMs: number; position: Position };

/** The number of an attempt at its choice, from 1. Attempts that their key's stop ended do not count. */
export function attemptAt({ at, position }: ChosenFrom): number {
  return (position.tried[at] ?? 0) + 1;
}

/**
 * The next attempt, or null if there is none.
 * @param sameDelayMs The delay of a retry with the same key; null = that would have no retry.
 */
export function nextAttempt(from: ChosenFrom, cause: Cause, sameDelayMs: number | null, gates: Gates): Next | null {
  const { choices, at, position } = from;
  const keys = choices[at]?.targets ?? [];
  // Each stop takes a key out, so a call meets no more of them than there are keys.
  if (cause === "stop") return keys.some(({ gate }) => !gates.isStopped(gate)) ? { delayMs: 0, position } : null;
  if (sameDelayMs === null) return null;
  const tried = choices.map((_, index) => (position.tried[index] ?? 0) + (index === at ? 1 : 0));
  const isElsewhere =
    cause === "rate_limited" && keys.some(({ gate }) => !gates.isStopped(gate) && gates.mayStart(gate));
  return { delayMs: isElsewhere ? 0 : sameDelayMs, position: { tried } };
}
