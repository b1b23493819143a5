/** What a run has counted at its gates, for those who read it, and for the gates that nobody asks about it in time. */
import { announced, meterAt, meteredGates, owedGates } from "../../src/run/steps/metered.ts";
import type { BroughtMeter, RunMeter } from "../../src/gate/meters.ts";
import type { RunState } from "./state.ts";
import type { Submit } from "./turns/commit-queue.ts";

export type RunMetersDeps = {
  /** Brings a gate what the run has counted there. Rejects if the gate cannot be reached. */
  send: (gate: string, meter: BroughtMeter) => Promise<void>;
  submit: Submit;
};

export class RunMeters {
  readonly #deps: RunMetersDeps;
  #isSending = false;

  constructor(deps: RunMetersDeps) {
    this.#deps = deps;
  }

  /** What the run has counted at these gates, once all of it is stored. `run` null = it was never opened, or is deleted. */
  read(run: RunState | null, gates: readonly string[]): Promise<RunMeter[]> {
    return this.#deps.submit((reply, nowMs) => {
      if (run === null) return reply([]);
      run.engine.writeSettlements();
      const { engine, settings, isFinal } = run;
      const meters = gates.map((gate) => meterAt(engine, gate, { id: settings.id, isFinal }, nowMs));
      // What is on its way may tell a gate that the run counts more.
      reply(this.#isSending ? meters.map((meter) => ({ ...meter, state: "active" })) : meters);
    });
  }

  /** Whether a gate may not know all that it must know of what the run has counted. */
  owes(run: RunState): boolean {
    return gatesToTell(run).length > 0;
  }

  /** Sends gates what the run has counted. It still owes it to those that could not be reached. */
  async report(run: RunState): Promise<void> {
    const gates = gatesToTell(run);
    if (gates.length === 0) return;
    const { isFinal } = run;
    this.#isSending = true;
    const sent = await Promise.allSettled(gates.map((gate) => this.#send(gate, run, isFinal)));
    this.#isSending = false;
    const isDone = sent.every(({ status }) => status === "fulfilled");
    if (isDone && isFinal) await this.#change(() => run.metered());
  }

  async #send(gate: string, run: RunState, isFinal: boolean): Promise<void> {
    const meter = await this.#change((nowMs) => {
      run.engine.writeSettlements();
      return meterAt(run.engine, gate, { id: run.settings.id, isFinal }, nowMs);
    });
    await this.#deps.send(gate, { ...meter, state: isFinal ? "ended" : "active", mark: null });
    if (!isFinal) announced(run.engine, gate);
  }

  /** Does something with the run in a turn; resolves when that is stored. */
  #change<T>(change: (nowMs: number) => T): Promise<T> {
    return this.#deps.submit((reply, nowMs) => reply(change(nowMs)));
  }
}

/** The gates that may not know that the run has counted something; and all of them when it counts no more, until they have it. */
function gatesToTell({ isMetered, isFinal, engine }: RunState): string[] {
  if (isMetered) return [];
  return isFinal ? meteredGates(engine) : owedGates(engine);
}
