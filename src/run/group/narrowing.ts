/** For how long a group had fewer calls in flight than it may have, because its run's budget covers no more reservations at once. */
import type { CapKind } from "../../call.ts";
import type { Dimension } from "../../errors.ts";
import { NARROWED_SHARE_MIN } from "../../limits.ts";

/** Why the next call of a group waits for its budget. `of`: the calls that it may have in flight; `perCall`: what one reserves. */
export type BudgetWait = { dimension: Dimension; perCall: number; capKind: CapKind; of: number };

/**
 * What a client is shown: `width` calls were in flight on average while others waited for the budget, of the `of` that it asks for.
 * `share`: of its time; `per_call`: what each reserves, in the dimension.
 */
export type NarrowedBy = {
  by: "budget";
  dimension: Dimension;
  width: number;
  of: number;
  share: number;
  per_call: number;
  remedy: string;
};

export class Narrowing {
  #wait: BudgetWait | null = null;
  #isWaiting = false;
  #inFlight = 0;
  #atMs = 0;
  #waitedMs = 0;
  #widthMs = 0;

  /** A turn has ended. `wait`: why the next call waits; null = nothing waits for the budget; undefined = nobody has looked. */
  note(wait: BudgetWait | null | undefined, inFlight: number, nowMs: number): void {
    this.#count(nowMs);
    this.#inFlight = inFlight;
    if (wait === undefined) return;
    this.#isWaiting = wait !== null;
    this.#wait = wait ?? this.#wait;
  }

  /** What a client is shown of a group that has been open for so long; null = its budget has hardly narrowed it. */
  shown(wallMs: number, nowMs: number): NarrowedBy | null {
    this.#count(nowMs);
    if (this.#wait === null || this.#waitedMs === 0 || this.#waitedMs < wallMs * NARROWED_SHARE_MIN) return null;
    const { dimension, perCall, capKind, of } = this.#wait;
    const width = Math.max(1, Math.round(this.#widthMs / this.#waitedMs));
    if (width >= of) return null;
    const share = Math.min(1, Math.round((this.#waitedMs / Math.max(1, wallMs)) * 100) / 100);
    return { by: "budget", dimension, width, of, share, per_call: perCall, remedy: REMEDIES[capKind] };
  }

  #count(nowMs: number): void {
    const sinceMs = Math.max(0, nowMs - this.#atMs);
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (!this.#isWaiting) return;
    this.#waitedMs += sinceMs;
    this.#widthMs += sinceMs * this.#inFlight;
  }
}

const UNCAPPED =
  "set max_tokens to what an answer needs: a call without it reserves up to 4,096 completion tokens until its run has seen answers; " +
  "or raise the budget";

const REMEDIES: Readonly<Record<CapKind, string>> = {
  default: UNCAPPED,
  learned: UNCAPPED,
  client: "lower max_tokens, which each call in flight reserves in full, or raise the budget",
  budget: "raise the budget: it pays for no more than the calls in flight",
};
