import { describe, expect, it } from "vitest";
import { GateChanges } from "../../../../src/run/gates/changes.ts";
import { GATE_SAMPLES_MAX } from "../../../../src/limits.ts";

const LIMITED = { class: "rate_limited", stop: null, hintMs: 2_000, message: "slow down" } as const;

describe("what a run has to report", () => {
  it("is sent once more under its number while no reply has come, and what is newer follows under the next", () => {
    const news = new GateChanges();
    news.failed(LIMITED, 100);
    expect(news.take(150)).toMatchObject({ number: 1, failures: [{ count: 1, ageMs: 50, hintMs: 2_000 }] });
    news.failed(LIMITED, 200);
    news.recovered();
    expect(news.take(250)).toMatchObject({ number: 1, failures: [{ count: 1, ageMs: 150 }], recovered: false });
    news.acknowledged();
    expect(news.take(300)).toMatchObject({ number: 2, failures: [{ count: 1, ageMs: 100 }], recovered: true });
    news.acknowledged();
    expect(news.take(300)).toEqual({ number: 3, failures: [], samples: [], latency: null, recovered: false });
  });

  it("has one entry for each class of failure, with the hint that lasts longest and the latest words", () => {
    const news = new GateChanges();
    news.failed({ ...LIMITED, hintMs: 5_000 }, 0);
    news.failed({ ...LIMITED, hintMs: 1_000, message: "again" }, 1_000);
    news.failed({ class: "stopped", stop: "invalid_key", hintMs: null, message: null }, 1_000);
    news.failed({ class: "stopped", stop: "forbidden", hintMs: null, message: null }, 1_000);
    const { failures } = news.take(1_000);
    expect(failures).toHaveLength(3);
    expect(failures[0]).toEqual({ ...LIMITED, hintMs: 4_000, message: "again", count: 2, ageMs: 0 });
  });

  it("has the mean time of the answers", () => {
    const news = new GateChanges();
    for (const latencyMs of [10, 20, 60]) news.answered({ model: "m", latencyMs });
    expect(news.take(0).latency).toMatchObject({ meanMs: 30 });
  });

  it("has what answers say they have used, beside what was counted for the same calls; nothing if none says it", () => {
    const news = new GateChanges();
    news.used({ input: 584, output: 9 }, { input: 144, all: 160 });
    news.used({ input: 590, output: 16 }, { input: 150, all: 166 });
    expect(news.take(0).used).toEqual({ input: 1_174, output: 25, countedInput: 294, countedOutput: 32 });
    news.acknowledged();
    expect(news.take(0)).not.toHaveProperty("used");
  });

  it("has the newest samples, oldest first, aged to the report", () => {
    const news = new GateChanges();
    for (let each = 0; each <= GATE_SAMPLES_MAX; each++) {
      news.seen({ ageMs: 5, requests: { limit: 60, remaining: each, resetMs: null, windowMs: 60_000 } }, each * 10);
    }
    const { samples } = news.take(100);
    expect(samples).toHaveLength(GATE_SAMPLES_MAX);
    expect(samples.map(({ requests }) => requests?.remaining)).toEqual([1, 2, 3, 4]);
    expect(samples.at(-1)?.ageMs).toBe(100 - 40 + 5);
  });

  it("is urgent if it is a failure or a recovery, until the gate has it", () => {
    const news = new GateChanges();
    news.answered({ model: "m", latencyMs: 1 });
    news.seen({ ageMs: 0 }, 0);
    expect(news.isUrgent).toBe(false);
    news.failed(LIMITED, 0);
    expect(news.isUrgent).toBe(true);
    news.take(0);
    expect(news.isUrgent).toBe(true);
    news.acknowledged();
    expect(news.isUrgent).toBe(false);
  });
});
