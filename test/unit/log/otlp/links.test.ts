/** Where the spans of calls, groups and runs are if their clients send a traceparent. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { LoggedEvent, RunEvent } from "../../../../src/run/log.ts";
import { nextBatch } from "../../../../src/log/otlp/batch.ts";
import { otlpRequest } from "../../../../src/log/otlp/body.ts";
import type { TracedRun } from "../../../../src/log/otlp/spans.ts";
import type { TraceContext } from "../../../../src/trace-context.ts";
import { spansIn, type OtlpSpan } from "../../../support/collector.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const SAMPLED: TraceContext = { parent: `00-${TRACE}-${SPAN}-01`, state: "vendor=1" };
const UNSAMPLED: TraceContext = { parent: `00-${TRACE}-${SPAN}-00`, state: "vendor=1" };
const SERVER = 2;
const INTERNAL = 1;

const PLAIN: TracedRun = {
  id: "run_1",
  parentId: null,
  name: null,
  createdAtMs: 1,
  traceOfGroup: () => null,
  attemptIdOf: ({ group, index, callId, attempt }) => `${callId ?? `${group} ${index}`}.${attempt}`,
};
const CLOSED: LoggedEvent = { atMs: 9, group: null, event: "run_closed", status: "closed" };

type Place = { group?: string | null; index?: number | null; callId?: string | null; trace?: TraceContext };

function attempt({ group = null, index = null, callId = null, trace }: Place): LoggedEvent {
  const name = { index, callId, attempt: 1, upstream: "acme", model: "m" };
  const charged = { usd: 1, calls: 1, prompt_tokens: 2, completion_tokens: 3, new_tokens: 5 };
  const ended = { outcome: "success" as const, reason: null, latencyMs: 4, estimated: false, charged };
  const traced = trace === undefined ? {} : { trace: { parent: trace.parent } };
  return { atMs: 6, group, event: "attempt_ended", ...name, ...ended, ...traced };
}

function call({ group = null, index = null, callId = null, trace }: Place): LoggedEvent {
  const usage = { promptTokens: 2, completionTokens: 3, costNanoUsd: 1 };
  const ended = { status: "completed" as const, attempts: 1, reason: null, model: "m", finishReason: "stop" };
  const times = { startedAtMs: 3, endedAtMs: 6 };
  const traced = trace === undefined ? {} : { trace };
  return { atMs: 6, group, event: "slot_completed", index, callId, ...ended, usage, ...times, ...traced };
}

function groupOf(id: string): LoggedEvent {
  const metrics = { wall_ms: 5, sequential_ms: 4, speedup: 1, peak_parallel: 1, success_rate: 1 };
  const counts = { count: 1, completed: 1, failed: 0, cancelled: 0, costNanoUsd: 1 };
  const event: RunEvent = { event: "group_completed", status: "completed", metrics, ...counts };
  return { atMs: 7, group: id, ...event };
}

async function exported(events: LoggedEvent[], run: TracedRun): Promise<OtlpSpan[]> {
  const lines = events.map((event) => JSON.stringify(event)).join("\n");
  const { spans } = nextBatch([{ last: events.length, lines }], 0, run);
  const hash = (text: string) => Promise.resolve(createHash("sha256").update(text).digest("hex"));
  return spansIn(JSON.stringify(await otlpRequest(spans, run, { hash, version: "1", droppedEvents: 0 })));
}

/** The spans of one export, of which there are as many as names. */
async function spansOf<Name extends string>(names: Name[], events: LoggedEvent[], run: TracedRun) {
  const spans = await exported(events, run);
  const of = (name: Name): OtlpSpan => {
    const span = spans[names.indexOf(name)];
    if (span === undefined || spans.length !== names.length) throw new Error(`${name} is not exported`);
    return span;
  };
  return of;
}

describe("a traceparent that its client records", () => {
  it("makes a batch a child of the client's span, with its calls and attempts below it, and a link to its run", async () => {
    const run = { ...PLAIN, traceOfGroup: (id: string) => (id === "pg-1" ? SAMPLED : null) };
    const slot = { group: "pg-1", index: 0 };
    const events = [attempt(slot), call(slot), groupOf("pg-1"), CLOSED];
    const of = await spansOf(["attempt", "call", "group", "run"], events, run);
    expect(of("group")).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, traceState: "vendor=1", kind: SERVER });
    expect(of("group").links).toEqual([{ traceId: of("run").traceId, spanId: of("run").spanId }]);
    expect(of("call")).toMatchObject({ traceId: TRACE, parentSpanId: of("group").spanId, kind: INTERNAL });
    expect(of("attempt")).toMatchObject({ traceId: TRACE, parentSpanId: of("call").spanId });
    expect(of("run").traceId).not.toBe(TRACE);
    expect(of("run").parentSpanId).toBeUndefined();
  });

  it("makes a single call a child of the client's span, with a link to the group in which it came", async () => {
    const single = { group: "pg-window", callId: "c", trace: SAMPLED };
    const events = [attempt(single), call(single), call({ group: "pg-window", callId: "d" }), groupOf("pg-window")];
    const of = await spansOf(["attempt", "call", "other", "group"], events, PLAIN);
    expect(of("call")).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, traceState: "vendor=1", kind: SERVER });
    expect(of("call").links).toEqual([{ traceId: of("group").traceId, spanId: of("group").spanId }]);
    expect(of("attempt")).toMatchObject({ traceId: TRACE, parentSpanId: of("call").spanId });
    // The other call of the group came from a client without one.
    expect(of("other")).toMatchObject({ traceId: of("group").traceId, parentSpanId: of("group").spanId });
    expect(of("group").traceId).not.toBe(TRACE);
  });

  it("holds for a single call that is stored as a group, too", async () => {
    const run = { ...PLAIN, traceOfGroup: (id: string) => (id === "pg-own" ? SAMPLED : null) };
    const stored = { group: null, callId: "pg-own" };
    const of = await spansOf(["attempt", "call", "run"], [attempt(stored), call(stored), CLOSED], run);
    expect(of("call")).toMatchObject({ traceId: TRACE, parentSpanId: SPAN });
    expect(of("call").links).toEqual([{ traceId: of("run").traceId, spanId: of("run").spanId }]);
    expect(of("attempt")).toMatchObject({ traceId: TRACE, parentSpanId: of("call").spanId });
  });

  it("puts a run with all that sends none of its own into the client's trace", async () => {
    const run = { ...PLAIN, trace: SAMPLED };
    const of = await spansOf(["call", "run"], [call({ callId: "c" }), CLOSED], run);
    expect(of("run")).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: SERVER });
    expect(of("run").links).toBeUndefined();
    expect(of("call")).toMatchObject({ traceId: TRACE, parentSpanId: of("run").spanId, kind: INTERNAL });
  });

  it("of a run is where the links of its child runs lead", async () => {
    const parent = await spansOf(["run"], [CLOSED], { ...PLAIN, trace: SAMPLED });
    const child = { ...PLAIN, id: "run_2", parentId: "run_1", parentTrace: SAMPLED };
    const of = await spansOf(["run"], [CLOSED], child);
    expect(of("run").links).toEqual([{ traceId: TRACE, spanId: parent("run").spanId }]);
    expect(of("run").traceId).not.toBe(TRACE);
  });
});

describe("a traceparent that its client does not record", () => {
  it("hides nothing from the operator: the spans stay in the run's trace, with a link to the client's span", async () => {
    const run = { ...PLAIN, trace: UNSAMPLED, traceOfGroup: () => UNSAMPLED };
    const slot = { group: "pg-1", index: 0 };
    const of = await spansOf(
      ["attempt", "call", "group", "run"],
      [attempt(slot), call(slot), groupOf("pg-1"), CLOSED],
      run,
    );
    const link = { traceId: TRACE, spanId: SPAN, traceState: "vendor=1" };
    const { traceId } = of("run");
    expect(traceId).not.toBe(TRACE);
    expect(of("group")).toMatchObject({ traceId, parentSpanId: of("run").spanId, kind: INTERNAL, links: [link] });
    expect(of("run").links).toEqual([link]);
    for (const name of ["call", "attempt"] as const) {
      expect(of(name).traceId).toBe(traceId);
      expect(of(name).links).toBeUndefined();
    }
  });
});
