/** The methods of a lane object: it makes a run's attempts, of which at most six wait for headers. */
export interface LaneApi extends Rpc.DurableObjectBranded {
  /** Starts the lane, or makes a running one claim once more; returns at once. Safe to repeat. */
  start(runId: string, lane: number): void;

  /**
   * Returns the attempts that this lane is making or has not settled yet, and makes the lane claim once more. Jobs granted
   * by an instance of the run older than `epoch`, whose reply is still under way, are dropped: `epoch` counts them as lost.
   */
  reconcileLeases(runId: string, lane: number, epoch: number): string[];

  /** Aborts attempts: their connections are closed. */
  abort(attemptIds: string[]): void;
}
