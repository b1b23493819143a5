import { describe, expect, it } from "vitest";
import type { Amounts } from "../../../src/run/money/ledger.ts";
import type { LoggedEvent, RunEvent } from "../../../src/run/log.ts";
import type { Reason } from "../../../src/errors.ts";
import { Trace, type TraceEvent } from "../../../src/log/trace.ts";
import { lastOf, spansOf, traceFile } from "../../support/trace-spans.ts";

const GROUP = "pg-1763712000000-k3j9x2";
const FAILED: Reason = { reason: "upstream_error", upstream: "acme", status: 503, message: "busy", retryable: true };
const METRICS = { wall_ms: 400, sequential_ms: 500, speedup: 1.25, peak_parallel: 2, success_rate: 0.5 };

const amounts = (usd: number): Amounts => ({ usd, calls: 1, prompt_tokens: 20, completion_tokens: 30, new_tokens: 50 });
const slot = (index: number) => ({ index, callId: null });

/** The trace of events at their times, ms; `group` null = they belong to none. */
function traceOf(events: [atMs: number, event: RunEvent, group?: string | null][]): TraceEvent[] {
  const trace = new Trace("run_1");
  const traceEvents = events.flatMap(([atMs, event, group = GROUP]) => {
    const logged: LoggedEvent = { atMs, group, ...event };
    return trace.eventsOf(logged);
  });
  // As a file has it: what JSON drops is not there.
  traceFile.parse(JSON.parse(JSON.stringify({ displayTimeUnit: "ms", traceEvents })));
  return traceEvents;
}

function started(index: number, attempt: number, queuedMs: number, reserved = 500): RunEvent {
  return {
    ...{ event: "attempt_started", ...slot(index), attempt, upstream: "acme", model: "m" },
    ...{ queuedMs, reserved: amounts(reserved) },
  };
}

function ended(index: number, attempt: number, reason: Reason | null, charged: number): RunEvent {
  const outcome = reason === null ? "success" : "transient";
  return {
    ...{ event: "attempt_ended", ...slot(index), attempt, upstream: "acme", model: "m" },
    ...{ outcome, reason, latencyMs: 10, estimated: false, charged: amounts(charged) },
  };
}

function completed(index: number, attempts: number, reason: Reason | null = null): RunEvent {
  return {
    ...{ event: "slot_completed", ...slot(index), status: reason === null ? "completed" : "failed", attempts, reason },
    ...{ model: "m", finishReason: "stop", usage: { promptTokens: 4, completionTokens: 2, costNanoUsd: 300 } },
    ...{ startedAtMs: 1, endedAtMs: 2 },
  };
}

const GROUP_START: RunEvent = { event: "group_started", count: 2, effectiveParallel: 2 };
const GROUP_END: RunEvent = {
  ...{ event: "group_completed", count: 2, status: "partial", metrics: METRICS, costNanoUsd: 300 },
  ...{ completed: 1, failed: 1, cancelled: 0 },
};

describe("a trace", () => {
  it("shows a call from when it was queued, with its attempts inside", () => {
    const events = traceOf([
      [1_000, GROUP_START],
      [1_040, started(3, 1, 40)],
      [1_100, ended(3, 1, FAILED, 0)],
      [1_150, started(3, 2, 10)],
      [1_250, ended(3, 2, null, 300)],
      [1_250, completed(3, 2)],
      [1_250, GROUP_END],
    ]);
    expect(spansOf(events).map(({ name, depth, startMs, endMs }) => [name, depth, startMs, endMs])).toEqual([
      [GROUP, 0, 1_000, 1_250],
      ["call 3", 0, 1_000, 1_250],
      ["attempt 1: acme/m", 1, 1_040, 1_100],
      ["attempt 2: acme/m", 1, 1_150, 1_250],
    ]);
    const args = spansOf(events).map((span) => span.args);
    expect(args[1]).toMatchObject({ status: "completed", attempts: 2, cost_usd: 0.0000003 });
    expect(args[2]).toMatchObject({ outcome: "transient", code: "upstream_error", queued_ms: 40 });
  });

  it("gives each group a process with its name, and the run one of its own", () => {
    const other = "pg-1763712000001-000001";
    const events = traceOf([
      [0, GROUP_START],
      [1, GROUP_START, other],
      [2, started(0, 1, 1)],
      [3, started(0, 1, 1), other],
    ]);
    const names = events.flatMap(({ ph, pid, args }) => (ph === "M" ? [[pid, args?.["name"]]] : []));
    expect(names).toEqual([
      [1, "run_1"],
      [2, GROUP],
      [3, other],
    ]);
    expect(spansOf(events).map(({ name, pid }) => [name, pid])).toContainEqual(["call 0", 3]);
  });

  it("counts calls in flight and dollars", () => {
    const events = traceOf([
      [0, started(0, 1, 0, 700)],
      [1, started(1, 1, 0, 500)],
      [2, ended(0, 1, null, 300)],
    ]);
    const counted = events.flatMap(({ ph, name, args }) =>
      ph === "C" && name === "calls in flight" ? [args?.["calls"]] : [],
    );
    expect(counted).toEqual([1, 2, 1]);
    expect(lastOf(events, "USD")).toEqual({ spent: 0.0000003, reserved: 0.0000005 });
  });

  it("adds lost credit and closed child runs to the dollars spent", () => {
    const events = traceOf([
      [0, { event: "credit_lost", charged: amounts(1_000) }, null],
      [1, { event: "child_closed", childRunId: "run_1.1", spent: amounts(2_000) }, null],
    ]);
    expect(lastOf(events, "USD")).toEqual({ spent: 0.000003, reserved: 0 });
  });

  it("shows a call that ended without an attempt as a span without length", () => {
    const [span] = spansOf(traceOf([[7, completed(0, 0, FAILED)]]));
    expect(span).toMatchObject({ name: "call 0", startMs: 7, endMs: 7, args: { status: "failed" } });
  });

  it("keeps a single call on its track when a later attempt joins a group", () => {
    const call = { index: null, callId: "c1" };
    const name = { ...call, upstream: "acme", model: "m" };
    const [first, second] = [started(0, 1, 0), started(0, 2, 0)].map((event) => ({ ...event, ...name }));
    const [firstEnd, secondEnd] = [ended(0, 1, FAILED, 0), ended(0, 2, null, 1)].map((event) => ({
      ...event,
      ...name,
    }));
    if (!first || !second || !firstEnd || !secondEnd) throw new Error("unreachable");
    const spans = spansOf(
      traceOf([
        [0, first, null],
        [1, firstEnd, null],
        [2, second, GROUP],
        [3, secondEnd, GROUP],
        [3, { ...completed(0, 2), ...call }, GROUP],
      ]),
    );
    expect(spans.map(({ name: title, pid, depth }) => [title, pid, depth])).toEqual([
      ["c1", 1, 0],
      ["attempt 1: acme/m", 1, 1],
      ["attempt 2: acme/m", 1, 1],
    ]);
  });

  it("leaves a call open that has not ended", () => {
    expect(spansOf(traceOf([[5, started(0, 1, 5)]])).map(({ endMs }) => endMs)).toEqual([null, null]);
  });

  it("shows a tool's call with its duration, and the client's own events by their names", () => {
    const tool: RunEvent = {
      ...{ event: "tool_called", tool: "search", reason: null, status: 200 },
      ...{ latencyMs: 30, bytes: 9, attempts: 1 },
    };
    const own: RunEvent = { event: "client", json: `{"event_type":"final_result","output":"</script>"}` };
    const events = traceOf([
      [50, tool, null],
      [60, own, null],
    ]);
    expect(spansOf(events)).toMatchObject([{ name: "search", startMs: 20, endMs: 50, args: { status: 200 } }]);
    expect(events.at(-1)).toMatchObject({ ph: "i", name: "final_result", args: { output: "</script>" } });
  });

  it("has an instant for whatever happened at one time", () => {
    const events = traceOf([
      [0, { event: "retry_scheduled", ...slot(1), attempt: 2, delayMs: 500, reason: FAILED }],
      [1, { event: "throttled", upstream: "acme", retryAfterMs: 900 }],
      [2, { event: "slots_cancelled", count: 3, status: "cancelled", reason: { reason: "cancelled", message: "x" } }],
      [3, { event: "slot_skipped", ...slot(4), reason: { reason: "condition_not_met", dependency: "a" } }],
      [3, { event: "run_closed", status: "closed" }, null],
    ]);
    const instants = events.filter(({ ph }) => ph === "i").map(({ name, args }) => [name, args]);
    expect(instants).toEqual([
      ["retry_scheduled", { index: 1, delay_ms: 500, code: "upstream_error" }],
      ["throttled", { upstream: "acme", retry_after_ms: 900 }],
      ["slots_cancelled", { count: 3, code: "cancelled" }],
      ["slot_skipped", { index: 4, code: "condition_not_met" }],
      ["run_closed", { status: "closed" }],
    ]);
  });
});
