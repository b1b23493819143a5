import { SLICE_CHARS_MAX, SLICE_PIECE_CHARS } from "../../limits.ts";

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

/** Lets the other requests of this isolate go on. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
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
