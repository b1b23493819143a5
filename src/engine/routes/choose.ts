/** Where an attempt goes, of a call that has choices: decided when it starts, by what is known of the gates. */
import type { ChosenFrom, Position, Target } from "../shard.ts";

/** What a choice is made by. */
export type Gates = {
  /** True if one more attempt may start there now. */
  mayStart: (gate: string) => boolean;
  /** True while its key is known not to work, but for one attempt now and then that finds out whether it does again. */
  isStopped: (gate: string) => boolean;
  inFlight: (gate: string) => number;
};

export type Chosen = { target: Target; chosenFrom?: ChosenFrom };

/** The position of a call that has not been tried. */
export const FRESH: Position = { tried: [] };

/** The target of a call's next attempt; null = none may start now. */
export function choose(target: Target, position: Position, gates: Gates): Chosen | null {
  if (target.choices === undefined) return gates.mayStart(target.gate) ? { target } : null;
  for (const [at, choice] of target.choices.entries()) {
    const best = roomiest(choice.targets, gates);
    if (best !== null) return { target: best, chosenFrom: { choices: target.choices, at, position } };
  }
  return null;
}

/**
 * The key with most room: fewest attempts in flight, the first listed of equals. A stopped key is left out, unless every
 * key is stopped: then the call fails as it would with a single key.
 */
function roomiest(targets: readonly Target[], gates: Gates): Target | null {
  const working = targets.filter(({ gate }) => !gates.isStopped(gate));
  let best: Target | null = null;
  for (const target of working.length > 0 ? working : targets) {
    if (!gates.mayStart(target.gate)) continue;
    if (best === null || gates.inFlight(target.gate) < gates.inFlight(best.gate)) best = target;
  }
  return best;
}
