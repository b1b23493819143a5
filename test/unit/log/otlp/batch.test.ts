import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { LoggedEvent, RunEvent } from "../../../../src/run/log.ts";
import {
  OTLP_BODY_CHARS_MAX,
  OTLP_INTERVAL_MS,
  OTLP_RETRY_MS,
  OTLP_SPANS_MAX,
  OTLP_TEXT_CHARS_MAX,
  OTLP_TRIES_MAX,
} from "../../../../src/limits.ts";
import { afterPost, EXPORT_START, nextBatch, pauseMs, resultOf } from "../../../../src/log/otlp/batch.ts";
import { otlpRequest } from "../../../../src/log/otlp/body.ts";
import type { TracedRun } from "../../../../src/log/otlp/spans.ts";
import { attributeOf, spansIn, type OtlpSpan } from "../../../support/collector.ts";

const RUN: TracedRun = {
  id: "run_1",
  parentId: null,
  name: null,
  createdAtMs: 1_000,
  traceOfGroup: () => null,
  attemptIdOf: ({ group, index, callId, attempt }) => `${callId ?? `${group} ${index}`}.${attempt}`,
};
const FAILED = { reason: "upstream_error", upstream: "acme", status: 503, message: "busy", retryable: true } as const;

function attempt(
  callId: string,
  { attempt: number = 1, model = "m", failed = false, estimated = false } = {},
): RunEvent {
  return {
    ...{ event: "attempt_ended", index: null, callId, attempt: number, upstream: "acme", model, estimated },
    ...{ outcome: failed ? "transient" : "success", reason: failed ? FAILED : null, latencyMs: 40 },
    charged: { usd: 2_000_000_000, calls: 1, prompt_tokens: 20, completion_tokens: 30, new_tokens: 50 },
  };
}

function call(callId: string, startedAtMs: number | null, endedAtMs: number): RunEvent {
  return {
    ...{ event: "slot_completed", index: null, callId, status: "completed", attempts: 1, reason: null, model: "m-2" },
    ...{
      finishReason: "stop",
      usage: { promptTokens: 20, completionTokens: 30, costNanoUsd: 5 },
      startedAtMs,
      endedAtMs,
    },
  };
}

/** Stored rows of at most `size` events; every event at 2,000 ms, in no group. */
function rowsOf(events: RunEvent[], size = 3): { last: number; lines: string }[] {
  const lines = events.map((event) => JSON.stringify({ atMs: 2_000, group: null, ...event } satisfies LoggedEvent));
  const rows = [];
  for (let at = 0; at < lines.length; at += size) {
    const part = lines.slice(at, at + size);
    rows.push({ last: at + part.length, lines: part.join("\n") });
  }
  return rows;
}

async function exported(
  events: RunEvent[],
  run: Parameters<typeof otlpRequest>[1] = RUN,
  droppedEvents = 0,
): Promise<OtlpSpan[]> {
  const { spans } = nextBatch(rowsOf(events), 0, run);
  const hash = (text: string) => Promise.resolve(createHash("sha256").update(text).digest("hex"));
  return spansIn(JSON.stringify(await otlpRequest(spans, run, { hash, version: "1", droppedEvents })));
}

describe("the spans of a log", () => {
  it("have the names of OpenTelemetry's conventions for generative AI, and a failure its code", async () => {
    const [good, bad, lost] = await exported([
      attempt("a"),
      attempt("b", { failed: true }),
      attempt("c", { estimated: true }),
    ]);
    if (good === undefined || bad === undefined || lost === undefined) throw new Error("three spans were expected");
    const shown = ["operation.name", "provider.name", "request.model", "usage.input_tokens", "usage.output_tokens"];
    expect(shown.map((name) => attributeOf(good, `gen_ai.${name}`))).toEqual(["chat", "acme", "m", "20", "30"]);
    expect([good.name, good.kind, good.status]).toEqual(["chat m", 3, {}]);
    expect([good.startTimeUnixNano, good.endTimeUnixNano]).toEqual(["1960000000", "2000000000"]);
    expect(attributeOf(good, "fanout.cost_usd")).toBe(2);
    expect(bad.status).toEqual({ code: 2, message: "upstream_error" });
    expect(attributeOf(bad, "error.type")).toBe("upstream_error");
    // The charge of a lost attempt is a reservation.
    expect(attributeOf(lost, "gen_ai.usage.input_tokens")).toBeUndefined();
  });

  it("form a tree whose ids are the same each time, and differ between runs", async () => {
    const events: RunEvent[] = [attempt("a"), call("a", 1_900, 2_000), { event: "run_closed", status: "closed" }];
    const [first, second, run] = await exported(events);
    expect(first?.parentSpanId).toBe(second?.spanId);
    expect(second?.parentSpanId).toBe(run?.spanId);
    expect(run?.parentSpanId).toBeUndefined();
    expect(await exported(events)).toEqual([first, second, run]);
    const other = await exported(events, { ...RUN, id: "run_2" });
    const ids = [...other, first, second, run].flatMap((span) => [span?.spanId]);
    expect(new Set(ids).size).toBe(6);
    expect(other[0]?.traceId).not.toBe(first?.traceId);
  });

  it("let a retried call begin with its first attempt, and give one that never started no length", async () => {
    const retried = [attempt("a", { failed: true }), attempt("a", { attempt: 2 }), call("a", 1_990, 2_000)];
    const [, , again, never] = await exported([...retried, call("b", null, 2_000)]);
    expect(again?.startTimeUnixNano).toBe("1960000000");
    expect(never?.startTimeUnixNano).toBe("2000000000");
  });

  it("link a child run to its parent, and say on the run's span what was dropped", async () => {
    const closed: RunEvent = { event: "run_closed", status: "closed" };
    const [parent] = await exported([closed], { ...RUN, id: "run_0" });
    const [child] = await exported([closed], { ...RUN, parentId: "run_0" }, 9);
    expect(child?.links).toEqual([{ traceId: parent?.traceId, spanId: parent?.spanId }]);
    if (child === undefined || parent === undefined) throw new Error("a span was expected");
    expect(attributeOf(child, "fanout.dropped_events")).toBe("9");
    expect(attributeOf(parent, "fanout.dropped_events")).toBeUndefined();
  });

  it("hold a bounded part of a text, cut between characters", async () => {
    const [span] = await exported([attempt("a", { model: `${"x".repeat(OTLP_TEXT_CHARS_MAX - 1)}\u{1f600}` })]);
    const [whole] = await exported([attempt("a", { model: "y".repeat(OTLP_TEXT_CHARS_MAX) })]);
    if (span === undefined || whole === undefined) throw new Error("a span was expected");
    expect(attributeOf(span, "gen_ai.request.model")).toBe(`${"x".repeat(OTLP_TEXT_CHARS_MAX - 1)}\ufffd`);
    expect(attributeOf(whole, "gen_ai.request.model")).toBe("y".repeat(OTLP_TEXT_CHARS_MAX));
  });
});

describe("a request's part of a log", () => {
  it("has at most so many spans, and the next continues behind them without a gap", () => {
    const events = Array.from({ length: OTLP_SPANS_MAX + 1 }, (_, at) => attempt(`c${at}`));
    const rows = rowsOf(events, 100);
    const first = nextBatch(rows, 0, RUN);
    expect([first.spans.length, first.lastSeq]).toEqual([OTLP_SPANS_MAX, OTLP_SPANS_MAX]);
    const rest = nextBatch(rows, first.lastSeq, RUN);
    expect(rest.spans.map(({ key }) => key)).toEqual([`attempt c${OTLP_SPANS_MAX}.1`]);
    expect(rest.lastSeq).toBe(OTLP_SPANS_MAX + 1);
    expect(nextBatch(rows, rest.lastSeq, RUN)).toEqual({ spans: [], lastSeq: rest.lastSeq });
    const all = nextBatch(rowsOf(events.slice(1), 100), 0, RUN);
    expect([all.spans.length, all.lastSeq]).toEqual([OTLP_SPANS_MAX, OTLP_SPANS_MAX]);
  });

  it("goes over events that end no span", () => {
    const events: RunEvent[] = [{ event: "client", json: "{}" }, attempt("a"), { event: "client", json: "{}" }];
    const { spans, lastSeq } = nextBatch(rowsOf(events, 2), 0, RUN);
    expect([spans.length, lastSeq]).toEqual([1, 3]);
  });

  it("has at most so many characters, but at least one span", () => {
    const id = (at: number) => `${at}${"i".repeat(OTLP_BODY_CHARS_MAX / 4)}`;
    const { spans } = nextBatch(rowsOf([1, 2, 3].map((at) => attempt(id(at)))), 0, RUN);
    expect(spans).toHaveLength(1);
    expect(nextBatch(rowsOf([attempt("i".repeat(OTLP_BODY_CHARS_MAX))]), 0, RUN).spans).toHaveLength(1);
  });
});

describe("the position after a post", () => {
  it("moves with what was accepted, and counts what was refused", () => {
    const cursor = { seq: 10, tries: 2, dropped: 3 };
    expect(afterPost(cursor, 20, { result: "accepted", logSeq: 50 })).toEqual({ seq: 20, tries: 0, dropped: 3 });
    expect(afterPost(cursor, 20, { result: "refused", logSeq: 50 })).toEqual({ seq: 20, tries: 0, dropped: 13 });
  });

  it("stays while the collector is away, until the last try drops all that there is", () => {
    let cursor = EXPORT_START;
    for (let tries = 1; tries < OTLP_TRIES_MAX; tries++) {
      cursor = afterPost(cursor, 20, { result: "failed", logSeq: 50 });
      expect(cursor).toEqual({ seq: 0, tries, dropped: 0 });
      expect(pauseMs(cursor)).toBe(OTLP_RETRY_MS * 2 ** (tries - 1));
    }
    cursor = afterPost(cursor, 20, { result: "failed", logSeq: 50 });
    expect(cursor).toEqual({ seq: 50, tries: 0, dropped: 50 });
    expect(pauseMs(cursor)).toBe(OTLP_INTERVAL_MS);
  });

  it.each([
    [200, "accepted"],
    [202, "accepted"],
    [302, "refused"],
    [400, "refused"],
    [401, "refused"],
    [500, "refused"],
    [429, "failed"],
    [502, "failed"],
    [503, "failed"],
    [504, "failed"],
    [null, "failed"],
  ])("takes the status %s for %s, as OTLP says", (status, result) => {
    expect(resultOf(status)).toBe(result);
  });
});
