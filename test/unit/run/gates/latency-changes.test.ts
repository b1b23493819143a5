import { describe, expect, it } from "vitest";
import { LatencyChanges, lineOf } from "../../../../src/run/gates/latency-changes.ts";
import { GATE_MODELS_MAX, GATE_TTFB_LINES_MAX } from "../../../../src/limits.ts";

const countsOf = (news: LatencyChanges) =>
  news.reported?.models?.map(({ model, whole, ttfb }) => ({
    model,
    whole: whole.reduce((sum, [, count]) => sum + count, 0),
    lines: ttfb.map(({ line }) => line),
  }));

describe("the times that a run reports", () => {
  it("are by model, and those to the first byte by line", () => {
    const news = new LatencyChanges();
    news.answered({ model: "a", latencyMs: 10, ttfb: { ms: 1, line: "3" } });
    news.answered({ model: "a", latencyMs: 20, ttfb: { ms: 2, line: "4" } });
    news.answered({ model: "b", latencyMs: 60 });
    expect(news.reported?.meanMs).toBe(30);
    expect(countsOf(news)).toEqual([
      { model: "a", whole: 2, lines: ["3", "4"] },
      { model: "b", whole: 1, lines: [] },
    ]);
  });

  it("are none if no attempt has ended", () => {
    expect(new LatencyChanges().reported).toBeNull();
  });

  it("have bounds: models and lines beyond them are left out, and count in the mean", () => {
    const news = new LatencyChanges();
    for (let at = 0; at <= GATE_MODELS_MAX; at++) news.answered({ model: `m${at}`, latencyMs: at });
    for (let at = 0; at <= GATE_TTFB_LINES_MAX; at++)
      news.answered({ model: "m0", latencyMs: 0, ttfb: { ms: 1, line: `${at}` } });
    const counts = countsOf(news) ?? [];
    expect(counts).toHaveLength(GATE_MODELS_MAX);
    expect(counts[0]).toMatchObject({ model: "m0", whole: GATE_TTFB_LINES_MAX + 2 });
    expect(counts[0]?.lines).toHaveLength(GATE_TTFB_LINES_MAX);
    const sumMs = (GATE_MODELS_MAX * (GATE_MODELS_MAX + 1)) / 2;
    expect(news.reported?.meanMs).toBeCloseTo(sumMs / (GATE_MODELS_MAX + GATE_TTFB_LINES_MAX + 2), 6);
  });
});

describe("a line", () => {
  it("has prompts that differ at most by a factor of two, and other ones others", () => {
    expect(lineOf(513, null)).toBe(lineOf(1_024, null));
    expect(lineOf(512, null)).not.toBe(lineOf(513, null));
    expect(lineOf(0, null)).toBe(lineOf(1, null));
  });

  it("of answers that are no streams has answers that do so, too", () => {
    expect(lineOf(600, 300)).toBe(lineOf(600, 512));
    expect(lineOf(600, 300)).not.toBe(lineOf(600, 600));
    expect(lineOf(600, 0)).not.toBe(lineOf(600, null));
  });
});
