/** How long a run's attempts took since its last report to a gate, by model. */
import { LatencySketch } from "../../gate/latency-sketch.ts";
import type { GateReport, ModelLatency } from "../../gate/wire.ts";
import { GATE_MODELS_MAX, GATE_TTFB_LINES_MAX, METER_MODEL_CHARS_MAX } from "../../limits.ts";

/** An attempt that has ended in an answer. */
export type Answered = {
  model: string;
  latencyMs: number;
  /** The time to the first byte, and the line that it is compared in: see `lineOf`. Absent = not measured. */
  ttfb?: { ms: number; line: string };
};

type Sketches = { whole: LatencySketch; ttfb: Map<string, LatencySketch> };

export class LatencyChanges {
  readonly #models = new Map<string, Sketches>();
  #sumMs = 0;
  #count = 0;

  answered({ model, latencyMs, ttfb }: Answered): void {
    this.#sumMs += latencyMs;
    this.#count += 1;
    const sketches = this.#sketchesOf(model.slice(0, METER_MODEL_CHARS_MAX));
    if (sketches === null) return;
    sketches.whole.add(latencyMs);
    if (ttfb === undefined) return;
    const known = sketches.ttfb.get(ttfb.line);
    if (known === undefined && sketches.ttfb.size >= GATE_TTFB_LINES_MAX) return;
    const sketch = known ?? new LatencySketch();
    sketches.ttfb.set(ttfb.line, sketch);
    sketch.add(ttfb.ms);
  }

  /** As a report has it; null = no attempt has ended. */
  get reported(): GateReport["latency"] {
    if (this.#count === 0) return null;
    const models = [...this.#models].map(([model, { whole, ttfb }]): ModelLatency => ({
      model,
      whole: whole.durations(),
      ttfb: [...ttfb].map(([line, sketch]) => ({ line, durations: sketch.durations() })),
    }));
    return { meanMs: this.#sumMs / this.#count, models };
  }

  /** Null for a model beyond those that a report has. */
  #sketchesOf(model: string): Sketches | null {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    if (this.#models.size >= GATE_MODELS_MAX) return null;
    const fresh = { whole: new LatencySketch(), ttfb: new Map<string, LatencySketch>() };
    this.#models.set(model, fresh);
    return fresh;
  }
}

/**
 * Attempts with prompts, and if the time to the first byte is that of the whole answer, also with answers, that differ at most by
 * a factor of two in length.
 * @param promptTokens Without those that were in the provider's cache, which take no time.
 * @param completionTokens null = the answer came as a stream.
 */
export function lineOf(promptTokens: number, completionTokens: number | null): string {
  const sizeOf = (tokens: number): number => Math.ceil(Math.log2(Math.max(1, tokens)));
  return completionTokens === null ? `${sizeOf(promptTokens)}` : `${sizeOf(promptTokens)}/${sizeOf(completionTokens)}`;
}
