/** A single call: queued in the run, executed by the Worker that holds its client's connection. */
import type { CallFacts } from "../../call.ts";
import type { Position, Target } from "./shard.ts";
import type { TimesOfCall } from "../measures/totals.ts";
import type { WindowGroup, WindowPosition } from "./concurrency-window.ts";

/**
 * What a call of `/query` waits for rather than fail: with a deadline for its gate. Without one its client gets the upstream's error
 * after `max_attempts`, but a key whose width is limited makes it wait while it is young.
 */
export function patienceOf(deadlineMs: number | null): { waitsForGate: boolean; waitsForWidth: boolean } {
  return { waitsForGate: deadlineMs !== null, waitsForWidth: deadlineMs === null };
}

export type SingleCall = {
  callId: string;
  /** Number of the attempt to make, from 1. */
  attempt: number;
  /** For a retry: how long its attempts before have taken together, and the first one was queued. */
  earlier?: TimesOfCall;
  /** Of the attempts before, those that do not count towards the most attempts of a call; absent = none. */
  uncounted?: number;
  /** Whether a key that does not work, or a rate limit, makes the call wait rather than fail; absent = they fail it. */
  waitsForGate?: boolean;
  /** Until then a 429 of a key whose width is limited uses up none of its attempts; absent = each uses up one. */
  waitsForWidthUntilMs?: number;
  facts: CallFacts;
  target: Target;
  /** For a retry: what the call has tried, if it has choices. */
  position?: Position;
  /** A call that has not started within this time of `queuedAtMs` fails; null = it waits without a limit. */
  deadlineMs: number | null;
  /** What follows an attempt whose outcome is unknown: another attempt, or the failure. */
  onLost: "retry" | "fail";
  queuedAtMs: number;
  /** The coalescing window in which the call arrived; null for a retry whose group is no longer in memory. */
  window: WindowGroup | null;
  windowPosition: WindowPosition;
  /** The key under which its answer is to be recorded; absent = it is not. */
  recordKey?: string;
};
