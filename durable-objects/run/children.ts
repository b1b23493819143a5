/**
 * The child runs of a run, as its own rows know them: a row per child from the moment its budget is set aside until it
 * has told what it spent. A child is `opening` until its object is known to exist; one that stays so is cancelled by the
 * parent's alarm, so that a crash in between holds no money for long.
 */
import { addAmounts, zeroAmounts, type Amounts, type Ledger } from "../../src/budget/ledger.ts";
import { CHILDREN_OPEN_MAX, LEASE_TTL_MS } from "../../src/limits.ts";
import type { RunStore } from "./store.ts";

/** A child as stored. */
export type ChildRecord = {
  seq: number;
  id: string;
  state: "opening" | "open" | "ended";
  hold: Amounts;
  /** Set once it has ended. */
  spent: Amounts | null;
  openedAtMs: number;
};

export class Children {
  /** What ended children have spent. */
  readonly spent = zeroAmounts();
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
        ledger.restoreHold(child.id, child.hold);
      } else {
        addAmounts(this.spent, child.spent);
        ledger.restoreSpent(child.spent);
      }
    }
  }

  /** Ids of the children that have not ended. */
  get open(): string[] {
    return [...this.#open.keys()];
  }

  get full(): boolean {
    return this.#open.size >= CHILDREN_OPEN_MAX;
  }

  /** Sets a child's budget aside. Returns its number and the row to write, or null when it does not fit. */
  add(id: string, hold: Amounts, nowMs: number): { seq: number; write: () => void } | null {
    if (!this.#ledger.hold(id, hold)) return null;
    const seq = this.#nextSeq++;
    return { seq, write: this.#put({ seq, id, state: "opening", hold, spent: null, openedAtMs: nowMs }) };
  }

  /** The child's object exists. */
  confirm(id: string): (() => void) | null {
    const child = this.#open.get(id);
    return child === undefined ? null : this.#put({ ...child, state: "open" });
  }

  /** The child has ended and spent this much. Null when it had told so before: it counts once. */
  end(id: string, spent: Amounts): (() => void) | null {
    const child = this.#open.get(id);
    if (child === undefined || !this.#ledger.settleHold(id, spent)) return null;
    addAmounts(this.spent, spent);
    const row = this.#put({ ...child, state: "ended", spent });
    this.#open.delete(id);
    return row;
  }

  /** The child of that number, also one that this turn has added and not written yet. */
  idOf(seq: number): string | null {
    for (const child of this.#open.values()) if (child.seq === seq) return child.id;
    return this.#store.childId(seq);
  }

  /** Whether the child's object is not known to exist yet. */
  isOpening(id: string): boolean {
    return this.#open.get(id)?.state === "opening";
  }

  /** What is set aside for a child that has not ended; null for any other. */
  holdOf(id: string): Amounts | null {
    return this.#open.get(id)?.hold ?? null;
  }

  /** Changes what a child holds. Null when more does not fit, or the child is not open. */
  resize(id: string, hold: Amounts): (() => void) | null {
    const child = this.#open.get(id);
    if (child === undefined || !this.#ledger.resizeHold(id, hold)) return null;
    return this.#put({ ...child, hold });
  }

  /** Children whose opening was never confirmed in time: nobody has their token. */
  abandoned(nowMs: number): string[] {
    const old = [...this.#open.values()].filter((child) => child.state === "opening" && nowMs >= dueMs(child));
    return old.map((child) => child.id);
  }

  /** When the first unconfirmed child is given up, or null. */
  nextDueMs(): number | null {
    let next: number | null = null;
    for (const child of this.#open.values()) {
      if (child.state === "opening") next = Math.min(next ?? Infinity, dueMs(child));
    }
    return next;
  }

  #put(child: ChildRecord): () => void {
    this.#open.set(child.id, child);
    return () => this.#store.putChild(child);
  }
}

function dueMs(child: ChildRecord): number {
  return child.openedAtMs + LEASE_TTL_MS;
}
