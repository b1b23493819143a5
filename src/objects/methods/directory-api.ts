/** The methods of a directory object: a part of the list of root runs, and the root budget of each day. */

import type { Lease, LeaseReply, LeaseRequest } from "../../run/money/day-lease.ts";
import type { Overview } from "../../log/overview/overview.ts";

/** A root run's reservation in the root budget of a day. */
export type DayReservation = { day: string; nanoUsd: number; limitNanoUsd: number };

/** Whether the day's budget covers the reservation; if not, what the day's runs have reserved and spent. */
export type DayReply = { ok: true } | { ok: false; committedNanoUsd: number };

/**
 * A root run's place in the list: when it was opened, µs since 1970, then its id. Runs whose ids name their
 * objects have small numbers instead, in the order of their opening.
 */
export type ListedRun = { openedAt: number; id: string; summary?: StoredSummary };

/** A run's summary as JSON text, and when the list got it, epoch ms. */
export type StoredSummary = { text: string; atMs: number };

/**
 * Methods that name a run take `openedAt`, the first place in the list that it may have: there is no index of ids, because each run
 * would write a row of it. Absent = not known: all rows of the part are read then.
 */
export interface DirectoryApi extends Rpc.DurableObjectBranded {
  /**
   * Adds a run that is being opened. Not ok, and nothing is added, if the day's budget cannot cover the reservation. Safe to repeat.
   * @param reservation In the whole of a day's budget; null = none there.
   * @param summary What the list shows of it until it reports. Absent = nothing.
   */
  add(run: ListedRun, reservation: DayReservation | null, summary?: StoredSummary): DayReply;

  /**
   * The same of a run under a root budget of the day, in the part of the list that the run belongs to: the reservation is inside the
   * part's lease of that budget.
   */
  addOfDay(run: ListedRun, reservation: DayReservation, summary: StoredSummary): Promise<DayReply>;

  /**
   * Of the whole: a part's lease of a day's budget, which the part asks for. Safe to repeat.
   * @param part The id of the part's object.
   */
  lease(day: string, part: string, request: LeaseRequest): Promise<LeaseReply>;

  /** Of a part: gives back what its runs do not use of its lease. `knownNo`: the last of its requests that the whole has applied. */
  release(day: string, knownNo: number): Lease;

  /**
   * Replaces a run's summary; nothing happens if it is not listed. A row is written only if the text has changed.
   * @param isFirst Only if the run has none.
   */
  summarise(runId: string, summary: StoredSummary, isFirst?: boolean, openedAt?: number): void;

  /**
   * A run has ended and spent this much of its reservation. Counts once.
   * @param overrunNanoUsd What upstreams have billed it above its reservations: no more than that counts above what was reserved
   *   for it. Absent = its object does not tell, and all counts.
   */
  childEnded(runId: string, spentNanoUsd: number, overrunNanoUsd?: number, openedAt?: number): Promise<void>;

  /** Removes a run that has deleted itself, or was not opened. Its day's figures remain. */
  forget(runId: string, openedAt?: number): void;

  /** Changes a run's reservation. Not ok, with nothing changed, if the day's budget cannot cover it. */
  resizeChild(runId: string, nanoUsd: number, limitNanoUsd: number, openedAt?: number): DayReply | Promise<DayReply>;

  /**
   * This part's runs, newest first, at most `limit`, from behind `before` on; null = from the newest.
   * @param withSummaries Adds the summary of each run that has one.
   */
  newest(before: ListedRun | null, limit: number, withSummaries?: boolean): ListedRun[];

  /** How many runs of this part were opened before `before`; counts up to `limit`. */
  countBefore(before: ListedRun, limit: number): number;

  /**
   * What this part's runs do and have used, the newest OVERVIEW_RUNS_MAX of them.
   * @param sinceMs From the hour of this time on, by model, name and code.
   */
  overview(sinceMs: number): Overview;
}
