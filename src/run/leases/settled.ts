/** What the end of an attempt means for its call, and the ends of which a single call's Worker has not heard yet. */
import type { Amounts } from "../money/ledger.ts";
import type { Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { UNREPORTED_ENDS_KEPT } from "../../limits.ts";
import type { Position } from "./shard.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** What the end of an attempt means for its call. */
export type Settled = {
  /** Delay until the call may be retried, or null when it has ended. */
  retryInMs: number | null;
  /** For the retry of a call that has choices: what it has tried. */
  position?: Position;
  /** For a single call: how many of its attempts so far do not count towards the most attempts of a call. */
  uncounted: number;
  charge: Amounts;
  /** True when the charge is the reservation because the cost of the attempt is not known. */
  estimated: boolean;
  /** Set if the gateway cut the answer short. */
  cappedBy?: "budget";
  queuedMs: number;
  /** For single calls: the parallel group that the call belongs to by now. */
  parallelGroupId: string | null;
};

/** An end of an attempt that its Worker has not reported: the lease expired, or the run gave the attempt up. */
type UnreportedEnd = { settled: Settled; reason: Reason };

/**
 * Attempts of single calls that the run has ended by itself. A Worker that lives settles such an attempt too late; it must
 * show its client what the run has charged, which is not what its own outcome costs.
 */
export class UnreportedEnds {
  /** By attempt, oldest first. */
  readonly #ends = new BoundedMap<string, UnreportedEnd>(UNREPORTED_ENDS_KEPT);

  add(attemptId: string, end: UnreportedEnd): void {
    this.#ends.set(attemptId, end);
  }

  /**
   * The reply to a settlement that comes too late; null = the run did not end the attempt by itself, or does not
   * remember it. The call is retried only if its Worker stopped because of that end: a failure that it has seen itself is final.
   */
  endOf(attemptId: string, outcome: Outcome): (Settled & { endedAs: Reason }) | null {
    const end = this.#ends.get(attemptId);
    if (end === undefined) return null;
    const { settled, reason } = end;
    return { ...settled, retryInMs: wasStopped(outcome) ? settled.retryInMs : null, endedAs: reason };
  }
}

/** Whether an executor has stopped its attempt: the run gave it up, or the client left. */
export function wasStopped(outcome: Outcome): outcome is Outcome & { kind: "failure" } {
  return outcome.kind === "failure" && outcome.reason.reason === "cancelled";
}
