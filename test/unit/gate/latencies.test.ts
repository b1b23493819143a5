import { describe, expect, it } from "vitest";
import { LatencyChanges, lineOf } from "../../../src/run/gates/latency-changes.ts";
import { Latencies } from "../../../src/gate/latencies.ts";
import type { ModelLatency } from "../../../src/gate/wire.ts";
import { GATE_MODELS_MAX, HEDGE_SAMPLES_MIN, SKETCH_FADES_AT } from "../../../src/limits.ts";

/** What runs report of attempts at a model that took so long, with the first byte after a tenth of it. */
function reported(model: string, latenciesMs: readonly number[]): readonly ModelLatency[] {
  const news = new LatencyChanges();
  for (const latencyMs of latenciesMs)
    news.answered({ model, latencyMs, ttfb: { ms: latencyMs / 10, line: lineOf(latencyMs, null) } });
  return news.reported?.models ?? [];
}

const HUNDRED = Array.from({ length: 100 }, (_, at) => (at + 1) * 100);
const isNear = (value: number | null | undefined, expected: number): boolean =>
  value !== null && value !== undefined && Math.abs(value - expected) <= expected * 0.05;

describe("the times of a key's models", () => {
  it("are those of all runs, within a twentieth", () => {
    const latencies = new Latencies();
    latencies.add(reported("m", HUNDRED.slice(0, 30)));
    latencies.add(reported("m", HUNDRED.slice(30)));
    latencies.add(reported("a", [50]));
    const [a, m] = latencies.status();
    expect([a?.model, a?.samples, m?.model, m?.samples]).toEqual(["a", 1, "m", 100]);
    expect(isNear(m?.p95Ms, 9_500)).toBe(true);
    expect(isNear(m?.ttfbP50Ms, 500)).toBe(true);
    expect(isNear(m?.ttfbP95Ms, 950)).toBe(true);
  });

  it("have no first byte where none was measured", () => {
    const news = new LatencyChanges();
    news.answered({ model: "m", latencyMs: 40 });
    const latencies = new Latencies();
    latencies.add(news.reported?.models ?? []);
    expect(latencies.status()).toMatchObject([{ model: "m", ttfbP50Ms: null, ttfbP95Ms: null, samples: 1 }]);
  });

  it("are known once enough calls were answered to call one slow", () => {
    const latencies = new Latencies();
    latencies.add(reported("m", HUNDRED.slice(0, HEDGE_SAMPLES_MIN - 1)));
    expect(latencies.forGrant).toEqual({});
    latencies.add(reported("m", [100]));
    expect(latencies.forGrant).toMatchObject({ latency: [{ model: "m" }] });
  });

  it("are those of the models that were called last", () => {
    const latencies = new Latencies();
    latencies.add(reported("kept", [10]));
    latencies.add(reported("dropped", [10]));
    latencies.add(reported("kept", [10]));
    for (let at = 0; at < GATE_MODELS_MAX - 1; at++) latencies.add(reported(`m${at}`, [10]));
    const models = latencies.status().map(({ model }) => model);
    expect(models).toHaveLength(GATE_MODELS_MAX);
    expect([models.includes("kept"), models.includes("dropped")]).toEqual([true, false]);
  });

  it("follow a model that becomes slower", () => {
    const latencies = new Latencies();
    for (let at = 0; at < SKETCH_FADES_AT; at++) latencies.add(reported("m", [100]));
    for (let at = 0; at < 2 * SKETCH_FADES_AT; at++) latencies.add(reported("m", [1_000]));
    expect(isNear(latencies.forGrant.latency?.[0]?.p50Ms, 1_000)).toBe(true);
  });

  it("are stored after enough calls", () => {
    const latencies = new Latencies();
    latencies.add(reported("m", HUNDRED.slice(0, HEDGE_SAMPLES_MIN - 1)));
    expect(latencies.takeChanged()).toBe(false);
    latencies.add(reported("m", [100]));
    expect([latencies.takeChanged(), latencies.takeChanged()]).toEqual([true, false]);
  });

  it("survive a restart", () => {
    const latencies = new Latencies();
    latencies.add(reported("m", HUNDRED));
    const restored = new Latencies();
    restored.restore(JSON.parse(JSON.stringify(latencies.stored())));
    expect(restored.status()).toEqual(latencies.status());
  });
});
