import { describe, expect, it } from "vitest";
import { Counters, timesSince } from "../../../../../durable-objects/run/store/counters.ts";
import type { CounterValues } from "../../../../../durable-objects/run/store/meta.ts";
import { newShard, type Shard } from "../../../../../src/run/leases/shard.ts";
import { addTimes, zeroTotals } from "../../../../../src/run/measures/totals.ts";

function zero(): CounterValues {
  return { totals: zeroTotals(), groups: { slots: 0, parallelGroups: 0, parallelSlots: 0 } };
}

function countersOf(shards: readonly Shard[]): Counters {
  const byId = new Map(shards.map((shard) => [shard.id, shard]));
  return new Counters(byId, zero().groups, { stats: zero(), usage: zero() });
}

/** A shard that has made calls to one model, each with 10 tokens in, 2 out, for 5 nano-USD. */
function shardOf(id: number, model: string, calls: number): Shard {
  const shard = newShard(id);
  shard.totals.attempts = calls;
  shard.totals.peakParallel = calls;
  shard.totals.models[model] = { calls, promptTokens: 10 * calls, completionTokens: 2 * calls, costNanoUsd: 5 * calls };
  return shard;
}

describe("a run's usage", () => {
  it("is the sum over executors, in all and by model", () => {
    const counters = countersOf([shardOf(0, "up/a", 3), shardOf(1, "up/a", 1), shardOf(2, "up/b", 2)]);
    expect(counters.usage()).toEqual({
      object: "usage",
      llm_calls: 6,
      input_tokens: 60,
      output_tokens: 12,
      cost: 3e-8,
      calls_by_model: {
        "up/a": { calls: 4, input_tokens: 40, output_tokens: 8, cost: 2e-8 },
        "up/b": { calls: 2, input_tokens: 20, output_tokens: 4, cost: 1e-8 },
      },
      latency_ms: null,
      queued_ms: null,
    });
  });

  it("counts from its own reset on, and leaves out models without calls since", () => {
    const busy = shardOf(1, "up/b", 2);
    const counters = countersOf([shardOf(0, "up/a", 3), busy]);
    counters.resetUsage();
    counters.resetStats();
    busy.totals.models["up/b"] = { calls: 3, promptTokens: 30, completionTokens: 6, costNanoUsd: 15 };
    expect(counters.usage()).toMatchObject({ llm_calls: 1, input_tokens: 10, output_tokens: 2, cost: 5e-9 });
    expect(Object.keys(counters.usage().calls_by_model)).toEqual(["up/b"]);
  });
});

describe("the times of a run's calls", () => {
  const of = (durationMs: number) => ({ p50: durationMs, p95: durationMs, p99: durationMs });

  it("are those of all executors, and after a reset of the usage those since, without a change of the statistics", () => {
    const [one, other] = [shardOf(0, "up/a", 1), shardOf(1, "up/a", 1)];
    const counters = countersOf([one, other]);
    expect(counters.usage()).toMatchObject({ latency_ms: null, queued_ms: null });
    addTimes(one.totals, { latencyMs: 20, queuedMs: 1 });
    addTimes(other.totals, { latencyMs: 20, queuedMs: 1 });
    counters.resetUsage();
    expect(counters.usage()).toMatchObject({ latency_ms: null, queued_ms: null });
    addTimes(other.totals, { latencyMs: 300, queuedMs: 2 });
    expect(counters.usage()).toMatchObject({ latency_ms: of(300), queued_ms: of(2) });
    const { totals, statsBaseline } = counters;
    const { latency_ms } = timesSince(totals, statsBaseline.totals);
    // At most 5 % above the 20 ms of two of the three.
    expect(latency_ms).toEqual({ p50: 21, p95: 300, p99: 300 });
  });
});

describe("a reset of the statistics", () => {
  it("returns the counters of that moment as the baseline, and changes none but the peaks", () => {
    const shard = shardOf(0, "up/a", 3);
    const counters = countersOf([shard]);
    counters.addGroup({ count: 4, single: null });
    const baseline = counters.resetStats();
    expect(baseline).toMatchObject({ totals: { attempts: 3, peakParallel: 3 }, groups: { slots: 4 } });
    expect(counters.statsBaseline).toBe(baseline);
    expect([shard.totals.attempts, shard.totals.peakParallel]).toEqual([3, 0]);
    counters.addGroup({ count: 2, single: null });
    expect([baseline.groups.slots, counters.groups.slots]).toEqual([4, 6]);
  });
});

describe("the statistics of groups", () => {
  it.each([
    ["one slot", { count: 1, single: null }, { slots: 1, parallelGroups: 0, parallelSlots: 0 }],
    ["two slots", { count: 2, single: null }, { slots: 2, parallelGroups: 1, parallelSlots: 2 }],
    ["the second call of a window", { count: 1, single: "second" }, { slots: 1, parallelGroups: 1, parallelSlots: 2 }],
    ["a later call of a window", { count: 1, single: "later" }, { slots: 1, parallelGroups: 0, parallelSlots: 1 }],
  ] as const)("count a group of %s", (_, header, counts) => {
    const counters = countersOf([]);
    counters.addGroup(header);
    expect(counters.groups).toEqual(counts);
  });
});
