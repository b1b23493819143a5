/** Groups that are cancelled when no client follows them any more. Memory only: a restart grants each a new term. */
import { LEASE_TTL_MS } from "../../src/limits.ts";

export class ClientBoundGroups {
  #followedAtMs = new Map<number, number>();

  /** A client follows the group now. */
  followed(seq: number, nowMs: number): void {
    this.#followedAtMs.set(seq, nowMs);
  }

  forget(seq: number): void {
    this.#followedAtMs.delete(seq);
  }

  /** Groups that no client has followed for the term of a lease. */
  lapsed(nowMs: number): number[] {
    return [...this.#followedAtMs]
      .filter(([, followedAtMs]) => nowMs >= followedAtMs + LEASE_TTL_MS)
      .map(([seq]) => seq);
  }
}
