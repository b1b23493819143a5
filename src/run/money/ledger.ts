/**
 * The ledger of one run: two-phase transfers. A reservation is made once and ends once: it settles for all or part of
 * its amounts (for more when an upstream lies), or is released. Refusal happens only at reservation. Between any two
 * calls `spent + reserved <= limit` holds in every dimension, unless an upstream billed more than was reserved for it.
 */
import type { Dimension } from "../../errors.ts";
import { RenewedMap } from "../../renewed/map.ts";

/** One number per dimension; `usd` is nano-USD, the others are counts. */
export type Amounts = Record<Dimension, number>;
/** A limit per dimension; null = none. */
export type Limits = Record<Dimension, number | null>;

export const DIMENSIONS: readonly Dimension[] = ["usd", "calls", "prompt_tokens", "completion_tokens", "new_tokens"];
export const NO_LIMITS: Limits = {
  usd: null,
  calls: null,
  prompt_tokens: null,
  completion_tokens: null,
  new_tokens: null,
};

export function zeroAmounts(): Amounts {
  return { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
}

/**
 * Adds `more` to `sum` in place, `times` times. Each dimension by its name: a loop over their names takes four times as long, and the end
 * of a call adds amounts half a dozen times.
 */
export function addAmounts(sum: Amounts, more: Amounts, times = 1): void {
  sum.usd += more.usd * times;
  sum.calls += more.calls * times;
  sum.prompt_tokens += more.prompt_tokens * times;
  sum.completion_tokens += more.completion_tokens * times;
  sum.new_tokens += more.new_tokens * times;
}

function limitedIn(limits: Limits): readonly Dimension[] {
  return DIMENSIONS.filter((dimension) => limits[dimension] !== null);
}

export class Ledger {
  readonly spent: Amounts = zeroAmounts();
  readonly reserved: Amounts = zeroAmounts();
  /** What upstreams have billed above reservations, in this run and its children: no more can be spent above the limits. */
  readonly overrun: Amounts = zeroAmounts();
  /**
   * The part of `reserved` that belongs to child runs. It is freed when they end, which can take as long as they live.
   */
  readonly reservedByChildren: Amounts = zeroAmounts();
  #limits: Limits;
  /** The dimensions that have one: few do, and every call is compared with each several times. */
  #limited: readonly Dimension[];
  readonly #attempts = new RenewedMap<string, Amounts>();
  readonly #children = new Map<string, Amounts>();

  constructor(limits: Limits) {
    this.#limits = { ...limits };
    this.#limited = limitedIn(limits);
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** What is left to reserve; null = no limit. Never below zero on the wire, but an overrun shows here as negative. */
  remaining(dimension: Dimension): number | null {
    const limit = this.#limits[dimension];
    return limit === null ? null : limit - this.spent[dimension] - this.reserved[dimension];
  }

  /** The first dimension in which `need` does not fit beside what is spent and reserved, or null. */
  shortfall(need: Amounts): Dimension | null {
    for (const dimension of this.#limited) {
      const left = this.remaining(dimension);
      if (left !== null && need[dimension] > left) return dimension;
    }
    return null;
  }

  /** What would be left if every attempt in flight freed its whole reservation; null = no limit. */
  idle(dimension: Dimension): number | null {
    const limit = this.#limits[dimension];
    return limit === null ? null : limit - this.spent[dimension] - this.reservedByChildren[dimension];
  }

  /** Reserves `amounts` for an attempt. False, with nothing changed, when they do not fit or the id is in use. */
  reserve(id: string, amounts: Amounts): boolean {
    if (this.#attempts.has(id) || this.shortfall(amounts) !== null) return false;
    this.restore(id, amounts);
    return true;
  }

  /** Takes over an attempt's reservation from storage. It is not checked against the limits: that was done before. */
  restore(id: string, amounts: Amounts): void {
    this.#attempts.set(id, { ...amounts });
    addAmounts(this.reserved, amounts);
  }

  /** Adds what was spent before this object started, and how much of it was above reservations. */
  restoreSpent(amounts: Amounts, overrun: Amounts = zeroAmounts()): void {
    addAmounts(this.spent, amounts);
    addAmounts(this.overrun, overrun);
  }

  /**
   * Ends a reservation: `charge` becomes spent, the rest is free. Returns the limited dimensions in which more was
   * charged than reserved (an overrun), or null, with nothing changed, if the reservation is not open. Without a limit
   * a reservation is only a guess: no cap was sent with it, so an upstream that exceeds it does nothing wrong.
   */
  settle(id: string, charge: Amounts): Dimension[] | null {
    const reserved = this.#attempts.get(id);
    if (reserved === undefined) return null;
    this.#attempts.delete(id);
    addAmounts(this.reserved, reserved, -1);
    addAmounts(this.spent, charge);
    return this.#overruns(charge, reserved);
  }

  /** Ends a reservation at no charge. False if it is not open. */
  release(id: string): boolean {
    return this.settle(id, zeroAmounts()) !== null;
  }

  /** Number of open reservations of attempts. */
  get openCount(): number {
    return this.#attempts.size;
  }

  /** Reserves a child run's whole budget. False, with nothing changed, when it does not fit or the child has one. */
  reserveForChild(childId: string, amounts: Amounts): boolean {
    if (this.#children.has(childId) || this.shortfall(amounts) !== null) return false;
    this.restoreChild(childId, amounts);
    return true;
  }

  /** Takes over a child's reservation from storage. It is not checked against the limits. */
  restoreChild(childId: string, amounts: Amounts): void {
    this.#children.set(childId, { ...amounts });
    addAmounts(this.reservedByChildren, amounts);
    addAmounts(this.reserved, amounts);
  }

  /** Changes a child's reservation. False, with nothing changed, when more does not fit or the child is not open. */
  resizeChild(childId: string, amounts: Amounts): boolean {
    const before = this.#children.get(childId);
    if (before === undefined) return false;
    for (const dimension of DIMENSIONS) {
      const more = amounts[dimension] - before[dimension];
      // Only what rises is checked: in a dimension that an upstream has overrun, less than nothing is left.
      if (more > 0 && more > (this.remaining(dimension) ?? Infinity)) return false;
    }
    this.#dropChild(childId, before);
    this.restoreChild(childId, amounts);
    return true;
  }

  /**
   * Ends a child's reservation: what it spent is spent here, the rest is free. Returns what counts: at most what was reserved and
   * what upstreams have billed the child above its reservations; null when the child is not open.
   * @param overrun That bill; absent = it is not known, and all that was spent counts.
   */
  settleChild(childId: string, spent: Amounts, overrun: Amounts | null = null): Amounts | null {
    const reserved = this.#children.get(childId);
    if (reserved === undefined) return null;
    this.#dropChild(childId, reserved);
    const counted = overrun === null ? spent : this.#countedOf(spent, reserved, overrun);
    addAmounts(this.spent, counted);
    addAmounts(this.overrun, this.#over(counted, reserved));
    return counted;
  }

  /** Takes over a child that has ended from storage. */
  restoreEndedChild(reserved: Amounts, counted: Amounts): void {
    this.restoreSpent(counted, this.#over(counted, reserved));
  }

  /**
   * Sets new limits. Returns null, or, with nothing changed, a dimension whose new limit is below what is committed.
   */
  setLimits(limits: Limits): Dimension | null {
    for (const dimension of DIMENSIONS) {
      const limit = limits[dimension];
      if (limit !== null && limit !== this.#limits[dimension] && limit < this.committed(dimension)) return dimension;
    }
    this.#limits = { ...limits };
    this.#limited = limitedIn(limits);
    return null;
  }

  /** What is spent or reserved. */
  committed(dimension: Dimension): number {
    return this.spent[dimension] + this.reserved[dimension];
  }

  /** Counts what was charged above a reservation. Returns the limited dimensions in which something was. */
  #overruns(charge: Amounts, reserved: Amounts): Dimension[] {
    const overrun: Dimension[] = [];
    for (const dimension of this.#limited) {
      const more = charge[dimension] - reserved[dimension];
      if (more <= 0) continue;
      this.overrun[dimension] += more;
      overrun.push(dimension);
    }
    return overrun;
  }

  /** How much an amount is above its reservation, in the dimensions with a limit. */
  #over(amounts: Amounts, reserved: Amounts): Amounts {
    const over = zeroAmounts();
    for (const dimension of DIMENSIONS) {
      if (this.#limits[dimension] !== null) over[dimension] = Math.max(0, amounts[dimension] - reserved[dimension]);
    }
    return over;
  }

  #countedOf(spent: Amounts, reserved: Amounts, overrun: Amounts): Amounts {
    const counted = { ...spent };
    for (const dimension of DIMENSIONS) {
      // Where this run has no limit, its child has reserved nothing.
      if (this.#limits[dimension] === null) continue;
      counted[dimension] = Math.min(spent[dimension], reserved[dimension] + overrun[dimension]);
    }
    return counted;
  }

  #dropChild(childId: string, reserved: Amounts): void {
    this.#children.delete(childId);
    addAmounts(this.reservedByChildren, reserved, -1);
    addAmounts(this.reserved, reserved, -1);
  }
}
