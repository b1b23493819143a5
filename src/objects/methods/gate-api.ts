/** The methods of a gate object: the state of one key of one upstream, shared by all runs. */
import type { MeterSheet } from "../../gate/meter.ts";
import type { BroughtMeter, UnreadRun } from "../../gate/meters.ts";
import type { GateGrant, GateReport, GateStatus } from "../../gate/wire.ts";

/** What a gate has counted. `unread`: some of the runs that may have counted more; `unreadCount`: how many there are. */
export type GateReading = { status: GateStatus; sheet: MeterSheet; unread: UnreadRun[]; unreadCount: number };

export interface GateApi extends Rpc.DurableObjectBranded {
  /**
   * Exchanges a run's report for a grant, which replaces the run's last one. Never waits. A report may be repeated. A run has
   * one exchange with a gate at a time; it is never awaited inside of a turn.
   */
  exchange(report: GateReport): GateGrant;

  /**
   * The run has nothing waiting or in flight here any more: its permits are free. Repeating it changes nothing.
   * @param number Of the run's last report: after a later one it means nothing. Absent = it is the last.
   * @param last That report, which has no other reply: how the run's attempts have ended since the one before. Absent = nothing of it.
   */
  leave(run: string, number?: number, last?: GateReport): void;

  /** What an operator sees. */
  status(): GateStatus;

  /**
   * What attempts have cost, of all runs, and runs that may have counted more: `most` of them, others with each call. What it
   * returns is stored, so that it never becomes less.
   */
  readMeters(most: number): GateReading;

  /** Adds what runs have counted that the gate does not have. Returns the sums afterwards. Safe to repeat. */
  takeMeters(meters: BroughtMeter[]): MeterSheet;

  /** Ends a stop by an operator's decision: runs may call again at once. False if the gate was not stopped. */
  resume(): boolean;
}
