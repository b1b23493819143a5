/**
 * Which models of a key are overloaded by themselves, while others of the same key are answered. Only then is an overload no fact of the
 * key: where one model is used, or several are overloaded, the key has too little room.
 */
import {
  GATE_BUSY_MODEL_MS,
  GATE_BUSY_MODEL_SHARE,
  GATE_MODEL_ATTEMPTS_KEPT,
  GATE_MODEL_HALF_MS,
  GATE_MODELS_MAX,
  GATE_OVERLOAD_PROOF,
} from "../limits.ts";
import type { BusyModel, GateFailure, ModelLatency } from "./wire.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** How the latest attempts at a model have ended; older ones fade. */
type Ends = { answered: number; overloaded: number; atMs: number; overloadedMs: number; waitUntilMs: number };

export class BusyModels {
  /** The model whose attempts ended last is last. */
  readonly #models = new BoundedMap<string, Ends>(GATE_MODELS_MAX);
  /** When the last overload of a model by itself is too old to make it wait. */
  #busyUntilMs = 0;

  /** Attempts have ended in answers. */
  answered(models: readonly ModelLatency[], nowMs: number): void {
    for (const { model, whole } of models) {
      let count = 0;
      for (const [, each] of whole) count += each;
      if (count > 0) this.#add(model, { answered: count, overloaded: 0 }, nowMs);
    }
  }

  /**
   * Attempts have failed as overloaded. Returns how many of them concern the key; the others concern their models alone.
   * @param untilMs Until when the provider asks to wait; null = it names no time.
   */
  overloaded({ models = [], count }: GateFailure, untilMs: number | null, nowMs: number): number {
    for (const each of models) this.#add(each.model, { answered: 0, overloaded: each.count }, nowMs);
    let ofKey = count;
    for (const each of models) {
      const ends = this.#models.get(each.model);
      if (ends === undefined || !this.#isAlone(ends, nowMs)) continue;
      ofKey -= each.count;
      ends.overloadedMs = nowMs;
      ends.waitUntilMs = Math.max(ends.waitUntilMs, untilMs ?? 0);
      this.#busyUntilMs = Math.max(nowMs + GATE_BUSY_MODEL_MS, ends.waitUntilMs);
    }
    return Math.max(0, ofKey);
  }

  /** The models that are narrowed by themselves now. */
  at(nowMs: number): BusyModel[] {
    if (nowMs >= this.#busyUntilMs) return [];
    const busy: BusyModel[] = [];
    for (const [model, ends] of this.#models) {
      const waitMs = Math.max(0, ends.waitUntilMs - nowMs);
      const isBusy = nowMs < ends.overloadedMs + GATE_BUSY_MODEL_MS && this.#isProven(ends);
      if (isBusy || waitMs > 0) busy.push({ model, waitMs });
    }
    return busy;
  }

  /** More attempts than a provider's own faults make have been refused, and not only a few. */
  #isProven({ overloaded, answered }: Ends): boolean {
    return overloaded >= GATE_OVERLOAD_PROOF && overloaded > (overloaded + answered) * GATE_BUSY_MODEL_SHARE;
  }

  /** Whether other models of the key are answered, and are not overloaded together. */
  #isAlone(ends: Ends, nowMs: number): boolean {
    let answered = 0;
    let overloaded = 0;
    for (const other of this.#models.values()) {
      if (other === ends) continue;
      fade(other, nowMs);
      answered += other.answered;
      overloaded += other.overloaded;
    }
    return answered >= 1 && overloaded <= Math.max(1, (answered + overloaded) * GATE_BUSY_MODEL_SHARE);
  }

  #add(model: string, { answered, overloaded }: Pick<Ends, "answered" | "overloaded">, nowMs: number): void {
    const known = this.#models.get(model);
    const ends = known ?? { answered: 0, overloaded: 0, atMs: nowMs, overloadedMs: -Infinity, waitUntilMs: 0 };
    fade(ends, nowMs);
    ends.answered += answered;
    ends.overloaded += overloaded;
    const share = Math.min(1, GATE_MODEL_ATTEMPTS_KEPT / (ends.answered + ends.overloaded));
    ends.answered *= share;
    ends.overloaded *= share;
    this.#models.set(model, ends);
  }
}

/** What is known of a model becomes less with time, whatever its rate. */
function fade(ends: Ends, nowMs: number): void {
  const share = 0.5 ** (Math.max(0, nowMs - ends.atMs) / GATE_MODEL_HALF_MS);
  ends.answered *= share;
  ends.overloaded *= share;
  ends.atMs = nowMs;
}
