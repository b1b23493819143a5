/**
 * A run's counters and what clients are shown of them. The ledger is the sum of the same counters, so a reset changes none
 * of them: it stores their present values as a baseline, and documents show the difference.
 */
import { usdOf } from "../../../src/run/money/money.ts";
import type { UsageDocument } from "../../../src/contract/runs.ts";
import type { GroupHeader } from "../../../src/run/group/group.ts";
import type { Shard } from "../../../src/run/leases/shard.ts";
import { durationsSince, percentilesOf, type Percentiles } from "../../../src/run/measures/percentiles.ts";
import {
  noTimes,
  OTHER_MODELS,
  sumModels,
  sumTotals,
  type ModelTotals,
  type Totals,
} from "../../../src/run/measures/totals.ts";
import type { CounterValues, GroupCounts } from "./meta.ts";
import { OVERVIEW_MODELS_MAX } from "../../../src/limits.ts";

/** The shards of a run, by number: each counts the attempts of one executor. */
type Shards = ReadonlyMap<number, Shard>;

/** Values of the counters when statistics and usage were last reset. */
export type Baselines = { stats: CounterValues; usage: CounterValues };

export class Counters {
  readonly #shards: Shards;
  readonly #groups: GroupCounts;
  #baselines: Readonly<Baselines>;

  constructor(shards: Shards, groups: GroupCounts, baselines: Baselines) {
    this.#shards = shards;
    this.#groups = groups;
    this.#baselines = baselines;
  }

  /** The counters of all executors, summed. */
  get totals(): Totals {
    return sumTotals(this.#parts());
  }

  get groups(): Readonly<GroupCounts> {
    return this.#groups;
  }

  /** Values of the counters when the statistics were last reset. */
  get statsBaseline(): CounterValues {
    return this.#baselines.stats;
  }

  /** Counts a group that is opened. */
  addGroup(header: Pick<GroupHeader, "count" | "single" | "graph">): void {
    countGroup(this.#groups, header);
  }

  /** Counts what a change of its graph adds to a group. */
  changeGroup(before: CountedHeader, after: CountedHeader): void {
    const [old, now] = [before, after].map((header) => {
      const counts = { slots: 0, parallelGroups: 0, parallelSlots: 0 };
      countGroup(counts, header);
      return counts;
    });
    for (const name of ["slots", "parallelGroups", "parallelSlots"] as const)
      this.#groups[name] += (now?.[name] ?? 0) - (old?.[name] ?? 0);
  }

  /** Counts statistics and metrics from zero. Returns the new baseline; it and every shard are to be stored. */
  resetStats(): CounterValues {
    this.#baselines = { ...this.#baselines, stats: this.#now() };
    // A peak is no sum, so no difference to a baseline shows it: it starts from zero in the shards.
    for (const { totals } of this.#shards.values()) totals.peakParallel = 0;
    return this.#baselines.stats;
  }

  /** Counts usage from zero. Returns the new baseline, to be stored. */
  resetUsage(): CounterValues {
    this.#baselines = { ...this.#baselines, usage: this.#now() };
    return this.#baselines.usage;
  }

  /** What the run has used since the last reset, in all and by model: its own calls only, without those of child runs. */
  usage(): UsageDocument {
    const { totals } = this;
    const { totals: before } = this.#baselines.usage;
    return { ...usageDocument(totals.models, before.models), ...timesSince(totals, before) };
  }

  /** USD that the run's own calls have cost by model, whatever was reset: those that cost most, and all others together. */
  spendByModel(): Record<string, number> {
    const models = Object.entries(sumModels(this.#parts())).filter(([, { costNanoUsd }]) => costNanoUsd > 0);
    const dearest = models.toSorted(([, a], [, b]) => b.costNanoUsd - a.costNanoUsd);
    const shown = dearest.slice(0, OVERVIEW_MODELS_MAX - 1).map(([model, used]) => [model, usdOf(used.costNanoUsd)]);
    const rest = dearest.slice(OVERVIEW_MODELS_MAX - 1).reduce((sum, [, used]) => sum + used.costNanoUsd, 0);
    return Object.fromEntries(rest === 0 ? shown : [...shown, [OTHER_MODELS, usdOf(rest)]]);
  }

  *#parts(): Generator<Totals> {
    for (const { totals } of this.#shards.values()) yield totals;
  }

  #now(): CounterValues {
    return { totals: this.totals, groups: { ...this.#groups } };
  }
}

/** How long calls took and were queued that have ended since then. */
export function timesSince(
  { times = noTimes() }: Totals,
  { times: before = noTimes() }: Totals,
): { latency_ms: Percentiles | null; queued_ms: Percentiles | null } {
  return {
    latency_ms: percentilesOf(durationsSince(times.latency, before.latency)),
    queued_ms: percentilesOf(durationsSince(times.queued, before.queued)),
  };
}

type CountedHeader = Pick<GroupHeader, "count" | "single" | "graph">;

/** Adds a group to the statistics: a group of one is a sequential query. */
export function countGroup(counts: GroupCounts, header: Pick<GroupHeader, "count" | "single" | "graph">): void {
  counts.slots += callsOf(header);
  if (header.single === "later") counts.parallelSlots += 1;
  if (header.single === "second") {
    counts.parallelGroups += 1;
    counts.parallelSlots += 2;
  }
  if (header.count < 2) return;
  counts.parallelGroups += 1;
  counts.parallelSlots += callsOf(header);
}

type ByModel = Readonly<Record<string, ModelTotals>>;

function usageDocument(models: ByModel, baseline: ByModel): UsageDocument {
  const byModel: UsageDocument["calls_by_model"] = {};
  const sum: ModelTotals = { calls: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  for (const [model, totals] of Object.entries(models)) {
    const used = difference(totals, baseline[model]);
    if (used.calls === 0) continue;
    byModel[model] = usageLine(used);
    sum.calls += used.calls;
    sum.promptTokens += used.promptTokens;
    sum.completionTokens += used.completionTokens;
    sum.costNanoUsd += used.costNanoUsd;
  }
  const { calls: llm_calls, ...rest } = usageLine(sum);
  return { object: "usage", llm_calls, ...rest, calls_by_model: byModel };
}

function difference(totals: ModelTotals, baseline: ModelTotals | undefined): ModelTotals {
  if (baseline === undefined) return totals;
  return {
    calls: totals.calls - baseline.calls,
    promptTokens: totals.promptTokens - baseline.promptTokens,
    completionTokens: totals.completionTokens - baseline.completionTokens,
    costNanoUsd: totals.costNanoUsd - baseline.costNanoUsd,
  };
}

function usageLine({ calls, promptTokens, completionTokens, costNanoUsd }: ModelTotals) {
  return { input_tokens: promptTokens, output_tokens: completionTokens, calls, cost: usdOf(costNanoUsd) };
}

/** The calls of a group; of a graph, its tasks: how many slots a `foreach` has is not known when it is opened. */
function callsOf({ count, graph }: Pick<GroupHeader, "count" | "graph">): number {
  return graph?.tasks ?? count;
}
