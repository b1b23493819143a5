/**
 * Timers of attempts. Almost every attempt ends long before its limit, and a runtime timer per attempt costs as much as
 * a fifth of its fetch: so long limits share one that looks twice a second, and short ones have their own.
 */
import type { StartTimer } from "../../src/upstream/attempt.ts";

/** Limits from here on are long, ms: half a second late is a tenth of them at most. */
const LONG_MS = 5_000;
const LOOK_MS = 500;

type Deadline = { atMs: number; elapsed: () => void };

export class Deadlines {
  #long = new Set<Deadline>();
  #looking: ReturnType<typeof setInterval> | null = null;

  /** Starts a timer; call what it returns to stop it. */
  readonly start: StartTimer = (ms, elapsed) => {
    if (ms < LONG_MS) {
      const handle = setTimeout(elapsed, ms);
      return () => clearTimeout(handle);
    }
    const deadline = { atMs: Date.now() + ms, elapsed };
    this.#long.add(deadline);
    this.#looking ??= setInterval(() => this.#look(), LOOK_MS);
    return () => this.#long.delete(deadline);
  };

  /** Lets the shared timer go; deadlines that are still set are forgotten. */
  close(): void {
    if (this.#looking !== null) clearInterval(this.#looking);
    this.#looking = null;
    this.#long.clear();
  }

  #look(): void {
    const nowMs = Date.now();
    for (const deadline of this.#long) {
      if (deadline.atMs > nowMs) continue;
      this.#long.delete(deadline);
      deadline.elapsed();
    }
  }
}
