/** Groups that end with their client: who was last seen following which. Memory only: a restart grants a fresh term. */
import { LEASE_TTL_MS } from "../../src/limits.ts";

export class Attached {
  #seenAtMs = new Map<number, number>();

  /** Somebody follows the group now. */
  seen(seq: number, nowMs: number): void {
    this.#seenAtMs.set(seq, nowMs);
  }

  forget(seq: number): void {
    this.#seenAtMs.delete(seq);
  }

  /** Groups that nobody has followed for the term of a lease. */
  lapsed(nowMs: number): number[] {
    return [...this.#seenAtMs].filter(([, seenAtMs]) => nowMs >= seenAtMs + LEASE_TTL_MS).map(([seq]) => seq);
  }
}
