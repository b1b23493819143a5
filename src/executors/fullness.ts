/**
 * Whether an executor needs help: slots have waited for a moment while it could begin no more, because its fetches wait for
 * headers or because it holds as many calls as it may. The longer no headers come, the fewer calls it can have in flight.
 */
import { FULL_CHECK_MS_MAX, LANES_JOIN_MS } from "../limits.ts";
import type { Worklist } from "./worklist.ts";

export type FullnessDeps = {
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Makes the executor claim once more. */
  nudge: () => void;
  /** Calls back after `ms`; returns what prevents it. */
  after: (ms: number, callback: () => void) => () => void;
};

/** A reach that has fallen to this share is worth a claim. */
const LESS_REACH = 0.75;

export class Fullness {
  readonly #deps: FullnessDeps;
  /** Since when the executor has been full while slots waited, ms; null = it is not. */
  #sinceMs: number | null = null;
  #cancelCheck: () => void = () => undefined;
  #reach: number | null = null;
  /** Whether it reaches as few as it can with the fetches that may wait for headers. */
  #isLeast = false;
  /** The reach that a claim has reported. */
  #reported: number | null = null;

  constructor(deps: FullnessDeps) {
    this.#deps = deps;
  }

  /** How many calls the executor can have in flight; null = it has not been full. */
  get reach(): number | null {
    return this.#reach;
  }

  /**
   * Whether others must be started for what it cannot reach: it has become full, or reaches much less than it reported, or as
   * little as it can and less than it reported.
   */
  get mustReport(): boolean {
    if (this.#reach === null || this.#reported === null) return this.#reach !== null;
    return this.#reach <= LESS_REACH * this.#reported || (this.#isLeast && this.#reach < this.#reported);
  }

  /** A claim with this reach has been answered. */
  reported(reach: number): void {
    this.#reported = Math.min(this.#reported ?? reach, reach);
  }

  /** `isFull`: slots wait, and the executor has no room. */
  note(isFull: boolean, work: Worklist): void {
    if (isFull === (this.#sinceMs !== null)) return;
    this.#cancelCheck();
    this.#sinceMs = isFull ? this.#deps.now() : null;
    this.#isLeast = false;
    if (isFull) this.#checkAfter(LANES_JOIN_MS, work);
  }

  /** Stops the timer. */
  close(): void {
    this.#cancelCheck();
  }

  /** Looks for as long as it is full: calls end while no headers come, and then it holds fewer than before. */
  #checkAfter(ms: number, work: Worklist): void {
    this.#cancelCheck = this.#deps.after(ms, () => {
      this.#look(work);
      if (this.mustReport) this.#deps.nudge();
      if (this.#sinceMs !== null) this.#checkAfter(Math.min(ms * 2, FULL_CHECK_MS_MAX), work);
    });
  }

  #look(work: Worklist): void {
    if (this.#sinceMs === null || work.room > 0) return;
    const waitedMs = this.#deps.now() - Math.max(this.#sinceMs, work.headersAtMs ?? 0);
    this.#reach = Math.max(work.running, work.reachAfter(waitedMs));
    this.#isLeast = this.#reach <= work.waitingMax;
  }
}
