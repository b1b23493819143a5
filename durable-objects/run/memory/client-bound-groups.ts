/** Groups that wait for their clients no longer than a term. Memory only: a restart grants each a new term. */
import { LEASE_TTL_MS } from "../../../src/limits.ts";

export class ClientBoundGroups {
  #followedAtMs = new Map<number, number>();

  /** A client follows the group now. */
  followed(seq: number, nowMs: number): void {
    this.#followedAtMs.set(seq, nowMs);
  }

  forget(seq: number): void {
    this.#followedAtMs.delete(seq);
  }

  /** Groups that no client has followed for the term of a lease. `isFollowed`: whether a client does at a socket. */
  lapsed(isFollowed: (seq: number) => boolean, nowMs: number): number[] {
    return [...this.#followedAtMs]
      .filter(([seq, followedAtMs]) => nowMs >= followedAtMs + LEASE_TTL_MS && !isFollowed(seq))
      .map(([seq]) => seq);
  }

  /** When the first group lapses that no client follows at a socket; null = never. */
  nextLapseMs(isFollowed: (seq: number) => boolean): number | null {
    let next: number | null = null;
    for (const [seq, followedAtMs] of this.#followedAtMs) {
      if (!isFollowed(seq)) next = Math.min(next ?? Infinity, followedAtMs + LEASE_TTL_MS);
    }
    return next;
  }
}
