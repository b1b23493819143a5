/**
 * The ledger of one run: two-phase transfers. A reservation is made once and ends once, by settling (all, part, or more
 * when an upstream lies) or by being released; refusal happens only at reservation. Between any two calls
 * `spent + reserved <= limit` holds in every dimension, unless an upstream billed more than was reserved for it.
 */
import type { Dimension } from "../errors.ts";

/** One number per dimension; `usd` is nano-USD, the others are counts. */
export type Amounts = Record<Dimension, number>;
/** A limit per dimension; null = none. */
export type Limits = Record<Dimension, number | null>;

export const DIMENSIONS: readonly Dimension[] = ["usd", "calls", "prompt_tokens", "completion_tokens"];
export const NO_LIMITS: Limits = { usd: null, calls: null, prompt_tokens: null, completion_tokens: null };

export function zeroAmounts(): Amounts {
  return { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0 };
}

/** Adds `more` to `sum` in place, `times` times. */
export function addAmounts(sum: Amounts, more: Amounts, times = 1): void {
  for (const dimension of DIMENSIONS) sum[dimension] += more[dimension] * times;
}

export class Ledger {
  readonly spent: Amounts = zeroAmounts();
  readonly reserved: Amounts = zeroAmounts();
  /** The part of `reserved` that child runs hold: it comes back when they end, which may take as long as they live. */
  readonly held: Amounts = zeroAmounts();
  limits: Limits;
  #open = new Map<string, Amounts>();
  #holds = new Map<string, Amounts>();

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** What is left to reserve; null = no limit. Never below zero on the wire, but an overrun shows here as negative. */
  remaining(dimension: Dimension): number | null {
    const limit = this.limits[dimension];
    return limit === null ? null : limit - this.spent[dimension] - this.reserved[dimension];
  }

  /** The first dimension in which `need` does not fit beside what is spent and reserved, or null. */
  shortfall(need: Amounts): Dimension | null {
    for (const dimension of DIMENSIONS) {
      const left = this.remaining(dimension);
      if (left !== null && need[dimension] > left) return dimension;
    }
    return null;
  }

  /** True if `need` could fit once every attempt in flight has freed its reservation in full. */
  couldFit(need: Amounts): boolean {
    return DIMENSIONS.every((dimension) => {
      const limit = this.limits[dimension];
      return limit === null || need[dimension] <= limit - this.spent[dimension] - this.held[dimension];
    });
  }

  /** Sets `amounts` aside under `id`. False, with nothing changed, when they do not fit or the id is in use. */
  reserve(id: string, amounts: Amounts): boolean {
    if (this.#open.has(id) || this.shortfall(amounts) !== null) return false;
    this.restore(id, amounts);
    return true;
  }

  /** Takes a reservation over from storage, where it was made: it is not checked against the limits again. */
  restore(id: string, amounts: Amounts): void {
    this.#open.set(id, amounts);
    addAmounts(this.reserved, amounts);
  }

  /** Adds what was spent before this object started. */
  restoreSpent(amounts: Amounts): void {
    addAmounts(this.spent, amounts);
  }

  /**
   * Ends a reservation: `charge` becomes spent, the rest is free. Returns the limited dimensions in which more was charged
   * than reserved (an overrun), or null if the reservation is not open: then nothing changes. Without a limit a reservation
   * is only a guess: no cap was sent with it, so an upstream that goes past it does nothing wrong.
   */
  settle(id: string, charge: Amounts): Dimension[] | null {
    const held = this.#open.get(id);
    if (held === undefined) return null;
    this.#open.delete(id);
    addAmounts(this.reserved, held, -1);
    addAmounts(this.spent, charge);
    return DIMENSIONS.filter((dimension) => this.limits[dimension] !== null && charge[dimension] > held[dimension]);
  }

  /** Ends a reservation at no charge. False if it is not open. */
  release(id: string): boolean {
    return this.settle(id, zeroAmounts()) !== null;
  }

  /** Number of open reservations of attempts. */
  get openCount(): number {
    return this.#open.size;
  }

  /** Sets a child run's whole budget aside. False, with nothing changed, when it does not fit or the child is known. */
  hold(childId: string, amounts: Amounts): boolean {
    if (this.#holds.has(childId) || this.shortfall(amounts) !== null) return false;
    this.restoreHold(childId, amounts);
    return true;
  }

  /** Takes a child's hold over from storage. */
  restoreHold(childId: string, amounts: Amounts): void {
    this.#holds.set(childId, amounts);
    addAmounts(this.held, amounts);
    addAmounts(this.reserved, amounts);
  }

  /** Changes what a child holds. False, with nothing changed, when more does not fit or the child is not open. */
  resizeHold(childId: string, amounts: Amounts): boolean {
    const before = this.#holds.get(childId);
    if (before === undefined) return false;
    for (const dimension of DIMENSIONS) {
      const more = amounts[dimension] - before[dimension];
      // What does not rise is not checked: a dimension that an upstream has overrun has less than nothing left.
      if (more > 0 && more > (this.remaining(dimension) ?? Infinity)) return false;
    }
    this.#dropHold(childId, before);
    this.restoreHold(childId, amounts);
    return true;
  }

  /** Ends a child's hold: what it spent is spent here, the rest is free. False when the child is not open. */
  settleHold(childId: string, spent: Amounts): boolean {
    const held = this.#holds.get(childId);
    if (held === undefined) return false;
    this.#dropHold(childId, held);
    addAmounts(this.spent, spent);
    return true;
  }

  /** Sets new limits. The dimension that has more committed than its new limit, with nothing changed; or null. */
  setLimits(limits: Limits): Dimension | null {
    for (const dimension of DIMENSIONS) {
      const limit = limits[dimension];
      if (limit !== null && limit !== this.limits[dimension] && limit < this.committed(dimension)) return dimension;
    }
    this.limits = limits;
    return null;
  }

  /** What is spent or set aside. */
  committed(dimension: Dimension): number {
    return this.spent[dimension] + this.reserved[dimension];
  }

  #dropHold(childId: string, held: Amounts): void {
    this.#holds.delete(childId);
    addAmounts(this.held, held, -1);
    addAmounts(this.reserved, held, -1);
  }
}
