/** The mode `penalty`: each failure adds its weight to a penalty, time takes from it, and the width is divided by it. */
import type { PenaltySettings } from "./settings.ts";
import type { GateFailure } from "./wire.ts";

/** Above this the hybrid decay is by a factor. */
const HYBRID_FROM = 5;
const HYBRID_FACTOR = 0.7;

const WEIGHT_OF: Readonly<Record<GateFailure["class"], keyof PenaltySettings["weights"] | null>> = {
  rate_limited: "rateLimited",
  overloaded: "overloaded",
  timeout: "timeout",
  schema_violation: "schemaViolation",
  stopped: null,
};

export class Penalty {
  readonly #settings: PenaltySettings;
  #value = 0;
  /** Up to when time has taken from the value. */
  #decayedMs = 0;
  /** The most attempts that were in flight when the penalty rose from 0: what the width is derived from. */
  #base = 0;

  constructor(settings: PenaltySettings) {
    this.#settings = settings;
  }

  /** Counts failures. `inFlight`: attempts in flight at the gate when they happened. */
  failed({ class: failure, count }: Pick<GateFailure, "class" | "count">, inFlight: number, nowMs: number): void {
    const name = WEIGHT_OF[failure];
    if (name === null) return;
    const before = this.valueAt(nowMs);
    if (before === 0) this.#decayedMs = nowMs;
    this.#base = before === 0 ? inFlight : Math.max(this.#base, inFlight);
    this.#value = Math.min(this.#settings.maxPenalty, before + this.#settings.weights[name] * count);
  }

  /** The penalty, after what time has taken from it. */
  valueAt(nowMs: number): number {
    const { decay, decayMs } = this.#settings;
    const steps = Math.floor((nowMs - this.#decayedMs) / decayMs);
    if (steps > 0 && this.#value > 0) {
      this.#decayedMs += steps * decayMs;
      for (let step = 0; step < Math.min(steps, MAX_STEPS); step++) this.#value = decayed(this.#value, decay);
    }
    return this.#value;
  }

  /** The width; null = no failure counts any more. Never below 1. */
  widthAt(nowMs: number, maxInFlight: number): number | null {
    const value = this.valueAt(nowMs);
    return value === 0 ? null : Math.max(1, Math.floor(Math.min(this.#base, maxInFlight) / (value + 1)));
  }
}

/** After so many steps nothing is left of any penalty. */
const MAX_STEPS = 64;
/** A penalty below this changes no width. */
const NEGLIGIBLE = 0.01;

function decayed(value: number, decay: PenaltySettings["decay"]): number {
  const next = nextValue(value, decay);
  return next < NEGLIGIBLE ? 0 : next;
}

function nextValue(value: number, decay: PenaltySettings["decay"]): number {
  if (decay === "exponential") return value / 2;
  return decay === "hybrid" && value > HYBRID_FROM ? value * HYBRID_FACTOR : value - 1;
}
