/**
 * What attempts have cost, by model and outcome, as sums that only grow: for `GET /metrics`. A run counts its attempts in the
 * rows that it writes anyway, and a gate has the sums of all runs (meters.ts).
 */

/** What attempts end as; `failed`: an upstream that was down or answered with an error of its own. */
export const METER_OUTCOMES = ["success", "rejected", "rate_limited", "failed", "unknown"] as const;
export type MeterOutcome = (typeof METER_OUTCOMES)[number];

/** Upper bounds of the histograms, ms. A bucket has what is at most its bound, and over the one before; the last has the rest. */
export const LATENCY_BOUNDS_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000, 120_000] as const;
export const QUEUE_BOUNDS_MS = [10, 100, 1_000, 10_000, 60_000] as const;

/** `counts` has one number per bound, and one for what is over all of them. */
export type Histogram = { counts: number[]; sumMs: number };

/** Attempts of one outcome. */
export type OutcomeSums = { calls: number; promptTokens: number; completionTokens: number; costNanoUsd: number };

export type ModelMeter = {
  outcomes: Partial<Record<MeterOutcome, OutcomeSums>>;
  /** Of attempts that succeeded. */
  latency: Histogram;
  /** Of first attempts: the time between the call and its start. */
  queue: Histogram;
  /** Attempts that were started beside a slow one; absent = none. */
  hedges?: number;
};

/** By `upstream/model`: the slash keeps names of models from being names of an object's own. */
export type MeterSheet = Record<string, ModelMeter>;

/** An attempt that has ended. `latencyMs` null = nobody has measured it; `queuedMs` null = it was not its call's first. */
export type MeteredAttempt = {
  upstream: string;
  model: string;
  outcome: MeterOutcome;
  charge: OutcomeSums;
  latencyMs: number | null;
  queuedMs: number | null;
  /** True if it was started beside a slow one of its call; absent = it was not. */
  isHedge?: true;
};

/** The name under which models beyond a bound are counted. */
export const OTHER_MODELS = "(other)";

/** Adds an attempt. Beyond `modelsMax`, models are counted together: their names come from clients. */
export function addAttempt(sheet: MeterSheet, attempt: MeteredAttempt, modelsMax: number): void {
  const { upstream, model, outcome, charge, latencyMs, queuedMs } = attempt;
  const meter = meterOf(sheet, `${upstream}/${model}`, modelsMax);
  addOutcome(meter, outcome, charge);
  if (outcome === "success" && latencyMs !== null) observe(meter.latency, LATENCY_BOUNDS_MS, latencyMs);
  if (queuedMs !== null) observe(meter.queue, QUEUE_BOUNDS_MS, queuedMs);
  if (attempt.isHedge === true) meter.hedges = (meter.hedges ?? 0) + 1;
}

/** Adds all of a sheet to another. */
export function addSheet(into: MeterSheet, from: Readonly<MeterSheet>, modelsMax: number): void {
  for (const [name, more] of Object.entries(from)) {
    const meter = meterOf(into, name, modelsMax);
    for (const outcome of METER_OUTCOMES) {
      const charge = more.outcomes[outcome];
      if (charge !== undefined) addOutcome(meter, outcome, charge);
    }
    addHistogram(meter.latency, more.latency);
    addHistogram(meter.queue, more.queue);
    if (more.hedges !== undefined) meter.hedges = (meter.hedges ?? 0) + more.hedges;
  }
}

/** What a sheet has more than an earlier one of the same counts. */
export function sheetSince(now: Readonly<MeterSheet>, before: Readonly<MeterSheet>): MeterSheet {
  const more: MeterSheet = {};
  for (const [name, meter] of Object.entries(now)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    more[name] = known === undefined ? meter : meterSince(meter, known);
  }
  return more;
}

function meterSince(now: ModelMeter, before: ModelMeter): ModelMeter {
  const outcomes: ModelMeter["outcomes"] = {};
  for (const outcome of METER_OUTCOMES) {
    const charge = now.outcomes[outcome];
    if (charge === undefined) continue;
    const known = before.outcomes[outcome] ?? noCharge();
    outcomes[outcome] = {
      calls: charge.calls - known.calls,
      promptTokens: charge.promptTokens - known.promptTokens,
      completionTokens: charge.completionTokens - known.completionTokens,
      costNanoUsd: charge.costNanoUsd - known.costNanoUsd,
    };
  }
  const hedges = (now.hedges ?? 0) - (before.hedges ?? 0);
  return {
    outcomes,
    latency: histogramSince(now.latency, before.latency),
    queue: histogramSince(now.queue, before.queue),
    ...(hedges === 0 ? {} : { hedges }),
  };
}

function histogramSince(now: Histogram, before: Histogram): Histogram {
  return {
    counts: now.counts.map((count, index) => count - (before.counts[index] ?? 0)),
    sumMs: now.sumMs - before.sumMs,
  };
}

export function isEmpty(sheets: object): boolean {
  for (const _ in sheets) return false;
  return true;
}

function meterOf(sheet: MeterSheet, name: string, modelsMax: number): ModelMeter {
  const isKnown = Object.hasOwn(sheet, name) || Object.keys(sheet).length < modelsMax;
  const shown = isKnown ? name : `${name.slice(0, name.indexOf("/"))}/${OTHER_MODELS}`;
  return (sheet[shown] ??= { outcomes: {}, latency: none(LATENCY_BOUNDS_MS), queue: none(QUEUE_BOUNDS_MS) });
}

function none(bounds: readonly number[]): Histogram {
  return { counts: Array.from({ length: bounds.length + 1 }, () => 0), sumMs: 0 };
}

function noCharge(): OutcomeSums {
  return { calls: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
}

function addOutcome({ outcomes }: ModelMeter, outcome: MeterOutcome, more: OutcomeSums): void {
  const sums = (outcomes[outcome] ??= noCharge());
  sums.calls += more.calls;
  sums.promptTokens += more.promptTokens;
  sums.completionTokens += more.completionTokens;
  sums.costNanoUsd += more.costNanoUsd;
}

function observe(histogram: Histogram, bounds: readonly number[], valueMs: number): void {
  const at = bounds.findIndex((bound) => valueMs <= bound);
  const bucket = at === -1 ? bounds.length : at;
  histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + 1;
  histogram.sumMs += valueMs;
}

/** A sheet of another version may have other bounds: what is over those of this one counts in its last bucket. */
function addHistogram(into: Histogram, from: Histogram): void {
  const last = into.counts.length - 1;
  from.counts.forEach((count, index) => {
    const bucket = Math.min(index, last);
    into.counts[bucket] = (into.counts[bucket] ?? 0) + count;
  });
  into.sumMs += from.sumMs;
}
