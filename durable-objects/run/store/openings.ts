/**
 * Which request opened which group, for as long as its reply may be lost on the way: the newest openings, and the staged
 * uploads, whose last page has not arrived. A repeated request finds what the first one left.
 */
import { OPENINGS_KEPT, STAGED_KEPT_MS } from "../../../src/limits.ts";

/** `stagedAtMs` null = the group is open. */
type Opening = { openKey: string; seq: number; stagedAtMs: number | null };

export class Openings {
  #byKey = new Map<string, Opening>();
  /** Groups that are being uploaded. */
  readonly #staged = new Set<number>();

  /** The group that a request has opened or is uploading; null if there is none. */
  find(openKey: string): number | null {
    return this.#byKey.get(openKey)?.seq ?? null;
  }

  /** Whether a group is being uploaded. */
  isStaged(seq: number): boolean {
    return this.#staged.has(seq);
  }

  add(opening: Opening): void {
    if (opening.stagedAtMs === null) this.#staged.delete(opening.seq);
    else this.#staged.add(opening.seq);
    this.#byKey.delete(opening.openKey);
    this.#byKey.set(opening.openKey, opening);
    for (const [key, { stagedAtMs }] of this.#byKey) {
      if (this.#byKey.size <= OPENINGS_KEPT) break;
      // A staged upload is remembered until it is opened or dropped: its rows must not be orphaned.
      if (stagedAtMs === null) this.#byKey.delete(key);
    }
  }

  forget(openKey: string): void {
    this.#staged.delete(this.#byKey.get(openKey)?.seq ?? -1);
    this.#byKey.delete(openKey);
  }

  /** Removes and returns the groups whose last page has not arrived in time: their client is gone. */
  takeAbandoned(nowMs: number): number[] {
    const abandoned: number[] = [];
    for (const [key, { seq, stagedAtMs }] of this.#byKey) {
      if (stagedAtMs === null || nowMs < stagedAtMs + STAGED_KEPT_MS) continue;
      this.#byKey.delete(key);
      this.#staged.delete(seq);
      abandoned.push(seq);
    }
    return abandoned;
  }

  /** When the first staged upload is to be dropped; null if there is none. */
  get nextDueMs(): number | null {
    let next: number | null = null;
    for (const { stagedAtMs } of this.#byKey.values()) {
      if (stagedAtMs !== null) next = Math.min(next ?? Infinity, stagedAtMs + STAGED_KEPT_MS);
    }
    return next;
  }
}
