/** The methods of the directory object: the list of root runs, and the root budget of each day. */

/** A root run's reservation in the root budget of a day. */
export type DayReservation = { day: string; nanoUsd: number; limitNanoUsd: number };

/** Whether the day's budget covers the reservation; if not, what the day's runs have reserved and spent. */
export type DayReply = { ok: true } | { ok: false; committedNanoUsd: number };

export interface DirectoryApi extends Rpc.DurableObjectBranded {
  /** Adds a run that is about to be opened. Not ok, and nothing is added, if the day's budget cannot cover the reservation. */
  add(runId: string, reservation: DayReservation | null): DayReply;

  /** A run has ended and spent this much of its reservation. Counts once. */
  childEnded(runId: string, spentNanoUsd: number): void;

  /** Removes a run that has deleted itself. Its day's figures remain. */
  forget(runId: string): void;

  /** Changes a run's reservation. Not ok, with nothing changed, if the day's budget cannot cover it. */
  resizeChild(runId: string, nanoUsd: number, limitNanoUsd: number): DayReply;

  /** A page of run ids, newest first, older than the run `after` (null = from the newest); null if there is no such run. */
  page(after: string | null, limit: number): { ids: string[]; hasMore: boolean } | null;
}
