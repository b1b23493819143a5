/** Where an attempt goes, of a call that has choices: decided when it starts, by what is known of the gates. */
import type { FallbackCause } from "../../call.ts";
import type { Choice, ChosenFrom, Position, Target } from "../leases/shard.ts";
import { accepts } from "./cause.ts";

/** What a choice is made by. */
export type Gates = {
  /** True if one more attempt at the model may start there now. */
  mayStart: (gate: string, model: string) => boolean;
  /** True while its key is known not to work, but for one attempt now and then that finds out whether it does again. */
  isStopped: (gate: string) => boolean;
  /** True while it takes no attempts at the model because its provider rejects them for a limit. */
  isLimited: (gate: string, model: string) => boolean;
  inFlight: (gate: string) => number;
};

export type Chosen = { target: Target; chosenFrom?: ChosenFrom };

/** The position of a call that has not been tried. */
export const FRESH: Position = { from: 0, cause: null, tried: [], spent: 0 };

/** The target of a call's next attempt; null = none may start now. */
export function choose(target: Target, position: Position, gates: Gates): Chosen | null {
  const { choices, route } = target;
  if (choices === undefined) return gates.mayStart(target.gate, target.model) ? { target } : null;
  let { cause } = position;
  let stopped: number | null = null;
  let isLimited = false;
  for (let at = position.from; at < choices.length; at++) {
    const choice = choices[at];
    if (choice === undefined || isSpent(position, at)) continue;
    if (at > position.from && !accepts(choice, cause)) continue;
    const found = roomiest(choice, gates, (gate) => !gates.isStopped(gate));
    if (found !== null) return { target: found, chosenFrom: { choices, route, at, cause, position } };
    const held = heldBy(choice, gates);
    // It waits for its turn here: only a limit or a stop sends a call on.
    if (held === null) return null;
    if (held === "stop") stopped ??= at;
    else isLimited = true;
    cause = held;
  }
  // A limit passes; a stop need not.
  if (stopped === null || isLimited) return null;
  // Nothing else takes the call, so it fails as it would with a single key.
  const found = roomiest(choices[stopped], gates, () => true);
  return found === null
    ? null
    : { target: found, chosenFrom: { choices, route, at: stopped, cause: position.cause, position } };
}

/** True if a choice takes no more attempts of the call: it has had all, or cannot take the call's body. */
export function isSpent({ spent }: Pick<Position, "spent">, at: number): boolean {
  return (spent & (1 << at)) !== 0;
}

/** The key with most room: fewest attempts in flight, the first listed of equals. */
function roomiest(choice: Choice | undefined, gates: Gates, isUsable: (gate: string) => boolean): Target | null {
  let best: Target | null = null;
  for (const target of choice?.targets ?? []) {
    if (!isUsable(target.gate) || !gates.mayStart(target.gate, target.model)) continue;
    if (best === null || gates.inFlight(target.gate) < gates.inFlight(best.gate)) best = target;
  }
  return best;
}

/** Why none of a choice's keys takes an attempt; null = one does that has no room for the moment. */
function heldBy({ targets }: Choice, gates: Gates): FallbackCause | null {
  const working = targets.filter(({ gate }) => !gates.isStopped(gate));
  if (working.length === 0) return "stop";
  return working.every(({ gate, model }) => gates.isLimited(gate, model)) ? "rate_limited" : null;
}
