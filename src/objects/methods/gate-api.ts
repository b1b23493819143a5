/** The methods of a gate object: the state of one key of one upstream, shared by all runs. */
import type { MeterSheet } from "../../gate/meter.ts";
import type { GateGrant, GateReport, GateStatus } from "../../gate/wire.ts";

/** What a gate has counted. `unread`: the runs that may have counted more than they have reported. */
export type GateMetering = { status: GateStatus; sheet: MeterSheet; unread: string[] };

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

  /** What attempts have cost, of all runs. What it returns is stored, so that it never becomes less. */
  metering(): GateMetering;

  /** Adds what a run has counted and not reported. Returns the sums afterwards. Not safe to repeat. */
  count(sheet: MeterSheet): MeterSheet;

  /** Ends a stop by an operator's decision: runs may call again at once. False if the gate was not stopped. */
  resume(): boolean;
}
