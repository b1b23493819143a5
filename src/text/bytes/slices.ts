import {
  SLICE_CHARS_MAX,
  SLICE_GONE_MS,
  SLICE_LOOK_MS_MAX,
  SLICE_PIECE_CHARS,
  SLICE_REST_MS_MAX,
  SLICE_WAIT_MS_MAX,
  SMALL_REQUEST_MS_MAX,
} from "../../limits.ts";
import { RenewedSet } from "../../renewed/set.ts";

/**
 * Work on a large body, in slices: each `yield` is a place where the Worker may serve other requests. One piece of work holds all
 * other requests of its isolate, so none may take longer than 250 ms.
 */
export type Sliced<T> = Generator<void, T, void>;

/**
 * What is done between two pauses, counted in characters: text that is parsed, compared or written. A piece counts for itself too,
 * however short it is.
 */
export class SliceCount {
  #chars = 0;

  /** Counts a piece that is done. True if a pause is due: then the next slice begins. */
  add(chars: number): boolean {
    this.#chars += chars + SLICE_PIECE_CHARS;
    if (this.#chars < SLICE_CHARS_MAX) return false;
    this.#chars = 0;
    return true;
  }
}

export type SliceQueueDeps = {
  /** Resolves after this time, and after what has arrived by then. */
  sleep: (ms: number) => Promise<void>;
  now: () => number;
  /** Whether slices rest at this time, for others that are on their way. Absent = they never do. */
  isShared?: (nowMs: number) => boolean;
};

/** One that waits for its slice: when its own timer has come last. */
type Waiting = { seenMs: number };

/**
 * The order of the slices of all requests of an isolate: one at a time, and other events between any two of them. Were each request to go
 * on by itself, a small request would wait for a slice of every large one at each of its steps. Each waits on a timer of its own, since
 * the timers of a request that is cancelled never come.
 *
 * While small requests are on their way, the next slice begins after a rest as long as the last slice: a small request makes a dozen steps,
 * and would wait for one slice at each of them. Large requests have half of the isolate's time then, and all of it when they are alone.
 */
export class SliceQueue {
  readonly #deps: SliceQueueDeps;
  #waiting: Waiting[] = [];
  /** Slices that have begun. */
  #begun = 0;
  /** When the last one began, until it is known how long it took; null = that is known. */
  #beganMs: number | null = null;
  /** When the rest after it is over. */
  #restedMs = 0;

  constructor(deps: SliceQueueDeps) {
    this.#deps = deps;
  }

  /** Requests that wait for their turn. One that is long overdue was cancelled, or leaves at its next look. */
  get waiting(): number {
    const nowMs = this.#deps.now();
    this.#waiting = this.#waiting.filter(({ seenMs }) => nowMs - seenMs < SLICE_WAIT_MS_MAX);
    return this.#waiting.length;
  }

  /** Resolves when it is this request's turn. One that has waited for too long has the first turn that it finds. */
  async next(): Promise<void> {
    const { sleep, now } = this.#deps;
    const own: Waiting = { seenMs: now() };
    this.#noteEnd(own.seenMs);
    const untilMs = own.seenMs + SLICE_WAIT_MS_MAX;
    this.#waiting.push(own);
    for (;;) {
      const begun = this.#begun;
      const place = this.#waiting.indexOf(own);
      await sleep(Math.min(place > 0 ? place : this.#restMs(own.seenMs), SLICE_LOOK_MS_MAX));
      own.seenMs = now();
      this.#noteEnd(own.seenMs);
      this.#waiting = this.#waiting.filter(({ seenMs }, at) => at > 0 || own.seenMs - seenMs < SLICE_GONE_MS);
      // Where one has begun since this timer was set, other events may not have had their turn.
      if (this.#begun !== begun || this.#restMs(own.seenMs) > 0) continue;
      const isLate = own.seenMs >= untilMs || !this.#waiting.includes(own);
      if (this.#waiting[0] !== own && !isLate) continue;
      this.#waiting = this.#waiting.filter((each) => each !== own);
      this.#begun += 1;
      this.#beganMs = own.seenMs;
      return;
    }
  }

  /** Notes how long the last slice took, once the clock shows it: on Cloudflare it stands still while a slice runs. */
  #noteEnd(nowMs: number): void {
    if (this.#beganMs === null || nowMs === this.#beganMs) return;
    this.#restedMs = this.#beganMs + 2 * Math.min(nowMs - this.#beganMs, SLICE_REST_MS_MAX);
    this.#beganMs = null;
  }

  /** How long slices rest from now on, ms. */
  #restMs(nowMs: number): number {
    const restMs = this.#restedMs - nowMs;
    // No rest is so long: the clock was set back.
    if (restMs <= 0 || restMs > SLICE_REST_MS_MAX) return 0;
    return this.#deps.isShared?.(nowMs) === true ? restMs : 0;
  }
}

/** Small requests that are on their way in an isolate, such as calls with a short prompt. */
export class SmallRequests {
  /** In the order of their beginning. */
  readonly #begun = new RenewedSet<{ atMs: number }>();

  /** One has come. Call what this returns when it has ended; one that is lost ends by itself. */
  begin(nowMs: number): () => void {
    this.#dropOld(nowMs);
    const own = { atMs: nowMs };
    this.#begun.add(own);
    return () => void this.#begun.delete(own);
  }

  /** Whether there is one. */
  areUnderWay(nowMs: number): boolean {
    this.#dropOld(nowMs);
    return this.#begun.size > 0;
  }

  #dropOld(nowMs: number): void {
    for (const own of this.#begun) {
      // A clock that was set back makes none last longer.
      if (Math.abs(nowMs - own.atMs) < SMALL_REQUEST_MS_MAX) return;
      this.#begun.delete(own);
    }
  }
}

/** The clock and the timers of the isolate. */
export const ISOLATE: SliceQueueDeps = {
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  now: () => Date.now(),
};

/** The small requests of this isolate. */
export const smallRequests = new SmallRequests();

const slices = new SliceQueue({ ...ISOLATE, isShared: (nowMs) => smallRequests.areUnderWay(nowMs) });

/** Lets the other requests of this isolate go on. */
export function pause(): Promise<void> {
  return slices.next();
}

/** Does the work in one piece: for bodies that are known to be small. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Does the work, with a pause after each slice. Small bodies have one slice, and no pause. */
export async function inSlices<T>(work: Sliced<T>, pause: () => Promise<void>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await pause();
  }
}
