/**
 * Timers of attempts. Almost every attempt ends long before its limit, and a runtime timer per attempt costs as much as
 * a fifth of its fetch: so long limits share one timer that fires twice a second, and short ones have their own.
 */
import type { StartTimer } from "../providers/exchange.ts";
import { RenewedSet } from "../renewed/set.ts";

/** Limits from here on are long, ms: half a second of delay is at most a tenth of them. */
const LONG_MS = 5_000;
const CHECK_MS = 500;

type Deadline = { atMs: number; elapsed: () => void };

export class Deadlines {
  #long = new RenewedSet<Deadline>();
  #checking: ReturnType<typeof setInterval> | null = null;

  /** Starts a timer; call what it returns to stop it. */
  readonly start: StartTimer = (ms, elapsed) => {
    if (ms < LONG_MS) {
      const handle = setTimeout(elapsed, ms);
      return () => clearTimeout(handle);
    }
    const deadline = { atMs: Date.now() + ms, elapsed };
    this.#long.add(deadline);
    this.#checking ??= setInterval(() => this.#check(), CHECK_MS);
    return () => this.#long.delete(deadline);
  };

  /** Stops the shared timer; deadlines that are still set never fire. */
  close(): void {
    if (this.#checking !== null) clearInterval(this.#checking);
    this.#checking = null;
    this.#long.clear();
  }

  #check(): void {
    const nowMs = Date.now();
    for (const deadline of this.#long) {
      if (deadline.atMs > nowMs) continue;
      this.#long.delete(deadline);
      deadline.elapsed();
    }
  }
}
