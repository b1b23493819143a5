/**
 * Whether a provider has become slower because of what it is sent. The time to the first byte alone does not show it, because
 * longer prompts take longer, too. So a smaller width is tried: if calls are no faster with it, it was not the load.
 */
import { GATE_TTFB_FACTOR, GATE_TTFB_SLACK_MS, GATE_TTFB_WINDOW_MS } from "../limits.ts";

/** What reports show: attempts in flight, those that have succeeded, and the shortest time to their first byte. */
export type Progress = {
  inFlight: number;
  count: number;
  /** null = not measured. */
  ttfbMs: number | null;
};

/** What is seen of a window: `width` = this many in flight suffice; `undo` = a smaller width has changed nothing. */
export type LoadVerdict = { width: number } | "undo" | null;

type Window = { fromMs: number; ttfbMs: number; inFlight: number; count: number };

/** Attempts of a window that show anything. */
const COUNT_MIN = 4;
/** Fewest attempts in flight that are reduced: below, nothing queues. */
const IN_FLIGHT_MIN = 4;
/** A smaller width must bring the time below this part of what it was. */
const FASTER = 0.75;

export class TtfbWatch {
  #window: Window | null = null;
  #judgedMs: number | null = null;
  /** The shortest time that was seen, ms: that of calls that nothing kept waiting. */
  #unloadedMs: number | null = null;
  /** A smaller width that is being tried, the time before it, and the calls that began before it and have not ended. */
  #trial: { width: number; ttfbMs: number; earlier: number } | null = null;

  see({ inFlight, count, ttfbMs }: Progress, nowMs: number): LoadVerdict {
    if (this.#isDraining(inFlight, count, nowMs) || ttfbMs === null) return null;
    const window = this.#window ?? { fromMs: this.#judgedMs ?? nowMs, ttfbMs, inFlight, count: 0 };
    this.#window = window;
    window.ttfbMs = Math.min(window.ttfbMs, ttfbMs);
    window.inFlight = Math.max(window.inFlight, inFlight);
    window.count += count;
    if (nowMs - window.fromMs < GATE_TTFB_WINDOW_MS || window.count < COUNT_MIN) return null;
    this.#window = null;
    this.#judgedMs = nowMs;
    return this.#judge(window);
  }

  #judge({ ttfbMs, inFlight }: Window): LoadVerdict {
    const unloadedMs = this.#unloadedMs;
    if (unloadedMs === null || ttfbMs < unloadedMs) {
      this.#unloadedMs = ttfbMs;
      return null;
    }
    const trial = this.#trial;
    this.#trial = null;
    if (ttfbMs <= unloadedMs * GATE_TTFB_FACTOR + GATE_TTFB_SLACK_MS) return null;
    if (trial !== null && ttfbMs > trial.ttfbMs * FASTER) {
      this.#unloadedMs = ttfbMs;
      return "undo";
    }
    if (inFlight <= IN_FLIGHT_MIN) return null;
    // Little's law: what is in flight if each call takes as long as it does with a queue that is just bearable.
    const enough = Math.ceil((inFlight * unloadedMs * GATE_TTFB_FACTOR) / ttfbMs);
    const width = Math.max(IN_FLIGHT_MIN, enough);
    this.#trial = { width, ttfbMs, earlier: inFlight };
    return { width };
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
