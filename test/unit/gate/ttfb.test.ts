/** Whether calls queue at a provider: what is seen of it, and what is not taken for it. */
import { describe, expect, it } from "vitest";
import { LatencySketch } from "../../../src/gate/latency-sketch.ts";
import { TtfbWatch } from "../../../src/gate/ttfb.ts";
import type { ModelLatency } from "../../../src/gate/wire.ts";
import { GATE_TTFB_SAMPLES_MIN } from "../../../src/limits.ts";

describe("TtfbWatch", () => {
  const LATENCY_MS = 2_000;
  const models = (ttfbMs: number, { model = "m", line = "7", count = 32 } = {}): ModelLatency[] => {
    const sketch = new LatencySketch();
    sketch.add(ttfbMs, count);
    return [{ model, whole: [], ttfb: [{ line, durations: sketch.durations() }] }];
  };
  const see = (watch: TtfbWatch, seen: ModelLatency[], inFlight: number, nowMs: number) =>
    watch.see({ inFlight, count: 10, models: seen }, LATENCY_MS, nowMs);
  /** A watch that has seen calls of 100 ms to `m`. */
  const makeUnloaded = (): TtfbWatch => {
    const watch = new TtfbWatch();
    for (const nowMs of [0, 1_000, 2_000]) expect(see(watch, models(100), 4, nowMs)).toBeNull();
    return watch;
  };
  /** One that tries a smaller width, after calls of 1,000 ms; after 12,000, those from before it have ended. */
  const makeTrying = (): TtfbWatch => {
    const watch = makeUnloaded();
    for (const nowMs of [3_000, 4_000]) expect(see(watch, models(1_000), 64, nowMs)).toBeNull();
    const verdict = see(watch, models(1_000), 64, 5_000);
    // Of 2,000 ms, 900 are the queue's, of which a half of 350 is left; sketches are exact to a twentieth.
    const expected = (64 * (2_000 - 900 + 175)) / 2_000;
    const width = verdict === null || verdict === "undo" ? NaN : verdict.width;
    expect(Math.abs(width - expected) / expected).toBeLessThan(0.06);
    for (let nowMs = 6_000; nowMs <= 12_000; nowMs += 1_000) expect(see(watch, models(1_000), 13, nowMs)).toBeNull();
    return watch;
  };

  it("tries a smaller width when calls begin to queue, and keeps it if they are faster then", () => {
    const watch = makeTrying();
    for (const nowMs of [13_000, 14_000, 15_000]) expect(see(watch, models(180), 13, nowMs)).toBeNull();
  });

  it("takes it back if they are not", () => {
    const watch = makeTrying();
    const verdicts = Array.from({ length: 12 }, (_, index) => see(watch, models(1_000), 13, 13_000 + index * 1_000));
    expect(verdicts.filter((verdict) => verdict !== null)).toEqual(["undo"]);
  });

  it("compares calls with those to the same model that are alike", () => {
    for (const other of [{ model: "slower" }, { line: "14" }]) {
      const watch = makeUnloaded();
      for (let nowMs = 3_000; nowMs < 20_000; nowMs += 1_000)
        expect(see(watch, models(5_000, other), 64, nowMs)).toBeNull();
    }
  });

  it("sees no queue in one model that is slow while another is not", () => {
    const watch = makeUnloaded();
    const other = { model: "other" };
    for (let nowMs = 3_000; nowMs < 6_000; nowMs += 1_000) see(watch, models(100, other), 4, nowMs);
    for (let nowMs = 6_000; nowMs < 20_000; nowMs += 1_000)
      expect(see(watch, [...models(5_000), ...models(100, other)], 64, nowMs)).toBeNull();
  });

  it("takes no single time, and no few calls, for a queue", () => {
    const watch = makeUnloaded();
    for (let nowMs = 3_000; nowMs < 30_000; nowMs += 2_000) {
      expect(see(watch, models(5_000), 64, nowMs)).toBeNull();
      expect(see(watch, models(100), 64, nowMs + 1_000)).toBeNull();
    }
    const few = models(5_000, { count: Math.floor((GATE_TTFB_SAMPLES_MIN - 1) / 3) });
    const other = makeUnloaded();
    for (const nowMs of [3_000, 4_000, 5_000]) expect(see(other, few, 64, nowMs)).toBeNull();
  });
});
