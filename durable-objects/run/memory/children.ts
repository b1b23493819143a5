/**
 * The child runs of a run and their reservations in its budget. A child has a row from the moment its budget is reserved;
 * it is `opening` until its object is known to exist. The parent's alarm cancels a child that stays `opening`, so that a
 * crash in between reserves no money for long. Methods that change a child return the row to write in the turn.
 */
import { budgetReason } from "../../../src/run/money/admit.ts";
import { DIMENSIONS, zeroAmounts, type Amounts, type Ledger } from "../../../src/run/money/ledger.ts";
import type { Dimension, Reason } from "../../../src/errors.ts";
import { CHILDREN_OPEN_MAX, LEASE_TTL_MS } from "../../../src/limits.ts";
import type { ChildRecord } from "../store/records.ts";
import type { RunStore } from "../store/store.ts";

export class Children {
  readonly #store: RunStore;
  readonly #ledger: Ledger;
  #open = new Map<string, ChildRecord>();
  #nextSeq = 1;

  constructor(store: RunStore, ledger: Ledger) {
    this.#store = store;
    this.#ledger = ledger;
    for (const child of store.children()) {
      this.#nextSeq = child.seq + 1;
      if (child.spent === null) {
        this.#open.set(child.id, child);
        ledger.restoreChild(child.id, child.hold);
      } else {
        ledger.restoreEndedChild(child.hold, child.spent);
      }
    }
  }

  /** Ids of the children that have not ended. */
  get open(): string[] {
    return [...this.#open.keys()];
  }

  /** As many as there ever were. */
  get count(): number {
    return this.#nextSeq - 1;
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** Whether no further child may be opened. */
  get full(): boolean {
    return this.#open.size >= CHILDREN_OPEN_MAX;
  }

  /** What of the budget equal shares of open children have. */
  get equalShares(): Amounts {
    const shared = zeroAmounts();
    for (const { hold, equal = [] } of this.#open.values())
      for (const dimension of equal) shared[dimension] += hold[dimension];
    return shared;
  }

  /** Reserves a child's budget. Returns its number and the row to write, or null if it does not fit. */
  add(
    id: string,
    { reservation, equal }: { reservation: Amounts; equal: readonly Dimension[] },
    nowMs: number,
  ): { seq: number; write: () => void } | null {
    if (!this.#ledger.reserveForChild(id, reservation)) return null;
    const seq = this.#nextSeq++;
    this.#store.space.childAdded(seq);
    const shares = equal.length === 0 ? {} : { equal };
    const child: ChildRecord = {
      seq,
      id,
      state: "opening",
      hold: reservation,
      ...shares,
      spent: null,
      openedAtMs: nowMs,
    };
    return { seq, write: this.#put(child) };
  }

  /** The child's object exists. Null if the child has ended meanwhile. */
  confirm(id: string): (() => void) | null {
    const child = this.#open.get(id);
    return child === undefined ? null : this.#put({ ...child, state: "open" });
  }

  /**
   * The child has ended and spent this much. What counts of it, and the row to write; null if it was counted before: it counts
   * once. `overrun`: what upstreams have billed it above reservations; null = not known.
   */
  end(id: string, spent: Amounts, overrun: Amounts | null): { counted: Amounts; write: () => void } | null {
    const child = this.#open.get(id);
    const counted = child === undefined ? null : this.#ledger.settleChild(id, spent, overrun);
    if (child === undefined || counted === null) return null;
    const write = this.#put({ ...child, state: "ended", spent: counted });
    this.#open.delete(id);
    return { counted, write };
  }

  /** The id of the child of that number, also one that this turn has added; null if there is none. */
  idOf(seq: number): string | null {
    for (const child of this.#open.values()) if (child.seq === seq) return child.id;
    return this.#store.childId(seq);
  }

  /** Whether there was ever a child of that id. Reads all rows. */
  isKnown(id: string): boolean {
    if (this.#open.has(id)) return true;
    for (const child of this.#store.children()) if (child.id === id) return true;
    return false;
  }

  /** Whether the child's object is not known to exist yet. */
  isOpening(id: string): boolean {
    return this.#open.get(id)?.state === "opening";
  }

  /** Changes a child's reservation. Returns the row to write, or why the change is refused. */
  resize(id: string, reservation: Amounts): (() => void) | Reason {
    const child = this.#open.get(id);
    if (child === undefined)
      return { reason: "cancelled", message: "the run has ended, and its unspent budget was returned to its parent" };
    if (this.#ledger.resizeChild(id, reservation)) {
      // Somebody has named its limits.
      const { equal: _, ...named } = child;
      return this.#put({ ...named, hold: reservation });
    }
    const dimension = this.#shortDimension(child.hold, reservation);
    return { ...budgetReason("budget_exhausted", dimension, reservation, this.#ledger), param: `budget.${dimension}` };
  }

  /** Children whose opening was not confirmed in time: no client has their token. */
  abandoned(nowMs: number): string[] {
    const old = [...this.#open.values()].filter((child) => child.state === "opening" && nowMs >= dueMs(child));
    return old.map((child) => child.id);
  }

  /** When the first unconfirmed child is to be cancelled; null if there is none. */
  nextDueMs(): number | null {
    let next: number | null = null;
    for (const child of this.#open.values()) {
      if (child.state === "opening") next = Math.min(next ?? Infinity, dueMs(child));
    }
    return next;
  }

  /** The dimension whose remainder does not cover the increase. */
  #shortDimension(before: Amounts, after: Amounts): Dimension {
    const isShort = (dimension: Dimension): boolean =>
      after[dimension] - before[dimension] > (this.#ledger.remaining(dimension) ?? Infinity);
    return DIMENSIONS.find(isShort) ?? "usd";
  }

  #put(child: ChildRecord): () => void {
    this.#open.set(child.id, child);
    return () => this.#store.putChild(child);
  }
}

function dueMs(child: ChildRecord): number {
  return child.openedAtMs + LEASE_TTL_MS;
}
