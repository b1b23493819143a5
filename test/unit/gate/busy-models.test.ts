/** A model that is overloaded by itself: its calls are narrowed, by each run, and the key's other models are not. */
import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/gate/gate.ts";
import { EMPTY_MEMORY } from "../../../src/gate/memory.ts";
import type { GateFailure, GateGrant, ModelLatency } from "../../../src/gate/wire.ts";
import { GATE_BUSY_MODEL_MS, GATE_OVERLOAD_PROOF } from "../../../src/limits.ts";
import { gateReport } from "../../support/gate-report.ts";

type Ends = { answered?: Record<string, number>; overloaded?: Record<string, number>; hintMs?: number };

/** A gate, and a run that reports how its attempts have ended. */
class Reported {
  readonly gate = new Gate({ adaptive: { mode: "aimd" }, maxInFlight: 512 }, 7, EMPTY_MEMORY, 0);
  #number = 0;
  #succeeded = 0;

  report({ answered = {}, overloaded = {}, hintMs }: Ends, nowMs: number): GateGrant {
    const models = Object.entries(answered).map(([model, count]): ModelLatency => ({
      model,
      whole: [[100, count]],
      ttfb: [],
    }));
    this.#succeeded += models.reduce((sum, { whole }) => sum + (whole[0]?.[1] ?? 0), 0);
    const failed = Object.entries(overloaded).map(([model, count]) => ({ model, count }));
    const count = failed.reduce((sum, each) => sum + each.count, 0);
    const failure: GateFailure = {
      class: "overloaded",
      stop: null,
      hintMs: hintMs ?? null,
      count,
      ageMs: 0,
      message: null,
      models: failed,
    };
    this.#number += 1;
    const latency = models.length === 0 ? null : { meanMs: 100, models };
    const failures = count === 0 ? [] : [failure];
    const ends = { succeeded: this.#succeeded, latency, failures };
    return this.gate.exchange(
      gateReport("a", this.#number, { ...ends, inFlight: 40, permits: null, waiting: 9 }),
      nowMs,
    );
  }
}

describe("a model whose calls fail as overloaded", () => {
  it("leaves the key open while another one is answered, and is named to the run", () => {
    const reported = new Reported();
    reported.report({ answered: { good: 20 } }, 0);
    const grant = reported.report({ answered: { good: 5 }, overloaded: { bad: 30 } }, 200);
    expect(grant).toMatchObject({ class: "open", permits: null, busyModels: [{ model: "bad", waitMs: 0 }] });
    expect(reported.gate.status(200).busyModels).toEqual([{ model: "bad", waitMs: 0 }]);
    expect(reported.gate.status(200 + GATE_BUSY_MODEL_MS).busyModels).toEqual([]);
  });

  it("makes only its own calls wait where the provider says for how long", () => {
    const reported = new Reported();
    reported.report({ answered: { good: 20 } }, 0);
    const grant = reported.report({ overloaded: { bad: 1 }, hintMs: 30_000 }, 200);
    expect(grant).toMatchObject({ class: "open", waitMs: 0, busyModels: [{ model: "bad", waitMs: 30_000 }] });
  });

  it("narrows the key where it is the only one that is used", () => {
    const grant = new Reported().report({ overloaded: { bad: 30 } }, 0);
    expect(grant).toMatchObject({ class: "shrunk", reason: "width" });
    expect(grant.busyModels).toBeUndefined();
  });

  it("narrows the key where several show it", () => {
    const reported = new Reported();
    reported.report({ answered: { good: 20 } }, 0);
    const overloaded = { bad: 2 * GATE_OVERLOAD_PROOF, worse: 2 * GATE_OVERLOAD_PROOF };
    expect(reported.report({ overloaded }, 200)).toMatchObject({ class: "shrunk", reason: "width" });
  });

  it("narrows the key in a report that does not name it, as that of an earlier version", () => {
    const reported = new Reported();
    reported.report({ answered: { good: 20 } }, 0);
    const failure = { class: "overloaded", stop: null, hintMs: null, count: 30, ageMs: 0, message: null } as const;
    const report = gateReport("b", 1, { failures: [failure], inFlight: 40, permits: null, waiting: 9 });
    expect(reported.gate.exchange(report, 200)).toMatchObject({ class: "shrunk", reason: "width" });
  });

  it("is narrowed after as many failures as show more than a provider's own faults, and no fewer", () => {
    const few = new Reported();
    few.report({ answered: { good: 20 } }, 0);
    expect(few.report({ overloaded: { bad: GATE_OVERLOAD_PROOF - 1 } }, 0).busyModels).toBeUndefined();
    expect(few.report({ overloaded: { bad: 1 } }, 0).busyModels).toEqual([{ model: "bad", waitMs: 0 }]);
  });

  it("is not named any more when its overload is over", () => {
    const reported = new Reported();
    reported.report({ answered: { good: 20 } }, 0);
    reported.report({ overloaded: { bad: 30 } }, 0);
    expect(reported.report({}, GATE_BUSY_MODEL_MS - 1).busyModels).toHaveLength(1);
    expect(reported.report({}, GATE_BUSY_MODEL_MS).busyModels).toBeUndefined();
  });
});
