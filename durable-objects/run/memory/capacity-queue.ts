/**
 * Requests for child runs that wait until this run has room, in order of arrival. In memory: a request whose object restarts is sent
 * again by its Worker, and waits at the end. Nobody overtakes a request that waits, so that a large one is not starved by small ones.
 */
import { addAmounts, zeroAmounts, type Amounts } from "../../../src/run/money/ledger.ts";
import { CAPACITY_GRACE_MS, CAPACITY_WAITERS_MAX } from "../../../src/limits.ts";

/** `goneMs`: since when none of its Worker's calls is pending; null = one is. */
type Waiting = { need: Amounts; sinceMs: number; goneMs: number | null };

export class CapacityQueue {
  /** By the child's id; in order of arrival. */
  readonly #waiting = new Map<string, Waiting>();

  get size(): number {
    return this.#waiting.size;
  }

  /** What a request needs; null = it does not wait. */
  needOf(id: string): Amounts | null {
    return this.#waiting.get(id)?.need ?? null;
  }

  /** How long a request has waited, ms. */
  waitedMs(id: string, nowMs: number): number {
    return nowMs - (this.#waiting.get(id)?.sinceMs ?? nowMs);
  }

  /** What the requests before this one need, and how many they are; for one that does not wait, all of them. */
  ahead(id: string, nowMs: number): { need: Amounts; count: number } {
    this.#dropGone(nowMs);
    const need = zeroAmounts();
    let count = 0;
    for (const [waitingId, waiting] of this.#waiting) {
      if (waitingId === id) break;
      addAmounts(need, waiting.need);
      count++;
    }
    return { need, count };
  }

  /** Whether no other request waits longer. */
  isFirst(id: string, nowMs: number): boolean {
    this.#dropGone(nowMs);
    return this.#waiting.keys().next().value === id;
  }

  /** Waits, or goes on waiting at its place. False if too many wait. */
  wait(id: string, need: Amounts, nowMs: number): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined && this.#waiting.size >= CAPACITY_WAITERS_MAX) return false;
    this.#waiting.set(id, { need, sinceMs: waiting?.sinceMs ?? nowMs, goneMs: null });
    return true;
  }

  /** The Worker's call has ended: it has a moment to send the next. */
  callEnded(id: string, nowMs: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) waiting.goneMs = nowMs;
  }

  leave(id: string): void {
    this.#waiting.delete(id);
  }

  /** Drops requests at the front whose Worker is gone; behind the front they hold up nobody. */
  #dropGone(nowMs: number): void {
    for (const [id, { goneMs }] of this.#waiting) {
      if (goneMs === null || nowMs - goneMs < CAPACITY_GRACE_MS) return;
      this.#waiting.delete(id);
    }
  }
}
