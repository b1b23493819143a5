/** How many attempts executors may have. */
import { EXECUTOR_CALLS_MAX, WAITING_FETCHES_DEFAULT } from "../limits.ts";

/** How many attempts an executor holds: as many as it may if nothing limits the headers that it waits for. */
export function callsMaxOf(waitingFetchesMax: number): number {
  return Math.max(EXECUTOR_CALLS_MAX, waitingFetchesMax);
}

/** Whether few fetches of an executor may wait for headers at once. */
export function areHeadersLimited(waitingFetchesMax: number): boolean {
  return waitingFetchesMax <= WAITING_FETCHES_DEFAULT;
}

/** How many attempts an executor may have, and how it settles them. */
export type WorkRules = {
  /** Attempts that it may hold at once. */
  callsMax: number;
  /** Of them, those that may wait for the headers of their answer. */
  waitingMax: number;
  /** It settles at once when this share of its attempts has ended. */
  settleAtShare: number;
  /** Otherwise it waits so long for further answers, ms. */
  mergeMs: number;
  /** The same while attempts are short, unless the run says longer. */
  shortMergeMs: number;
};
