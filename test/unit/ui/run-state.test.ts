import { describe, expect, it } from "vitest";
import { percentilesOf } from "../../../src/run/measures/percentiles.ts";
import { queueMsOf } from "../../../ui/model/call.ts";
import { agoText, durationText, exactUsdText, usdText } from "../../../ui/model/format.ts";
import { parseLine } from "../../../ui/model/line.ts";
import { forecastOf, progressOf } from "../../../ui/model/progress.ts";
import { colouring } from "../../../ui/view/colours.ts";
import { GROUP, Lines, stateOf } from "./lines.ts";

describe("the state of a run on its page", () => {
  it("counts calls by state, and those that have not begun by their group", () => {
    const lines = new Lines().add(0, "group_started", { count: 10 }).started(5, 0).started(5, 1).started(6, 2);
    lines.ended(20, 0).completed(20, 0).ended(21, 1, { outcome: "rejected" }).completed(21, 1, "failed", "no");
    const state = stateOf(lines);
    expect(state.counts).toEqual({ running: 1, waiting: 0, completed: 1, failed: 1, cancelled: 0 });
    expect([state.total, state.endedCalls]).toEqual([10, 2]);
  });

  it("adds up money: charges, what of them is estimated, reservations in flight, child runs, lost credit", () => {
    const lines = new Lines().started(0, 0, 1, 0.5).started(0, 1, 1, 0.25).ended(1, 0, { usd: 0.1, estimated: true });
    lines.add(2, "child_opened", { child_run_id: "c", reserved: { usd: 1 } }, null);
    const open = stateOf(lines);
    expect([open.spentUsd, open.estimatedUsd, open.reservedUsd]).toEqual([0.1, 0.1, 1.25]);
    lines.add(3, "child_closed", { child_run_id: "c", spent: { usd: 0.4 } }, null);
    lines.add(4, "credit_lost", { charged: { usd: 0.05 } }, null);
    const closed = stateOf(lines);
    expect(closed.spentUsd).toBeCloseTo(0.55, 9);
    expect([closed.estimatedUsd, closed.reservedUsd]).toEqual([expect.closeTo(0.15, 9), 0.25]);
  });

  it("takes each line once, so that a reader may begin again", () => {
    const lines = new Lines().add(0, "group_started", { count: 1 }).started(1, 0).ended(2, 0).completed(2, 0);
    const state = stateOf(lines);
    for (const line of lines.all) state.apply(line);
    expect([state.spentUsd, state.calls.length, state.endedCalls]).toEqual([0.02, 1, 1]);
  });

  it("tells a call's queue time from its attempts, and counts retries", () => {
    const lines = new Lines().started(100, 0).ended(130, 0, { outcome: "transient" }).started(150, 0, 2);
    lines.ended(170, 0, { attempt: 2 }).completed(170, 0);
    const [call] = stateOf(lines).calls;
    if (call === undefined) throw new Error("no call");
    // 5 ms before the first attempt, 20 ms before the second.
    expect(queueMsOf(call, 1_000)).toBe(25);
    expect(stateOf(lines).retries).toBe(1);
  });

  it("counts how long calls took: all attempts of each, not the pauses, and not calls that were never sent", () => {
    const lines = new Lines().started(100, 0).ended(130, 0, { outcome: "transient", latencyMs: 30 }).started(150, 0, 2);
    lines.ended(170, 0, { attempt: 2, latencyMs: 20 }).completed(170, 0);
    const refused = { index: 1, call_id: null, status: "failed", timestamps: { llm_call_start: null } };
    const { times } = stateOf(lines.add(180, "slot_completed", refused));
    const each = (ms: number) => ({ p50: ms, p95: ms, p99: ms });
    expect([percentilesOf(times.latency), percentilesOf(times.queued)]).toEqual([each(50), each(5)]);
  });

  it("counts the time of a hedged call once where its attempts overlap", () => {
    const lines = new Lines().started(100, 0, 1).started(160, 0, 2);
    lines.ended(180, 0, { attempt: 1, latencyMs: 80, outcome: "unknown" });
    lines.ended(200, 0, { attempt: 2, latencyMs: 40 }).completed(200, 0);
    expect(percentilesOf(stateOf(lines).times.latency)?.p50).toBe(100);
  });

  it("lists failures by code and upstream, with the first as the example", () => {
    const lines = new Lines();
    for (const index of [3, 4]) lines.started(0, index).ended(1, index).completed(1, index, "failed", "upstream_error");
    expect([...stateOf(lines).failures.values()]).toMatchObject([
      { code: "upstream_error", upstream: "up/m", count: 2, example: "why 3" },
    ]);
  });

  it("counts calls that were cancelled together", () => {
    const lines = new Lines().add(0, "group_started", { count: 5 }).started(0, 0).ended(1, 0).completed(1, 0);
    const state = stateOf(lines.add(2, "slots_cancelled", { count: 4, status: "cancelled" }));
    expect([state.counts.cancelled, state.endedCalls, state.total]).toEqual([4, 5, 5]);
  });

  it("counts the calls of a window as they join it", () => {
    const single = (id: string) => ({ index: null, call_id: id, attempt: 1, queued_ms: 0, reserved: {} });
    const lines = new Lines().add(0, "group_started", { count: 2 });
    for (const id of ["a", "b", "c"]) lines.add(1, "attempt_started", single(id));
    expect(stateOf(lines).total).toBe(3);
  });

  it("counts a call once that the log has named before another one joined its window", () => {
    const named = (id: string) => ({ index: null, call_id: id, attempt: 1, queued_ms: 0, reserved: {} });
    const ended = (id: string) => ({ index: null, call_id: id, status: "completed", usage: { cost: 0 } });
    const lines = new Lines().add(0, "attempt_started", named("a"), null).add(1, "slot_completed", ended("a"), null);
    lines.add(2, "attempt_started", named("b")).add(3, "slot_completed", ended("b"));
    const state = stateOf(lines.add(4, "group_started", { count: 2 }).add(4, "group_completed", { count: 2 }));
    expect([state.total, state.endedCalls, state.skipped, state.counts.completed]).toEqual([2, 2, 0, 2]);
  });

  it("lists a single call under the group that a later event of it names", () => {
    const named = { index: null, call_id: "a", attempt: 1, queued_ms: 0, reserved: {} };
    const lines = new Lines()
      .add(0, "attempt_started", named, null)
      .add(1, "attempt_started", { ...named, call_id: "b" });
    const before = stateOf(lines);
    expect([before.single.map(({ callId }) => callId), before.total]).toEqual([["a"], 2]);
    const state = stateOf(lines.add(2, "attempt_ended", { ...named, charged: { usd: 0.01 } }));
    expect([state.single, state.groups.get(GROUP)?.calls.map(({ callId }) => callId)]).toEqual([[], ["b", "a"]]);
    expect([state.total, state.calls.length]).toEqual([2, 2]);
  });

  it("keeps the number of calls in flight over time, one point a millisecond", () => {
    const lines = new Lines().started(1, 0).started(1, 1).started(3, 2).ended(4, 0);
    expect(stateOf(lines).inFlight).toEqual([
      { atMs: 1, count: 2 },
      { atMs: 3, count: 3 },
      { atMs: 4, count: 2 },
    ]);
  });

  it("ends with the run's last event", () => {
    expect(stateOf(new Lines().add(7, "run_closed", { status: "cancelled" }, null)).ended).toBe("cancelled");
  });

  it.each([["not JSON"], ["[]"], ["null"], ['{"seq":1}'], ['{"seq":1,"ts":"never","event_type":"x"}']])(
    "refuses %s as a line",
    (text) => expect(parseLine(text)).toBeNull(),
  );
});

describe("progress", () => {
  it("predicts time and cost from the calls that have ended", () => {
    const lines = new Lines().add(0, "group_started", { count: 30 });
    for (let index = 0; index < 10; index++) {
      lines
        .started(index * 100, index)
        .ended(index * 100 + 100, index)
        .completed(index * 100 + 100, index);
    }
    const progress = progressOf(stateOf(lines), 1_000);
    // Ten ended within the 900 ms since the first end; twenty are left.
    expect(progress).toMatchObject({ total: 30, ended: 10 });
    expect(progress.remainingMs).toBeCloseTo(1_800, 0);
    expect(progress.predictedUsd).toBeCloseTo(0.6, 9);
  });

  it("says in a sentence when the calls end and what they cost, or at about which call the budget ends", () => {
    const lines = new Lines().add(0, "group_started", { count: 30 });
    for (let index = 0; index < 10; index++)
      lines
        .started(0, index)
        .ended(100, index)
        .completed(100 + index, index);
    const state = stateOf(lines);
    expect(forecastOf(state, 0.5, 1_000)).toEqual({
      text: "The budget ends at about call 25 of 30: all of them would need about $0.1000 more.",
      isShort: true,
    });
    for (const limitUsd of [0.6, null]) {
      expect(forecastOf(state, limitUsd, 1_000)?.text).toMatch(
        /^At this pace all 30 calls end in about .* cost about \$0.6000\.$/,
      );
    }
    expect(forecastOf(stateOf(new Lines().add(0, "group_started", { count: 2 })), 1, 1_000)).toBeNull();
  });

  it("takes the last calls in flight to last as long as others to their model, and knows no end of a call that lasts longer", () => {
    const lines = new Lines().add(0, "group_started", { count: 4 });
    for (const index of [0, 1, 2, 3]) lines.started(0, index);
    for (const [index, latencyMs] of [300, 500].entries()) {
      lines.ended(latencyMs, index, { latencyMs }).completed(latencyMs, index);
    }
    const state = stateOf(lines);
    expect([400, 499, 500, 999].map((nowMs) => progressOf(state, nowMs).remainingMs)).toEqual([100, 1, null, null]);
  });

  it("does not predict the end of the first call to a model", () => {
    const lines = new Lines().add(0, "group_started", { count: 3 });
    for (const index of [0, 1]) lines.started(0, index).ended(500, index, { latencyMs: 500 }).completed(500, index);
    const slow = { index: 2, call_id: null, attempt: 1, upstream: "up", model: "slow", queued_ms: 0 };
    lines.add(500, "attempt_started", { ...slow, reserved: { usd: 0 } });
    expect(progressOf(stateOf(lines), 501).remainingMs).toBeNull();
  });

  it("knows nothing before two calls have ended", () => {
    const state = stateOf(new Lines().add(0, "group_started", { count: 2 }).started(0, 0).ended(9, 0).completed(9, 0));
    expect(progressOf(state, 10)).toMatchObject({ perSecond: null, remainingMs: null, predictedUsd: 0.04 });
  });
});

describe("figures", () => {
  it.each([
    [0, "$0"],
    [1_234.5, "$1,234.50"],
    [12.345, "$12.35"],
    [0.0123456, "$0.0123"],
    [0.004, "$0.0040"],
    [0.000355, "$0.0004"],
    [0.000_049, "<$0.0001"],
  ])("shows %d dollars as %s", (usd, text) => expect(usdText(usd)).toBe(text));

  it.each([
    [0, "$0"],
    [0.000_021_4, "$0.000021"],
    [0.0034, "$0.0034"],
    [0.0123, "$0.0123"],
  ])("shows a call's cost of %d dollars as %s", (usd, text) => expect(exactUsdText(usd)).toBe(text));

  it.each([
    [420, "420 ms"],
    [3_240, "3.2 s"],
    [250_000, "4 min 10 s"],
    [7_500_000, "2 h 5 min"],
    [119_999, "2 min 0 s"],
  ])("shows %d ms as %s", (ms, text) => expect(durationText(ms)).toBe(text));

  it.each([
    [4_999, "now"],
    [59_999, "59 s ago"],
    [180_000, "3 min ago"],
    [7_200_000, "2 h ago"],
    [172_800_000, "2 days ago"],
    [-3_000, "now"],
  ])("shows %d ms ago as %s", (ms, text) => expect(agoText(ms)).toBe(text));
});

describe("attempts, models and phases on the page", () => {
  it("ends the attempt that has ended, also if two of a call are in flight", () => {
    const state = stateOf(new Lines().started(0, 0, 1).started(5, 0, 2).ended(8, 0, { attempt: 1 }));
    expect(state.calls[0]?.attempts.map(({ number, endMs }) => [number, endMs])).toEqual([
      [1, 8],
      [2, null],
    ]);
  });

  it("knows recorded answers, the dearest call, and the phases that the client has named", () => {
    const lines = new Lines().add(1, "phase", { output: "read" }, null).started(2, 0).ended(3, 0).completed(3, 0);
    lines.add(4, "slot_completed", {
      index: 1,
      call_id: null,
      status: "completed",
      replayed: true,
      usage: { cost: 0 },
    });
    const state = stateOf(lines);
    expect(state.calls.map(({ replayed }) => replayed)).toEqual([false, true]);
    expect([state.dearestUsd, state.phases, [...state.models]]).toEqual([0.02, [{ atMs: 1, name: "read" }], ["up/m"]]);
    const byModel = colouring("model", state);
    expect(byModel.legend).toEqual([{ colour: expect.any(String), text: "up/m" }]);
    const byCost = colouring("cost", state);
    const [dear, recorded] = state.calls.map((call) => byCost.colourOf?.(call, ""));
    expect([dear, recorded]).toEqual([byCost.legend.at(-1)?.colour, byCost.legend[0]?.colour]);
    expect(colouring("state", state)).toEqual({ colourOf: null, legend: [] });
  });
});
