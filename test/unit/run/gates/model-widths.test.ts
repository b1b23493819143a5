/** A run at a key one of whose models is overloaded by itself: calls of the others start as if it was not there. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import type { BusyModel } from "../../../../src/gate/wire.ts";
import { ModelWidths } from "../../../../src/run/gates/model-widths.ts";
import { dueExchanges, granted } from "../../../../src/run/steps/exchange.ts";
import { nextReadyMs } from "../../../../src/run/steps/next-ready.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { waitsOf } from "../../../../src/run/steps/waiting-for.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { makeGrant } from "../../../support/gate-grants.ts";

const WHO = { run: "run-1", instance: "one", weight: 1 };
const GOOD = { modelIndex: 0 };
const BAD = { modelIndex: 1 };

function overloaded(): Outcome {
  const reason = { reason: "upstream_error", upstream: "acme", status: 503, message: "no", retryable: true } as const;
  return { ...failure("transient"), kind: "failure", class: "transient", reason, answered: true, retryAfterMs: null };
}

/** An engine whose gate has called the second model overloaded while so many attempts at it were in flight. */
function engineWith(busyModels: readonly BusyModel[], inFlight = 8): { engine: TestEngine; bad: string[] } {
  const targets = [makeTarget({ model: "good" }), makeTarget({ model: "bad" })];
  const engine = new TestEngine({ targets, hasGates: true });
  engine.open(alike(inFlight, BAD));
  const bad = engine.turn([512], 0).assignments.map(({ lease }) => lease.attemptId);
  expect(bad).toHaveLength(inFlight);
  const [due] = dueExchanges(engine.state, WHO, 0);
  expect(due?.gate).toBe("acme");
  granted(engine.state, "acme", makeGrant({ busyModels }), 0);
  return { engine, bad };
}

const BUSY = [{ model: "bad", waitMs: 0 }];

function modelsStarted(engine: TestEngine, nowMs: number): string[] {
  return engine.turn([512], nowMs).assignments.map(({ lease }) => lease.target.model);
}

describe("a batch with calls for an overloaded model and for another one", () => {
  it("starts all calls of the other one, also those behind", () => {
    const { engine } = engineWith(BUSY);
    engine.open([...alike(20, BAD), ...alike(20, GOOD)]);
    expect(modelsStarted(engine, 1)).toEqual(alike(20).map(() => "good"));
  });

  it("starts calls of the overloaded one as far as its width allows, in their order", () => {
    const { engine, bad } = engineWith(BUSY);
    engine.open([...alike(20, BAD), ...alike(20, GOOD)]);
    engine.turn([512], 1);
    for (const id of bad) settle(engine.state, id, success(), 2);
    const started = engine.turn([512], 3).assignments.map(({ lease }) => lease.slotId);
    // 8 in flight, and the 6 that have failed to prove it: a half of 14.
    expect(started).toHaveLength(7);
    expect(started.toSorted((a, b) => Number(a) - Number(b))).toEqual(started);
  });

  it("says that the calls of the overloaded one wait for a width, and of which key and model", () => {
    const { engine } = engineWith(BUSY);
    const group = engine.open([...alike(20, BAD), ...alike(20, GOOD)]);
    engine.turn([512], 1);
    expect(waitsOf(engine.state, group, 1)).toEqual([
      { waitingFor: { kind: "gate", gate: "acme", reason: "width", model: "bad", readyInMs: null }, slots: 20 },
    ]);
  });

  it("has more in flight with each time of answers without a failure, also beyond what it had when it was overloaded", () => {
    const { engine, bad } = engineWith(BUSY);
    engine.open(alike(2_000, BAD));
    let inFlight = bad;
    let nowMs = 0;
    for (let round = 0; round < 30; round++) {
      nowMs += 500;
      engine.state.turnShare.renew();
      for (const id of inFlight) settle(engine.state, id, success({}, 500), nowMs);
      inFlight = engine.turn([512], nowMs).assignments.map(({ lease }) => lease.attemptId);
    }
    expect(inFlight.length).toBeGreaterThan(2 * bad.length);
  });

  it("never has fewer than one call of the model in flight", () => {
    const { engine, bad } = engineWith(BUSY);
    engine.open(alike(30, BAD));
    let inFlight = bad;
    for (let round = 1; round <= 20; round++) {
      for (const id of inFlight) settle(engine.state, id, overloaded(), round * 1_000);
      inFlight = engine.turn([512], round * 1_000).assignments.map(({ lease }) => lease.attemptId);
      expect(inFlight.length).toBeGreaterThanOrEqual(1);
    }
    expect(inFlight).toHaveLength(1);
  });
});

describe("a model that its provider asks to leave alone for a time", () => {
  it("gets no call until then, and the run wakes up for it", () => {
    const { engine, bad } = engineWith([{ model: "bad", waitMs: 30_000 }]);
    for (const id of bad) settle(engine.state, id, success(), 1);
    engine.open([...alike(2, BAD), ...alike(2, GOOD)]);
    expect(modelsStarted(engine, 2)).toEqual(["good", "good"]);
    expect(nextReadyMs(engine.state, 2)).toBeLessThanOrEqual(30_000);
    expect(modelsStarted(engine, 29_999)).toEqual([]);
    expect(modelsStarted(engine, 30_000)).toEqual(["bad", "bad"]);
  });
});

describe("a report", () => {
  it("names the model that was overloaded, with how many attempts", () => {
    const { engine, bad } = engineWith([]);
    for (const id of bad) settle(engine.state, id, overloaded(), 1);
    const [due] = dueExchanges(engine.state, WHO, 200);
    expect(due?.report.failures).toMatchObject([
      { class: "overloaded", count: 8, models: [{ model: "bad", count: 8 }] },
    ]);
  });
});

describe("the widths of models", () => {
  it("narrow none that the gate has not named", () => {
    const widths = new ModelWidths();
    widths.started("m");
    expect([widths.overloaded("m", 1_000, 0), widths.waitOf("m", 0), widths.isAny]).toEqual([false, null, false]);
  });

  it("count attempts that started before the gate has named the model", () => {
    const widths = new ModelWidths();
    for (let started = 0; started < 4; started++) widths.started("m");
    widths.named(
      BUSY.map(() => ({ model: "m", waitMs: 0 })),
      0,
    );
    // 4 in flight, and 6 that have failed: 5.
    expect(widths.waitOf("m", 0)).toBeNull();
    widths.started("m");
    expect(widths.waitOf("m", 0)).toEqual({ readyAtMs: null });
    widths.ended("m");
    expect(widths.waitOf("m", 0)).toBeNull();
  });
});
