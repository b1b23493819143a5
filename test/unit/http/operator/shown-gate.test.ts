import { describe, expect, it } from "vitest";
import type { GateStatus } from "../../../../src/gate/wire.ts";
import { shownGate } from "../../../../src/http/operator/shown-gate.ts";

const NOW_MS = Date.UTC(2026, 10, 22, 12, 0, 0);

const OPEN: GateStatus = {
  epoch: 1,
  class: "open",
  reason: null,
  width: null,
  inFlight: 0,
  permits: null,
  buckets: {},
  waiting: 0,
  runs: 0,
  waitMs: 0,
  stop: null,
  lastError: null,
};

describe("a gate as the operator sees it", () => {
  it("has every field, null where nothing is known", () => {
    expect(shownGate(OPEN, NOW_MS)).toEqual({
      class: "open",
      reason: null,
      width: null,
      in_flight: 0,
      permits: null,
      waiting: 0,
      runs: 0,
      wait_ms: 0,
      buckets: { requests: null, tokens: null, input_tokens: null, output_tokens: null },
      stopped: null,
      last_error: null,
      latency: [],
      busy_models: [],
    });
  });

  it("names the models that are overloaded by themselves", () => {
    expect(shownGate({ ...OPEN, busyModels: [{ model: "m", waitMs: 400 }] }, NOW_MS).busy_models).toEqual([
      { model: "m", reason: "overloaded", wait_ms: 400 },
    ]);
  });

  it("shows how long the calls of each model take", () => {
    const latency = [{ model: "m", ttfbP50Ms: 200, ttfbP95Ms: null, p95Ms: 4_000, samples: 30 }];
    expect(shownGate({ ...OPEN, latency }, NOW_MS).latency).toEqual([
      { model: "m", ttfb_p50_ms: 200, ttfb_p95_ms: null, p95_ms: 4_000, samples: 30 },
    ]);
  });

  it("shows its buckets with the time at which they are full, and never less than nothing in them", () => {
    const buckets = {
      requests: { limit: 500, remaining: 12.7, resetMs: 58_000 },
      inputTokens: { limit: 30_000, remaining: -40, resetMs: 60_000 },
    };
    expect(shownGate({ ...OPEN, class: "paced", reason: "requests_per_minute", buckets }, NOW_MS)).toMatchObject({
      class: "paced",
      reason: "requests_per_minute",
      buckets: {
        requests: { limit: 500, remaining: 12, reset_at: "2026-11-22T12:00:58.000Z" },
        tokens: null,
        input_tokens: { limit: 30_000, remaining: 0, reset_at: "2026-11-22T12:01:00.000Z" },
        output_tokens: null,
      },
    });
  });

  it("says why it is stopped, since when, and when the next call tries it", () => {
    const stop = { reason: "insufficient_quota", forMs: 90_000, message: "no credit", nextProbeInMs: 30_000 } as const;
    const lastError = { class: "stopped", message: "no credit", forMs: 2_000 } as const;
    expect(shownGate({ ...OPEN, class: "stopped", reason: "stopped", stop, lastError }, NOW_MS)).toMatchObject({
      class: "stopped",
      reason: "insufficient_quota",
      stopped: { since: "2026-11-22T11:58:30.000Z", message: "no credit", next_probe_at: "2026-11-22T12:00:30.000Z" },
      last_error: { class: "stopped", message: "no credit", at: "2026-11-22T11:59:58.000Z" },
    });
  });
});
