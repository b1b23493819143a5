import { describe, expect, it } from "vitest";
import { addAttempt, type MeterSheet } from "../../../src/gate/meter.ts";
import { GateMeters, type BroughtMeter } from "../../../src/gate/meters.ts";
import { METERED_MODELS_MAX, METERS_ENDED_KEPT_DAYS, METERS_KEPT_DAYS } from "../../../src/limits.ts";
import { KeptMeterRows } from "../../support/metered-world.ts";

const DAY_MS = 86_400_000;

function sheetOf(attempts: number): MeterSheet {
  const sheet: MeterSheet = {};
  for (let count = 0; count < attempts; count++) {
    const charge = { calls: 1, promptTokens: 10, completionTokens: 4, costNanoUsd: 2_000 };
    const attempt = { upstream: "up", model: "m", outcome: "success", charge, latencyMs: 7, queuedMs: 5 } as const;
    addAttempt(sheet, attempt, METERED_MODELS_MAX);
  }
  return sheet;
}

function meter(run: string, number: number, fields: Partial<BroughtMeter> = {}): BroughtMeter {
  return { run, number, sheet: sheetOf(number), state: "idle", mark: null, ...fields };
}

/** A gate's sums over rows that outlive its instances. */
function gateOver(rows = new KeptMeterRows(), epoch = 1) {
  const meters = new GateMeters(rows, { epoch, from: "" });
  const calls = (): number => meters.sheet["up/m"]?.outcomes.success?.calls ?? 0;
  const unread = (most = 10): string[] => meters.unread(most).runs.map(({ run }) => run);
  const markOf = (id: string): string => meters.unread(10).runs.find(({ run }) => run === id)?.mark ?? "";
  return { meters, rows, calls, unread, markOf };
}

describe("the sums of a gate", () => {
  it("have what each meter has more than the run's last one, whatever comes twice, late or in another instance", () => {
    const { meters, rows, calls } = gateOver();
    meters.take([meter("a", 3), meter("b", 2)], 0);
    meters.take([meter("a", 3)], 0);
    meters.take([meter("a", 2)], 0);
    expect(calls()).toBe(5);
    const next = gateOver(rows, 2);
    next.meters.take([meter("a", 3), meter("a", 7)], 0);
    expect(next.calls()).toBe(9);
  });

  it("are stored when a method returns", () => {
    const { meters, rows } = gateOver();
    meters.take([meter("a", 3)], 0);
    expect(gateOver(rows, 2).calls()).toBe(3);
  });

  it("forget what an ended run has counted when no meter of it can be on its way, and of another run when it must have ended", () => {
    const { meters, rows } = gateOver();
    meters.take([meter("ended", 1, { state: "ended" }), meter("idle", 1)], 0);
    const lookAt = (day: number): unknown[] => {
      const { meters: later } = gateOver(rows, day + 2);
      later.take([], day * DAY_MS);
      return [rows.run("ended") !== null, rows.run("idle") !== null, rows.isUnread("idle")];
    };
    expect(lookAt(METERS_ENDED_KEPT_DAYS)).toEqual([true, true, true]);
    expect(lookAt(METERS_ENDED_KEPT_DAYS + 1)).toEqual([false, true, true]);
    expect(lookAt(METERS_KEPT_DAYS)).toEqual([false, true, true]);
    expect(lookAt(METERS_KEPT_DAYS + 1)).toEqual([false, false, false]);
  });
});

describe("the runs that may have counted more than their gate has", () => {
  it("are those that have exchanged with it, known to the next instance too", () => {
    const { meters, rows } = gateOver();
    meters.exchanged("a", 0);
    meters.exchanged("a", 0);
    meters.exchanged("b", 0);
    expect(gateOver(rows, 2).unread()).toEqual(["a", "b"]);
  });

  it("are no more those that were visited and are idle, until they exchange again", () => {
    const { meters, unread, markOf } = gateOver();
    for (const run of ["idle", "active", "ended"]) meters.exchanged(run, 0);
    const visited = (["idle", "active", "ended"] as const).map((state) =>
      meter(state, 1, { state, mark: markOf(state) }),
    );
    meters.take(visited, 0);
    expect(unread()).toEqual(["active"]);
    meters.exchanged("idle", 0);
    expect(unread().toSorted()).toEqual(["active", "idle"]);
  });

  it("are still those that have exchanged since they were listed, or that were listed by an instance that is gone", () => {
    const { meters, rows, unread, markOf } = gateOver();
    meters.exchanged("a", 0);
    const mark = markOf("a");
    meters.exchanged("a", 0);
    meters.take([meter("a", 1, { mark })], 0);
    expect(unread()).toEqual(["a"]);
    const later = markOf("a");
    const next = gateOver(rows, 2);
    next.meters.take([meter("a", 1, { mark: later })], 0);
    expect(next.unread()).toEqual(["a"]);
  });

  it("are those that bring their meter themselves and go on", () => {
    const { meters, unread } = gateOver();
    meters.take([meter("a", 1, { state: "active" }), meter("b", 1, { state: "ended" })], 0);
    expect(unread()).toEqual(["a"]);
  });

  it("take turns where they are more than a reader visits, and are counted", () => {
    const { meters, unread } = gateOver();
    for (const run of ["a", "b", "c", "d", "e"]) meters.exchanged(run, 0);
    expect(meters.unread(0)).toEqual({ runs: [], count: 5 });
    expect([unread(2), unread(2), unread(2), unread(2)]).toEqual([
      ["a", "b"],
      ["c", "d"],
      ["e", "a"],
      ["b", "c"],
    ]);
    expect(unread(9).toSorted()).toEqual(["a", "b", "c", "d", "e"]);
  });
});
