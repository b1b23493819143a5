/**
 * The beginnings of prompts that many calls of a run share, and who writes each to its provider's cache. The first call leads;
 * the others wait until its answer has begun, has ended, or takes too long: then they read what it has written. In memory only: a
 * restart costs one more write.
 */
import { PREFIXES_KEPT } from "../../limits.ts";

type Entry = {
  /** The attempt that leads; null = none does. */
  leader: string | null;
  /** Since when it does, and how long the others wait for it, ms. */
  sinceMs: number;
  waitMs: number;
  /** Until when the provider keeps what was written. */
  warmUntilMs: number;
};

/** What a leader starts with. `contextKey`: as `SharedPrefix.key`. */
export type Leading = { attemptId: string; waitMs: number };

export class Prefixes {
  /** By the key of the prefix and the model; the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #leaders = new Map<string, string>();
  /** The prefixes that calls were sent with, the oldest first. */
  readonly #sent = new Set<string>();

  /** Whether a call with this prefix has been sent, or was written by one. */
  wasSent(name: string): boolean {
    return this.#sent.has(name) || this.#entries.has(name);
  }

  sent(name: string): void {
    this.#sent.add(name);
    const [oldest] = this.#sent;
    if (this.#sent.size > PREFIXES_KEPT && oldest !== undefined) this.#sent.delete(oldest);
  }

  /** Whether a call with this prefix may start: as the leader, or because what it reads is there, or will not be in time. */
  mayStart(name: string, nowMs: number): boolean {
    const entry = this.#entries.get(name);
    return entry === undefined || entry.leader === null || nowMs >= entry.sinceMs + entry.waitMs;
  }

  /** An attempt with this prefix starts; true = it leads. */
  start(name: string, { attemptId, waitMs }: Leading, nowMs: number): boolean {
    const entry = this.#entries.get(name);
    if (entry !== undefined && (entry.leader !== null || nowMs < entry.warmUntilMs)) return false;
    this.#entries.delete(name);
    this.#entries.set(name, { leader: attemptId, sinceMs: nowMs, waitMs, warmUntilMs: 0 });
    this.#leaders.set(attemptId, name);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > PREFIXES_KEPT && oldest !== undefined) this.#forget(oldest);
    return true;
  }

  /** The answer of an attempt has begun: if it leads, the others may read from now on. True = it leads. */
  begun(attemptId: string, keptMs: number, nowMs: number): boolean {
    const name = this.#leaders.get(attemptId);
    if (name === undefined) return false;
    this.#warm(name, nowMs + keptMs);
    return true;
  }

  /** An attempt with this prefix has succeeded: its provider keeps the entry from now on once more. */
  used(name: string, keptMs: number, nowMs: number): void {
    this.#warm(name, nowMs + keptMs);
  }

  /** An attempt is in flight no more. If it leads still, it has written nothing that others can read: the next one leads. */
  gone(attemptId: string): void {
    const name = this.#leaders.get(attemptId);
    if (name !== undefined) this.#forget(name);
  }

  /** When the next call waits no longer for its leader; null = none waits. */
  nextMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const name of this.#leaders.values()) {
      const entry = this.#entries.get(name);
      const endMs = entry === undefined ? 0 : entry.sinceMs + entry.waitMs;
      if (endMs > nowMs) next = Math.min(next ?? Infinity, endMs);
    }
    return next;
  }

  #warm(name: string, untilMs: number): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    if (entry.leader !== null) this.#leaders.delete(entry.leader);
    entry.leader = null;
    entry.warmUntilMs = untilMs;
  }

  #forget(name: string): void {
    const leader = this.#entries.get(name)?.leader;
    if (leader != null) this.#leaders.delete(leader);
    this.#entries.delete(name);
  }
}
