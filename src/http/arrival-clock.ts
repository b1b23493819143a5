/**
 * When requests arrived, as this instance of the gateway can know it. An instance that stands still, because its machine is busy
 * or its disk slow, gets what arrived meanwhile only afterwards, all at once. So it looks at the clock every ARRIVAL_LOOK_MS while
 * calls are arriving: a look that comes late shows how long it stood still, and that time does not count between two arrivals, as long as
 * no call has been answered: calls that a program makes one after another never arrive together.
 */
import {
  ARRIVAL_LOOK_MS,
  ARRIVAL_WATCH_MS_MAX,
  STOOD_STILL_MS_MAX,
  STOOD_STILL_MS_MIN,
  WINDOW_MS_DEFAULT,
  WINDOW_SLIDES_MAX,
} from "../limits.ts";

/** Calls that arrive one after another, for as long as a coalescing window of the default length can be open. */
type Arrivals = { readonly sinceMs: number; seenMs: number; stoodStillMs: number };

/** The request that looks at the clock: since when it does, and when it last did. */
type Watch = { readonly sinceMs: number; seenMs: number };

/** How long arrivals are watched, without the time in which the instance stood still, ms. */
const WATCHED_MS = WINDOW_SLIDES_MAX * WINDOW_MS_DEFAULT;

export class ArrivalClock {
  #arrivals: Arrivals | null = null;
  /** One looks for all that arrives, also after an answer: a timer per request costs more than the rest of this. */
  #watch: Watch | null = null;

  /**
   * A request is here: when it arrived, by the clock of the first that it may belong to.
   * @returns `look`: to be called every ARRIVAL_LOOK_MS from now on until it returns false; null = another request's is.
   */
  arrived(nowMs: number): { arrivedAtMs: number; look: ((nowMs: number) => boolean) | null } {
    const known = this.#seen(nowMs);
    if (known !== null) return { arrivedAtMs: nowMs - known.stoodStillMs, look: null };
    this.#arrivals = { sinceMs: nowMs, seenMs: nowMs, stoodStillMs: 0 };
    return { arrivedAtMs: nowMs, look: this.#lookFrom(nowMs) };
  }

  /** A call is answered: what arrives from now on may follow from its answer, so it did not arrive before. */
  answered(): void {
    this.#arrivals = null;
  }

  /** Begins to look, if nobody does: the request that looked last may have ended with its client. */
  #lookFrom(nowMs: number): ((nowMs: number) => boolean) | null {
    if (this.#watch !== null && nowMs - this.#watch.seenMs <= ARRIVAL_LOOK_MS + STOOD_STILL_MS_MIN) return null;
    const watch: Watch = { sinceMs: nowMs, seenMs: nowMs };
    this.#watch = watch;
    return (lookedMs) => {
      if (this.#watch !== watch) return false;
      watch.seenMs = lookedMs;
      const goesOn = this.#seen(lookedMs) !== null && lookedMs - watch.sinceMs < ARRIVAL_WATCH_MS_MAX;
      if (!goesOn) this.#watch = null;
      return goesOn;
    };
  }

  /** Counts the time since the last look; null if nothing that is watched can have arrived together with what comes now. */
  #seen(nowMs: number): Arrivals | null {
    const arrivals = this.#arrivals;
    if (arrivals === null) return null;
    const unseenMs = nowMs - arrivals.seenMs;
    if (unseenMs > STOOD_STILL_MS_MIN + ARRIVAL_LOOK_MS) arrivals.stoodStillMs += unseenMs - ARRIVAL_LOOK_MS;
    arrivals.seenMs = nowMs;
    const watchedMs = nowMs - arrivals.sinceMs - arrivals.stoodStillMs;
    // Where nobody has looked for long, the request that looked is gone, and nothing stood still.
    if (watchedMs >= WATCHED_MS || arrivals.stoodStillMs > STOOD_STILL_MS_MAX) this.#arrivals = null;
    return this.#arrivals;
  }
}
