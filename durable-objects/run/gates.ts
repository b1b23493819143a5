/**
 * The run object's exchanges with its gates. They are made outside of turns and never awaited by one: a gate that is slow or
 * gone delays no call. Its reply re-enters as an operation of a turn, which may then start what waited for it.
 */
import { dueExchanges, dueLeaves, granted, unreached } from "../../src/run/steps/exchange.ts";
import type { GateGrant, GateReport } from "../../src/gate/wire.ts";
import { GATE_REPLY_MS_MAX } from "../../src/limits.ts";
import type { Submit } from "./turns/commit-queue.ts";
import type { RunState } from "./state.ts";

export type GateDeps = {
  /** Calls a gate once. It rejects if the gate cannot be reached. */
  exchange: (gate: string, report: GateReport) => Promise<GateGrant>;
  /** Notifies a gate that the run has left it, with its last report. */
  leave: (gate: string, last: GateReport) => Promise<void>;
  submit: Submit;
  /** Keeps the object running until the promise ends. */
  keep: (promise: Promise<unknown>) => void;
  /** Names this instance of the run object. */
  instance: string;
};

export class GateExchanges {
  readonly #deps: GateDeps;

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /** Begins the exchanges that are due: call it after every turn. */
  exchange(run: RunState, nowMs: number): void {
    const { instance, keep, leave } = this.#deps;
    const { id, weight = 1 } = run.settings;
    const who = { run: id, instance, weight };
    for (const { gate, report } of dueExchanges(run.engine, who, nowMs)) keep(this.#exchange(run, gate, report));
    // One that it does not reach takes back what the run holds when the grant is over.
    for (const { gate, last } of dueLeaves(run.engine, who, nowMs)) keep(leave(gate, last).catch(() => undefined));
  }

  async #exchange(run: RunState, gate: string, report: GateReport): Promise<void> {
    const grant = await this.#reply(gate, report);
    await this.#deps
      .submit<void>((reply, nowMs) => {
        const isHeldUp = run.engine.upstreams.waitOf(gate, nowMs) !== null;
        if (grant === null) unreached(run.engine, gate, nowMs);
        else granted(run.engine, gate, grant, nowMs);
        if (isHeldUp) run.laneStarts.mayHaveLeft();
        reply();
      })
      // The object restarts: its next instance has grants of its own.
      .catch(() => undefined);
  }

  /** The reply of a gate; null = it cannot be reached, or takes too long. */
  async #reply(gate: string, report: GateReport): Promise<GateGrant | null> {
    const late = Promise.withResolvers<null>();
    const timer = setTimeout(() => late.resolve(null), GATE_REPLY_MS_MAX);
    try {
      const grant = await Promise.race([this.#deps.exchange(gate, report), late.promise]);
      // Copied: workerd keeps what a call returned until its next full collection.
      return grant === null ? null : { ...grant };
    } catch {
      return null;
    } finally {
      clearTimeout(timer);
    }
  }
}
