import {
  SLICE_CHARS_MAX,
  SLICE_GONE_MS,
  SLICE_LOOK_MS_MAX,
  SLICE_PIECE_CHARS,
  SLICE_WAIT_MS_MAX,
} from "../../limits.ts";

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
};

/** One that waits for its slice: when its own timer has come last. */
type Waiting = { seenMs: number };

/**
 * The order of the slices of all requests of an isolate: one at a time, and other events between any two of them. Were each request to go
 * on by itself, a small request would wait for a slice of every large one at each of its steps. Each waits on a timer of its own, since
 * the timers of a request that is cancelled never come.
 */
export class SliceQueue {
  readonly #deps: SliceQueueDeps;
  #waiting: Waiting[] = [];
  /** Slices that have begun. */
  #begun = 0;

  constructor(deps: SliceQueueDeps) {
    this.#deps = deps;
  }

  /** Resolves when it is this request's turn, or has not been for too long. */
  async next(): Promise<void> {
    const { sleep, now } = this.#deps;
    const own: Waiting = { seenMs: now() };
    const untilMs = own.seenMs + SLICE_WAIT_MS_MAX;
    this.#waiting.push(own);
    for (;;) {
      const begun = this.#begun;
      const place = this.#waiting.indexOf(own);
      await sleep(Math.min(Math.max(place, 0), SLICE_LOOK_MS_MAX));
      own.seenMs = now();
      this.#waiting = this.#waiting.filter(({ seenMs }, at) => at > 0 || own.seenMs - seenMs < SLICE_GONE_MS);
      // Where one has begun since this timer was set, other events may not have had their turn.
      const isNext = this.#waiting[0] === own && this.#begun === begun;
      if (!isNext && this.#waiting.includes(own) && own.seenMs < untilMs) continue;
      this.#waiting = this.#waiting.filter((each) => each !== own);
      this.#begun += 1;
      return;
    }
  }
}

/** The clock and the timers of the isolate. */
export const ISOLATE: SliceQueueDeps = {
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  now: () => Date.now(),
};

const slices = new SliceQueue(ISOLATE);

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
