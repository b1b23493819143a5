/** What follows a failed attempt of a call that has choices. */
import type { FallbackCause, FailureClass } from "../../call.ts";
import { CHOICE_ATTEMPTS_MAX } from "../../limits.ts";
import { retryDelayMs } from "./retry.ts";
import type { Choice, ChosenFrom, Position, Target } from "../leases/shard.ts";
import { accepts } from "./cause.ts";
import { isSpent, type Gates } from "./choose.ts";

/** The next attempt of a call. */
export type Next = { delayMs: number; position: Position };

/** The attempt that failed, and the rules that hold for the next one. */
export type FailedChoice = {
  from: ChosenFrom;
  class: FailureClass;
  /** null = the same call would fail elsewhere, too. */
  cause: FallbackCause | null;
  /** True if the choice cannot express the call, so that nothing was sent. */
  isUnsendable: boolean;
  retryAfterMs: number | null;
  /** Attempts of the call so far, wherever they went. */
  attempts: number;
  attemptsMaxAt: (target: Target) => number;
};

/**
 * The next attempt, or null if there is none: at another key of the same choice if this one is stopped or limited, else at
 * the next choice that takes calls that failed for this cause, else where the call was before, as any call is retried.
 */
export function nextAttempt(failed: FailedChoice, gates: Gates, random: number): Next | null {
  const { from, cause, isUnsendable } = failed;
  const { choices, at, position } = from;
  if (failed.attempts >= CHOICE_ATTEMPTS_MAX) return null;
  const keys = choices[at]?.targets ?? [];
  const counts = cause !== "stop";
  const tried = choices.map((_, index) => (position.tried[index] ?? 0) + (index === at && counts ? 1 : 0));
  const spent = spentBy(failed, tried);
  const here = { ...position, tried, spent };
  const hasOtherKey = keys.some(
    ({ gate, model }) => !gates.isStopped(gate) && (cause === "stop" || gates.mayStart(gate, model)),
  );
  const isOfKey = cause === "stop" || cause === "rate_limited";
  if (isOfKey && hasOtherKey && !isSpent(here, at)) return { delayMs: 0, position: here };
  const why = isUnsendable ? from.cause : cause;
  if (why === null && !isUnsendable) return null;
  // A call that goes from stop to stop makes no attempts that count.
  const isLeft = (choice: Choice, index: number): boolean =>
    !isSpent(here, index) && (cause !== "stop" || choice.targets.some(({ gate }) => !gates.isStopped(gate)));
  const later = choices.findIndex((choice, index) => index > at && isLeft(choice, index) && accepts(choice, why));
  if (later !== -1) return { delayMs: 0, position: { from: later, cause: why ?? "upstream_error", tried, spent } };
  const first = choices.findIndex(
    (choice, index) => isLeft(choice, index) && (index === 0 || index === at || (why !== null && accepts(choice, why))),
  );
  if (first === -1) return null;
  const delayMs = delayAt(first, failed, { tried, random });
  return delayMs === null
    ? null
    : { delayMs, position: { from: first, cause: first === 0 ? null : why, tried, spent } };
}

/** The choices that take no more attempts, as bits. */
function spentBy(
  { from: { choices, at, position }, cause, isUnsendable, attemptsMaxAt }: FailedChoice,
  tried: readonly number[],
) {
  let { spent } = position;
  for (const [index, { targets }] of choices.entries()) {
    const [target] = targets;
    const isUsedUp = target !== undefined && (tried[index] ?? 0) >= attemptsMaxAt(target);
    const isNever = index === at && (isUnsendable || cause === "context_length");
    if (isUsedUp || isNever) spent |= 1 << index;
  }
  return spent;
}

/** The delay before a call comes back to a choice; null = its failure is final. */
function delayAt(
  choice: number,
  { from: { at }, class: failureClass, isUnsendable, retryAfterMs }: FailedChoice,
  { tried, random }: { tried: readonly number[]; random: number },
): number | null {
  if (isUnsendable) return 0;
  const attempt = Math.max(1, tried[choice] ?? 0);
  // Another choice has neither refused the call nor asked for the wait. That it has attempts left is known.
  const failed =
    choice === at ? { class: failureClass, retryAfterMs } : { class: "transient" as const, retryAfterMs: null };
  return retryDelayMs({ ...failed, attempt, attemptsMax: Infinity }, random);
}
