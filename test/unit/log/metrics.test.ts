import { describe, expect, it } from "vitest";
import {
  addAttempt,
  addSheet,
  METER_OUTCOMES,
  sheetSince,
  type MeteredAttempt,
  type MeterSheet,
} from "../../../src/gate/meter.ts";
import type { GateStatus } from "../../../src/gate/wire.ts";
import { METERED_MODELS_MAX, METRICS_SERIES_MAX } from "../../../src/limits.ts";
import { exposition } from "../../../src/log/metrics/exposition.ts";
import { metricFamilies, type MeasuredGate, type ReadGate } from "../../../src/log/metrics/metrics.ts";

const STATUS: GateStatus = {
  epoch: 1,
  class: "open",
  reason: null,
  width: null,
  inFlight: 2,
  permits: null,
  buckets: {},
  waiting: 1,
  runs: 1,
  waitMs: 0,
  stop: null,
  lastError: null,
};

function attempt(fields: Partial<MeteredAttempt> = {}): MeteredAttempt {
  const charge = { calls: 1, promptTokens: 10, completionTokens: 4, costNanoUsd: 2_000 };
  return { upstream: "up", model: "m", outcome: "success", charge, latencyMs: 700, queuedMs: 5, ...fields };
}

function sheetOf(...attempts: MeteredAttempt[]): MeterSheet {
  const sheet: MeterSheet = {};
  for (const each of attempts) addAttempt(sheet, each, METERED_MODELS_MAX);
  return sheet;
}

function gate(
  sheet: MeterSheet,
  { upstream = "up", key = null, status = STATUS }: Partial<Omit<MeasuredGate, "read"> & ReadGate> = {},
): MeasuredGate {
  return { upstream, key, read: { status, sheet } };
}

const linesOf = (gates: MeasuredGate[]): string[] =>
  exposition(metricFamilies({ gates, unreadRuns: 0 }))
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

describe("GET /metrics", () => {
  it("counts attempts by outcome, and sums tokens and dollars", () => {
    const lines = linesOf([
      gate(
        sheetOf(
          attempt(),
          attempt(),
          attempt({ outcome: "rejected", charge: { calls: 1, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 } }),
        ),
      ),
    ]);
    expect(lines).toContain('fanout_calls_total{upstream="up",model="m",outcome="success"} 2');
    expect(lines).toContain('fanout_calls_total{upstream="up",model="m",outcome="rejected"} 1');
    expect(lines).toContain('fanout_tokens_total{upstream="up",model="m",direction="prompt",outcome="success"} 20');
    expect(lines).toContain('fanout_cost_usd_total{upstream="up",model="m",outcome="success"} 0.000004');
  });

  it("sums the keys of an upstream, and shows each key's gate", () => {
    const sheet = sheetOf(attempt());
    const lines = linesOf([gate(sheet, { key: "secret:A" }), gate(sheet, { key: "secret:B" })]);
    expect(lines).toContain('fanout_calls_total{upstream="up",model="m",outcome="success"} 2');
    expect(lines).toContain('fanout_gate_in_flight{upstream="up",key="secret:B"} 2');
  });

  it("leaves out what an upstream has used one of whose gates does not reply, names that gate, and shows the others", () => {
    const sheet = sheetOf(attempt());
    const other = sheetOf(attempt({ upstream: "other" }));
    const lost: MeasuredGate = { upstream: "up", key: "secret:B", read: null };
    const lines = linesOf([gate(sheet, { key: "secret:A" }), lost, gate(other, { upstream: "other" })]);
    expect(lines.filter((line) => line.startsWith("fanout_calls_total"))).toEqual([
      'fanout_calls_total{upstream="other",model="m",outcome="success"} 1',
    ]);
    expect(lines).toContain('fanout_gate_unread{upstream="up",key="secret:B"} 1');
    expect(lines).toContain('fanout_gate_in_flight{upstream="up",key="secret:A"} 2');
    expect(lines.join()).not.toContain('fanout_gate_in_flight{upstream="up",key="secret:B"}');
  });

  it.each([
    [500, "0.5"],
    [501, "1.0"],
    [120_000, "120.0"],
    [120_001, "+Inf"],
  ])("counts a latency of %i ms from the bucket %s on", (latencyMs, le) => {
    const buckets = linesOf([gate(sheetOf(attempt({ latencyMs })))]).filter((line) =>
      line.startsWith("fanout_latency_seconds_bucket"),
    );
    const first = buckets.find((line) => line.endsWith(" 1"));
    expect(first).toContain(`le="${le}"`);
    expect(buckets.at(-1)).toContain('le="+Inf"} 1');
  });

  it("counts only first attempts in the queue, and only successes in the latency", () => {
    const lines = linesOf([gate(sheetOf(attempt({ queuedMs: null }), attempt({ outcome: "unknown" })))]);
    expect(lines).toContain('fanout_queue_seconds_count{upstream="up",model="m"} 1');
    expect(lines).toContain('fanout_latency_seconds_count{upstream="up",model="m"} 1');
  });

  it("counts hedges apart, over all keys, and shows none where there were none", () => {
    const hedged = sheetOf(attempt(), attempt({ outcome: "unknown", isHedge: true }));
    const lines = linesOf([gate(hedged, { key: "secret:A" }), gate(hedged, { key: "secret:B" })]);
    expect(lines).toContain('fanout_hedges_total{upstream="up",model="m"} 2');
    expect(linesOf([gate(sheetOf(attempt()))]).join()).not.toContain("fanout_hedges");
  });

  it("lets no model's name write a line of its own", () => {
    const model = 'a"} 1\nfanout_calls_total{x="\\';
    const lines = linesOf([gate(sheetOf(attempt({ model })))]);
    expect(lines.filter((line) => line.startsWith("fanout_calls_total"))).toEqual([
      'fanout_calls_total{upstream="up",model="a\\"} 1\\nfanout_calls_total{x=\\"\\\\",outcome="success"} 1',
    ]);
  });

  it.each([[1], [5], [50]])(
    "has at most 2,000 series at 50 models of %i upstreams, and each model apart at one",
    (upstreams) => {
      const gates = Array.from({ length: upstreams }, (_, at): MeasuredGate => {
        const models = Array.from({ length: 50 / upstreams }, (__, index) => `m${index}`);
        const all = models.flatMap((model) =>
          METER_OUTCOMES.map((outcome) => attempt({ upstream: `up${at}`, model, outcome })),
        );
        return gate(sheetOf(...all), { upstream: `up${at}`, status: { ...STATUS, width: 8, permits: 8 } });
      });
      const lines = linesOf(gates);
      expect(lines.length).toBeLessThanOrEqual(METRICS_SERIES_MAX);
      const calls = lines.filter((line) => line.startsWith("fanout_calls_total"));
      expect(calls.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)).toBe(50 * METER_OUTCOMES.length);
      if (upstreams === 1) expect(calls).toHaveLength(50 * METER_OUTCOMES.length);
    },
  );
});

describe("a sheet", () => {
  it("counts models beyond its bound together, under a name that no prototype has", () => {
    const models = ["__proto__", "constructor", "a", "b"];
    const sheet: MeterSheet = {};
    for (const model of models) addAttempt(sheet, attempt({ model }), 2);
    expect(Object.keys(sheet)).toEqual(["up/__proto__", "up/constructor", "up/(other)"]);
    expect(sheet["up/(other)"]?.outcomes.success?.calls).toBe(2);
  });

  it("has more than an earlier one what was counted between them", () => {
    const before = sheetOf(attempt({ isHedge: true }), attempt({ model: "b" }));
    const more = [
      attempt({ latencyMs: 9_000 }),
      attempt({ outcome: "unknown", isHedge: true }),
      attempt({ model: "c" }),
    ];
    const now = sheetOf(attempt({ isHedge: true }), attempt({ model: "b" }), ...more);
    const sum = structuredClone(before);
    addSheet(sum, sheetSince(now, before), METERED_MODELS_MAX);
    expect(sum).toEqual(now);
  });

  it("adds up to the same, whether attempts were counted apart or together", () => {
    const [first, second] = [attempt(), attempt({ outcome: "failed", latencyMs: 9_000, queuedMs: 70_000 })];
    const apart = sheetOf(first);
    addSheet(apart, sheetOf(second), METERED_MODELS_MAX);
    expect(apart).toEqual(sheetOf(first, second));
  });
});
