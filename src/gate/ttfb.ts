/**
 * Detects whether a provider has become slower because of the gateway's load. A server that queues instead of rejecting shows its
 * queue in the time to the first byte. That time alone is no proof: longer prompts, other models and busy hours of a provider
 * raise it, too. So calls are compared with similar calls to the same model, and then a smaller width is tried. If calls are no
 * faster with it, the load was not the cause.
 */
import {
  GATE_TTFB_FACTOR,
  GATE_TTFB_LINES_MAX,
  GATE_TTFB_SAMPLES_MIN,
  GATE_TTFB_SLACK_MS,
  GATE_TTFB_SLOW_WINDOWS,
  GATE_TTFB_WINDOW_MS,
} from "../limits.ts";
import { LatencySketch } from "./latency-sketch.ts";
import type { ModelLatency } from "./wire.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** What reports show: attempts in flight, those that have succeeded, and how long these took. */
export type Progress = { inFlight: number; count: number; models: readonly ModelLatency[] };

/** The verdict on a window: `width` = this many in flight suffice; `undo` = a smaller width has changed nothing. */
export type LoadVerdict = { width: number } | "undo" | null;

/** Similar calls to one model in a window: the time of the fastest of them, and the time of calls without a queue. */
type Line = { name: string; fastMs: number; baseMs: number; count: number };

/** Fewest attempts in flight that are reduced: below, nothing queues. */
const IN_FLIGHT_MIN = 4;
/**
 * Share of the calls of a window that count as its fastest. A queue delays all calls except the first ones of a batch; the time
 * of a single call would be luck.
 */
const FASTEST = 0.1;
/** Fraction of the bearable delay that a smaller width aims at, and above which the width rises by single calls. */
const EASED = 0.5;
/** Fraction of the expected improvement that counts as proof that a smaller width helps. */
const PROOF = 0.5;

export class TtfbWatch {
  #window: { fromMs: number; inFlight: number; lines: Map<string, LatencySketch> } | null = null;
  #judgedMs: number | null = null;
  /** Time of each line's calls without a queue, ms: the lowest that was measured. The least recently used line is first. */
  readonly #bases = new BoundedMap<string, number>(GATE_TTFB_LINES_MAX);
  /** Windows in a row in which all lines were slow. */
  #slowWindows = 0;
  /** A smaller width that is being tried: the delay before it, by how much it should fall, and the calls from before it in flight. */
  #trial: { addedMs: number; fallMs: number; earlier: number } | null = null;
  #isDelayed = false;

  /** True if calls in the latest window wait a little longer, or while a smaller width is tried. */
  get isDelayed(): boolean {
    return this.#isDelayed || this.#trial !== null;
  }

  /** @param latencyMs Mean time of a call to its end. */
  see({ inFlight, count, models }: Progress, latencyMs: number, nowMs: number): LoadVerdict {
    if (this.#isDraining(inFlight, count, nowMs)) return null;
    this.#window ??= { fromMs: this.#judgedMs ?? nowMs, inFlight, lines: new Map() };
    const { fromMs, lines } = this.#window;
    this.#window.inFlight = Math.max(this.#window.inFlight, inFlight);
    for (const { model, ttfb } of models)
      for (const { line, durations } of ttfb) sketchIn(lines, `${line} ${model}`)?.addAll(durations);
    if (nowMs - fromMs < GATE_TTFB_WINDOW_MS) return null;
    const judged = [...lines].filter(([, sketch]) => sketch.count >= GATE_TTFB_SAMPLES_MIN);
    if (judged.length === 0) return null;
    const width = this.#window.inFlight;
    this.#window = null;
    this.#judgedMs = nowMs;
    return this.#judge(
      judged.map(([name, sketch]) => this.#lineOf(name, sketch)),
      width,
      latencyMs,
    );
  }

  /** A line that is faster than ever before shows the time of calls without a queue. */
  #lineOf(name: string, sketch: LatencySketch): Line {
    const fastMs = sketch.quantile(FASTEST) ?? 0;
    const baseMs = Math.min(fastMs, this.#bases.get(name) ?? Infinity);
    this.#bases.set(name, baseMs);
    return { name, fastMs, baseMs, count: sketch.count };
  }

  /** A queue in front of a key delays all of its calls; if only one model is slow, its own load is the reason. */
  #judge(lines: readonly Line[], inFlight: number, latencyMs: number): LoadVerdict {
    const isSlow = lines.every(({ fastMs, baseMs }) => fastMs > baseMs + bearableMsOf(baseMs));
    this.#isDelayed = lines.every(({ fastMs, baseMs }) => fastMs > baseMs + bearableMsOf(baseMs) * EASED);
    const addedMs = mean(lines, ({ fastMs, baseMs }) => fastMs - baseMs);
    const trial = this.#trial;
    this.#trial = null;
    if (isSlow && trial !== null && trial.addedMs - addedMs < trial.fallMs * PROOF) {
      for (const { name, fastMs } of lines) this.#bases.set(name, fastMs);
      this.#slowWindows = 0;
      this.#isDelayed = false;
      return "undo";
    }
    this.#slowWindows = isSlow ? this.#slowWindows + 1 : 0;
    if (this.#slowWindows < GATE_TTFB_SLOW_WINDOWS || inFlight <= IN_FLIGHT_MIN) return null;
    this.#slowWindows = 0;
    // Little's law: as many are in flight as calls begin in the time of one.
    const fallMs = addedMs - mean(lines, ({ baseMs }) => bearableMsOf(baseMs)) * EASED;
    const part =
      1 -
      fallMs /
        Math.max(
          latencyMs,
          mean(lines, ({ fastMs }) => fastMs),
        );
    this.#trial = { addedMs, fallMs, earlier: inFlight };
    return { width: Math.max(IN_FLIGHT_MIN, Math.ceil(inFlight * part)) };
  }

  /** While calls from before a trial end, their times say nothing about it. */
  #isDraining(inFlight: number, count: number, nowMs: number): boolean {
    const trial = this.#trial;
    if (trial === null || trial.earlier <= 0) return false;
    trial.earlier -= count;
    this.#window = null;
    this.#judgedMs = nowMs;
    return inFlight > 0;
  }
}

/** The sketch of a line; null = the window has as many lines as it may. */
function sketchIn(lines: Map<string, LatencySketch>, name: string): LatencySketch | null {
  const known = lines.get(name);
  if (known !== undefined) return known;
  if (lines.size >= GATE_TTFB_LINES_MAX) return null;
  const fresh = new LatencySketch();
  lines.set(name, fresh);
  return fresh;
}

/** The time for which calls of a line may wait in a queue, ms. */
function bearableMsOf(baseMs: number): number {
  return baseMs * (GATE_TTFB_FACTOR - 1) + GATE_TTFB_SLACK_MS;
}

/** The mean of a time over all calls. */
function mean(lines: readonly Line[], timeOf: (line: Line) => number): number {
  const [sumMs, calls] = lines.reduce(([ms, all], line) => [ms + timeOf(line) * line.count, all + line.count], [0, 0]);
  return sumMs / calls;
}
