/**
 * How long the calls of each model take at one key, over all runs: to the first byte of a stream, and to the end. An operator sees
 * which model is slow, and a new run can recognise its slow calls.
 */
import { GATE_MODELS_MAX, HEDGE_SAMPLES_MIN } from "../limits.ts";
import { LatencySketch, type Durations } from "./latency-sketch.ts";
import type { LatencyStatus, ModelLatency, ModelPercentiles } from "./wire.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** What is stored of a model. */
export type StoredLatency = { model: string; whole: Durations; ttfb: Durations };

type Sketches = { whole: LatencySketch; ttfb: LatencySketch };

export class Latencies {
  /** The least recently used first. */
  readonly #models = new BoundedMap<string, Sketches>(GATE_MODELS_MAX);
  /** Attempts that were added since it was stored. */
  #added = 0;

  /** What an earlier instance has stored. */
  restore(stored: readonly StoredLatency[]): void {
    for (const { model, whole, ttfb } of stored) {
      const sketches = this.#sketchesOf(model);
      sketches.whole.addAll(whole);
      sketches.ttfb.addAll(ttfb);
    }
  }

  stored(): StoredLatency[] {
    return [...this.#models].map(([model, { whole, ttfb }]) => ({
      model,
      whole: whole.durations(),
      ttfb: ttfb.durations(),
    }));
  }

  /** True once after enough new attempts to justify a row write. */
  takeChanged(): boolean {
    const hasChanged = this.#added >= HEDGE_SAMPLES_MIN;
    if (hasChanged) this.#added = 0;
    return hasChanged;
  }

  add(models: readonly ModelLatency[]): void {
    for (const { model, whole, ttfb } of models) {
      const sketches = this.#sketchesOf(model);
      sketches.whole.addAll(whole);
      for (const [, count] of whole) this.#added += count;
      for (const { durations } of ttfb) sketches.ttfb.addAll(durations);
    }
  }

  /** The part of a grant about latencies: the models with enough samples to call an attempt slow; empty if no model has. */
  get forGrant(): { latency?: readonly ModelPercentiles[] } {
    const known: ModelPercentiles[] = [];
    for (const [model, { whole }] of this.#models) {
      const [p50Ms, p95Ms] = [whole.quantile(0.5), whole.quantile(0.95)];
      if (whole.count >= HEDGE_SAMPLES_MIN && p50Ms !== null && p95Ms !== null) known.push({ model, p50Ms, p95Ms });
    }
    return known.length === 0 ? {} : { latency: known };
  }

  /** By the names of the models. */
  status(): LatencyStatus[] {
    return [...this.#models]
      .map(([model, { whole, ttfb }]) => ({
        model,
        ttfbP50Ms: ttfb.quantile(0.5),
        ttfbP95Ms: ttfb.quantile(0.95),
        p95Ms: whole.quantile(0.95),
        samples: Math.floor(whole.count),
      }))
      .toSorted((a, b) => (a.model < b.model ? -1 : 1));
  }

  #sketchesOf(model: string): Sketches {
    const sketches = this.#models.get(model) ?? { whole: new LatencySketch(), ttfb: new LatencySketch() };
    this.#models.set(model, sketches);
    return sketches;
  }
}
