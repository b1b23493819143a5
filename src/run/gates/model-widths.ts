/**
 * The models of a key that are overloaded by themselves, as a run treats them: each has a width, which falls when the provider calls
 * it overloaded and rises with its answers. The key's other models do not wait for it. The gate says which models these are.
 */
import { AdaptiveWidth } from "../../gate/width.ts";
import type { BusyModel } from "../../gate/wire.ts";
import { GATE_MODELS_MAX, GATE_OVERLOAD_PROOF, METER_MODEL_CHARS_MAX } from "../../limits.ts";
import { RenewedMap } from "../../renewed/map.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

type Narrowed = { width: AdaptiveWidth; waitUntilMs: number };

/** Why attempts at a model wait although its key is open. */
export type ModelWait = { readyAtMs: number | null };

export class ModelWidths {
  /** Attempts in flight at each model. */
  readonly #inFlight = new RenewedMap<string, number>();
  /** The model that was named last is last. */
  readonly #narrowed = new BoundedMap<string, Narrowed>(GATE_MODELS_MAX);

  /** True while a model is narrowed. */
  get isAny(): boolean {
    return this.#narrowed.size > 0;
  }

  started(model: string): void {
    this.#inFlight.set(nameOf(model), (this.#inFlight.get(nameOf(model)) ?? 0) + 1);
  }

  ended(model: string): void {
    const left = (this.#inFlight.get(nameOf(model)) ?? 0) - 1;
    if (left > 0) this.#inFlight.set(nameOf(model), left);
    else this.#inFlight.delete(nameOf(model));
  }

  /** The models that the gate calls overloaded by themselves. One that is new is narrowed at once: the gate has the proof. */
  named(busy: readonly BusyModel[], nowMs: number): void {
    for (const { model, waitMs } of busy) {
      const known = this.#narrowed.get(model);
      const narrowed = known ?? { width: this.#fresh(model, nowMs), waitUntilMs: 0 };
      narrowed.waitUntilMs = Math.max(narrowed.waitUntilMs, nowMs + waitMs);
      this.#narrowed.set(model, narrowed);
    }
  }

  /** An attempt failed because its model is overloaded. True if the model waits by itself, for as long as the provider asks. */
  overloaded(model: string, waitMs: number, nowMs: number): boolean {
    const narrowed = this.#narrowed.get(nameOf(model));
    if (narrowed === undefined) return false;
    narrowed.width.rejected(1, this.#inFlight.get(nameOf(model)) ?? 0, nowMs, true);
    narrowed.waitUntilMs = Math.max(narrowed.waitUntilMs, nowMs + waitMs);
    return true;
  }

  /** An attempt has ended in an answer: the width rises. One that limits nothing any more is forgotten. */
  answered(model: string, latencyMs: number, nowMs: number): void {
    const narrowed = this.#narrowed.get(nameOf(model));
    if (narrowed === undefined) return;
    const { width } = narrowed;
    width.count(1);
    const inFlight = this.#inFlight.get(nameOf(model)) ?? 0;
    width.succeeded({ inFlight, count: 1, models: [] }, latencyMs, nowMs);
    if (width.permits === null) this.#narrowed.delete(nameOf(model));
  }

  /** Why no attempt at the model may start now; null = one may. */
  waitOf(model: string, nowMs: number): ModelWait | null {
    if (this.#narrowed.size === 0) return null;
    const narrowed = this.#narrowed.get(nameOf(model));
    if (narrowed === undefined) return null;
    if (narrowed.waitUntilMs > nowMs) return { readyAtMs: narrowed.waitUntilMs };
    const { permits } = narrowed.width;
    return permits !== null && (this.#inFlight.get(nameOf(model)) ?? 0) >= permits ? { readyAtMs: null } : null;
  }

  /** When time alone lets attempts at a model start; null = at none. */
  readyAtMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { waitUntilMs } of this.#narrowed.values())
      if (waitUntilMs > nowMs) next = Math.min(next ?? Infinity, waitUntilMs);
    return next;
  }

  #fresh(model: string, nowMs: number): AdaptiveWidth {
    const width = new AdaptiveWidth();
    width.rejected(GATE_OVERLOAD_PROOF, this.#inFlight.get(model) ?? 0, nowMs, true);
    return width;
  }
}

/** The name of a model as reports have it. */
function nameOf(model: string): string {
  return model.length > METER_MODEL_CHARS_MAX ? model.slice(0, METER_MODEL_CHARS_MAX) : model;
}
