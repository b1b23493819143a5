import { describe, expect, it } from "vitest";
import { zeroAmounts } from "../../../src/run/money/ledger.ts";
import type { LoggedEvent, RunEvent } from "../../../src/run/log.ts";
import type { Reason } from "../../../src/errors.ts";
import { eventLines } from "../../../src/log/events.ts";

const RUN = { id: "run_1", parentId: "run_0", depth: 1 };
const AT_MS = Date.UTC(2026, 10, 21, 13, 0, 0, 123);
const GROUP = "pg-1763712000000-k3j9x2";

/** The wire line of one event, number 17. */
function lineOf(event: RunEvent, group: string | null = GROUP): Record<string, unknown> {
  return JSON.parse(textOf(event, group));
}

function textOf(event: RunEvent, group: string | null): string {
  const stored: LoggedEvent = { atMs: AT_MS, group, ...event };
  const [line] = eventLines({ last: 17, lines: JSON.stringify(stored) }, RUN);
  if (line === undefined) throw new Error("an event without a line");
  expect([line.seq, line.type]).toEqual([17, JSON.parse(line.json).event_type]);
  return line.json;
}

/** What every line begins with. */
const COMMON = {
  seq: 17,
  ts: "2026-11-21T13:00:00.123Z",
  run_id: "run_1",
  parent_run_id: "run_0",
  parallel_group_id: GROUP,
  depth: 1,
  step: null,
};

const AMOUNTS = { usd: 1_234_567, calls: 1, prompt_tokens: 20, completion_tokens: 30, new_tokens: 50 };
const AMOUNTS_SHOWN = { usd: 0.001234567, calls: 1, prompt_tokens: 20, completion_tokens: 30, new_tokens: 50 };
const SLOT = { index: 3, callId: null };
const SLOT_SHOWN = { index: 3, call_id: null };
const ATTEMPT = { ...SLOT, attempt: 2, upstream: "acme", model: "gpt-x" };
const ATTEMPT_SHOWN = { ...SLOT_SHOWN, attempt: 2, upstream: "acme", model: "gpt-x" };
const FAILED: Reason = { reason: "upstream_error", upstream: "acme", status: 500, message: "no", retryable: true };
const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const BUDGET = { dimension: "usd", limit: 0.5, spent: 0.25, reserved: 0.125, remaining: 0.125, needed: 0.2 } as const;
const METRICS = { wall_ms: 400, sequential_ms: 500, speedup: 1.25, peak_parallel: 2, success_rate: 0.5 };
const USAGE = { promptTokens: 40, completionTokens: 7, costNanoUsd: 54_000 };
const ENDED = { attempts: 1, model: null, finishReason: null, usage: USAGE, endedAtMs: AT_MS };

const CASES: [RunEvent, object][] = [
  [
    {
      event: "run_opened",
      name: "n",
      limits: { usd: 500_000_000, calls: null, prompt_tokens: 9, completion_tokens: null, new_tokens: null },
      maxParallel: 8,
    },
    {
      event_type: "run_opened",
      name: "n",
      limits: { usd: 0.5, calls: null, prompt_tokens: 9, completion_tokens: null, new_tokens: null },
      max_parallel: 8,
    },
  ],
  [
    { event: "run_closed", status: "expired" },
    { event_type: "run_closed", status: "expired" },
  ],
  [
    { event: "child_opened", childRunId: "run_2", reserved: AMOUNTS },
    { event_type: "child_opened", child_run_id: "run_2", reserved: AMOUNTS_SHOWN },
  ],
  [
    { event: "child_closed", childRunId: "run_2", spent: zeroAmounts() },
    {
      event_type: "child_closed",
      child_run_id: "run_2",
      spent: { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 },
    },
  ],
  [
    { event: "group_started", count: 4, effectiveParallel: 2 },
    { event_type: "group_started", count: 4, effective_parallel: 2 },
  ],
  [
    {
      event: "group_completed",
      count: 4,
      status: "partial",
      metrics: METRICS,
      costNanoUsd: 54_000,
      completed: 2,
      failed: 1,
      cancelled: 1,
    },
    {
      event_type: "group_completed",
      count: 4,
      status: "partial",
      execution_ms: 400,
      cost: 0.000054,
      sequential_ms: 500,
      speedup: 1.25,
      peak_parallel: 2,
      completed: 2,
      failed: 1,
      cancelled: 1,
    },
  ],
  [
    { event: "attempt_started", ...ATTEMPT, reserved: AMOUNTS, queuedMs: 12 },
    { event_type: "attempt_started", ...ATTEMPT_SHOWN, queued_ms: 12, reserved: AMOUNTS_SHOWN },
  ],
  [
    {
      event: "attempt_ended",
      ...ATTEMPT,
      outcome: "success",
      reason: null,
      latencyMs: 800,
      estimated: false,
      charged: AMOUNTS,
    },
    {
      event_type: "attempt_ended",
      ...ATTEMPT_SHOWN,
      outcome: "success",
      code: null,
      upstream_code: null,
      latency_ms: 800,
      estimated: false,
      charged: AMOUNTS_SHOWN,
    },
  ],
  [
    {
      event: "attempt_ended",
      ...ATTEMPT,
      outcome: "unknown",
      reason: FAILED,
      latencyMs: 800,
      estimated: true,
      charged: AMOUNTS,
    },
    {
      event_type: "attempt_ended",
      ...ATTEMPT_SHOWN,
      outcome: "unknown",
      code: "upstream_error",
      upstream_code: null,
      latency_ms: 800,
      estimated: true,
      charged: AMOUNTS_SHOWN,
    },
  ],
  [
    {
      event: "attempt_ended",
      ...ATTEMPT,
      outcome: "rejected",
      reason: { ...FAILED, upstreamCode: "context_length_exceeded" },
      latencyMs: 800,
      estimated: false,
      charged: AMOUNTS,
    },
    {
      event_type: "attempt_ended",
      ...ATTEMPT_SHOWN,
      outcome: "rejected",
      code: "upstream_error",
      upstream_code: "context_length_exceeded",
      latency_ms: 800,
      estimated: false,
      charged: AMOUNTS_SHOWN,
    },
  ],
  [
    { event: "retry_scheduled", ...SLOT, attempt: 3, delayMs: 400, reason: FAILED },
    { event_type: "retry_scheduled", ...SLOT_SHOWN, attempt: 3, delay_ms: 400, code: "upstream_error" },
  ],
  [
    { event: "throttled", upstream: "acme", gate: "acme#KEY_2", cause: "invalid_key", retryAfterMs: 2_000 },
    {
      event_type: "throttled",
      upstream: "acme",
      gate: "acme#KEY_2",
      cause: "invalid_key",
      retry_after_ms: 2_000,
      waiting_for: { gate: "acme#KEY_2", reason: "stopped", ready_in_ms: 2_000 },
    },
  ],
  [
    {
      event: "slot_completed",
      index: null,
      callId: "call-1",
      ...ENDED,
      status: "completed",
      reason: null,
      model: "gpt-x",
      finishReason: "stop",
      startedAtMs: AT_MS - 1_000,
    },
    {
      event_type: "slot_completed",
      index: null,
      call_id: "call-1",
      status: "completed",
      attempts: 1,
      hasError: false,
      code: null,
      upstream_code: null,
      message: null,
      model: "gpt-x",
      finish_reason: "stop",
      usage: { prompt_tokens: 40, completion_tokens: 7, total_tokens: 47, cost: 0.000054 },
      timestamps: { llm_call_start: "2026-11-21T12:59:59.123Z", llm_call_end: "2026-11-21T13:00:00.123Z" },
    },
  ],
  [
    { event: "slot_completed", ...SLOT, ...ENDED, status: "cancelled", reason: STOPPED, startedAtMs: null },
    {
      event_type: "slot_completed",
      ...SLOT_SHOWN,
      status: "cancelled",
      attempts: 1,
      hasError: true,
      code: "cancelled",
      upstream_code: null,
      message: "by the test",
      model: null,
      finish_reason: null,
      usage: { prompt_tokens: 40, completion_tokens: 7, total_tokens: 47, cost: 0.000054 },
      timestamps: { llm_call_start: null, llm_call_end: null },
    },
  ],
  [
    { event: "slots_cancelled", count: 5, status: "cancelled", reason: STOPPED },
    { event_type: "slots_cancelled", count: 5, status: "cancelled", code: "cancelled", message: "by the test" },
  ],
  [
    { event: "slot_skipped", ...SLOT, reason: { reason: "condition_not_met", dependency: "ask" } },
    {
      event_type: "slot_skipped",
      ...SLOT_SHOWN,
      code: "condition_not_met",
      message: expect.stringContaining('the task "ask"'),
    },
  ],
  [
    { event: "confirmation_awaited", quote: { worstNanoUsd: 2_500_000, likelyNanoUsd: 1_000_000, calls: 7 } },
    { event_type: "confirmation_awaited", quote: { worst_usd: 0.0025, likely_usd: 0.001, calls: 7 } },
  ],
  [{ event: "group_confirmed" }, { event_type: "group_confirmed" }],
  [
    { event: "group_paused", reason: { reason: "budget_exhausted", ...BUDGET } },
    {
      event_type: "group_paused",
      code: "budget_exhausted",
      dimension: "usd",
      limit: 0.5,
      spent: 0.25,
      reserved: 0.125,
      needed: 0.2,
    },
  ],
  [
    { event: "group_resumed", pausedMs: 12 },
    { event_type: "group_resumed", paused_ms: 12 },
  ],
  [
    { event: "budget_refused", ...SLOT, reason: { reason: "budget_exhausted", ...BUDGET } },
    {
      event_type: "budget_refused",
      ...SLOT_SHOWN,
      code: "budget_exhausted",
      dimension: "usd",
      limit: 0.5,
      spent: 0.25,
      reserved: 0.125,
      needed: 0.2,
    },
  ],
  [
    { event: "tool_called", tool: "search", reason: null, status: 200, latencyMs: 12, bytes: 34, attempts: 1 },
    {
      event_type: "tool_called",
      tool: "search",
      ok: true,
      status: 200,
      code: null,
      latency_ms: 12,
      bytes: 34,
      attempts: 1,
    },
  ],
  [
    {
      event: "tool_called",
      tool: "search",
      reason: { reason: "upstream_timeout", upstream: "tool search", timeoutMs: 5 },
      status: null,
      latencyMs: 5,
      bytes: 0,
      attempts: 2,
    },
    {
      event_type: "tool_called",
      tool: "search",
      ok: false,
      status: null,
      code: "upstream_timeout",
      latency_ms: 5,
      bytes: 0,
      attempts: 2,
    },
  ],
  [
    { event: "overrun", ...ATTEMPT, dimensions: ["usd"], reserved: zeroAmounts(), charged: AMOUNTS },
    {
      event_type: "overrun",
      ...ATTEMPT_SHOWN,
      dimensions: ["usd"],
      reserved: { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 },
      charged: AMOUNTS_SHOWN,
    },
  ],
];

describe("a line of the log", () => {
  it.each(CASES.map(([event, shown]) => [event.event, event, shown] as const))(
    "says %s with these facts and no others",
    (_, event, shown) => {
      expect(lineOf(event)).toEqual({ ...COMMON, ...shown });
    },
  );

  it("begins with its number and its time, which readers of a stream look for first", () => {
    const stored = JSON.stringify({ atMs: AT_MS, group: null, event: "run_closed", status: "closed" });
    const [line] = eventLines({ last: 1, lines: stored }, { id: "run_1", parentId: null, depth: 0 });
    expect(line?.json).toBe(
      '{"seq":1,"ts":"2026-11-21T13:00:00.123Z","run_id":"run_1","parent_run_id":null,"parallel_group_id":null,' +
        '"depth":0,"step":null,"event_type":"run_closed","status":"closed"}',
    );
  });

  it("never holds a line break, whatever models, upstreams or clients wrote", () => {
    const hostile = "a\nb\r\n\u2028data: x";
    const line = JSON.stringify({
      atMs: AT_MS,
      group: null,
      event: "slot_completed",
      ...SLOT,
      ...ENDED,
      status: "failed",
      reason: { ...FAILED, message: hostile },
      startedAtMs: null,
    });
    const [told] = eventLines({ last: 1, lines: line }, RUN);
    expect(told?.json).not.toMatch(/[\n\r]/);
    expect(JSON.parse(told?.json ?? "")).toMatchObject({ message: expect.stringContaining("a\nb") });
  });
});

describe("a row of the log", () => {
  it("numbers its lines backwards from the one it is named by", () => {
    const stored = (status: string): string => JSON.stringify({ atMs: 0, group: null, event: "run_closed", status });
    const row = { last: 42, lines: ["closed", "expired", "cancelled"].map(stored).join("\n") };
    expect(eventLines(row, RUN).map(({ seq, json }) => [seq, JSON.parse(json).seq, JSON.parse(json).status])).toEqual([
      [40, 40, "closed"],
      [41, 41, "expired"],
      [42, 42, "cancelled"],
    ]);
  });
});

describe("a client's own event", () => {
  const told = (json: string, group: string | null = null) => lineOf({ event: "client", json }, group);

  it("has its own name and facts beside what the gateway says", () => {
    const json = '{"event_type":"final_result","output":"42","hasError":false,"step":7,"data":{"a":[1]}}';
    expect(told(json)).toEqual({
      ...COMMON,
      parallel_group_id: null,
      step: 7,
      event_type: "final_result",
      output: "42",
      hasError: false,
      data: { a: [1] },
    });
  });

  it("names the group that it says it belongs to", () => {
    const json = JSON.stringify({ event_type: "note", parallel_group_id: GROUP });
    expect(told(json, GROUP)).toMatchObject({ parallel_group_id: GROUP, event_type: "note" });
  });

  it("keeps to its own fields: what looks like the gateway's inside its data stays there", () => {
    const data = { seq: 1, ts: "1970-01-01T00:00:00.000Z", run_id: "run_other", event_type: "run_closed" };
    const json = JSON.stringify({ event_type: "note", data, usage: data, output: '"},\n{"seq":18,"event_type":"x"' });
    const line = told(json);
    expect(line).toMatchObject({ ...COMMON, parallel_group_id: null, event_type: "note", data, usage: data });
    expect(line["output"]).toBe('"},\n{"seq":18,"event_type":"x"');
  });

  it("cannot say what the gateway says, should such a field ever have been stored", () => {
    const forged = { seq: 1, ts: "never", run_id: "run_other", parent_run_id: "run_other", depth: 9 };
    expect(told(JSON.stringify({ ...forged, event_type: "note" }))).toMatchObject({
      seq: 17,
      ts: COMMON.ts,
      run_id: "run_1",
      parent_run_id: "run_0",
      depth: 1,
      event_type: "note",
    });
  });

  it("is in its line as it is stored, character for character, after what every line begins with", () => {
    const own = '"code":"é\\u2028","output":"\\"step\\":1","data":{"a":1.50}}';
    const begin =
      '{"seq":17,"ts":"2026-11-21T13:00:00.123Z","run_id":"run_1","parent_run_id":"run_0","parallel_group_id":';
    for (const [head, group, line] of [
      ['{"event_type":"note",', null, `${begin}null,"depth":1,"step":null,"event_type":"note",`],
      ['{"event_type":"note","step":3,', null, `${begin}null,"depth":1,"step":3,"event_type":"note",`],
      [
        `{"event_type":"note","parallel_group_id":"${GROUP}","step":0,`,
        GROUP,
        `${begin}"${GROUP}","depth":1,"step":0,"event_type":"note",`,
      ],
    ] as const) {
      expect(textOf({ event: "client", json: head + own }, group)).toBe(line + own);
    }
  });

  it("that has nothing but a name is a whole line", () => {
    expect(told('{"event_type":"note"}')).toEqual({ ...COMMON, parallel_group_id: null, event_type: "note" });
  });

  it("has no field twice, wherever a field of its own stands", () => {
    const json = '{"data":{"run_id":"other"},"step":2,"event_type":"note","parallel_group_id":null,"depth":7}';
    const text = textOf({ event: "client", json }, null);
    for (const name of ["step", "event_type", "parallel_group_id", "depth"])
      expect(text.split(`"${name}":`)).toHaveLength(2);
    expect(JSON.parse(text)).toMatchObject({ step: 2, event_type: "note", depth: 1, run_id: "run_1" });
  });

  it("leaves objects as they are when it brings a __proto__ inside its data", () => {
    const line = told('{"event_type":"note","data":{"__proto__":{"polluted":true},"constructor":1}}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(JSON.stringify(line["data"])).toBe('{"__proto__":{"polluted":true},"constructor":1}');
  });
});
