/**
 * Sliced work whose result is kept, such as a document that is the same for everybody. All requests that wait for it do its slices in turns:
 * none of them waits for another one, which the runtime may drop with its client.
 */
import type { Sliced } from "./slices.ts";

export class SlicedOnce<T> {
  readonly #begin: () => Sliced<T>;
  #work: Sliced<T> | null = null;
  #result: { value: T } | null = null;

  constructor(begin: () => Sliced<T>) {
    this.#begin = begin;
  }

  /** The result, as a part of other sliced work. If a slice throws, the next request begins anew. */
  *result(): Sliced<T> {
    for (;;) {
      if (this.#result !== null) return this.#result.value;
      if (this.#slice()) continue;
      yield;
    }
  }

  /** Does the next slice. True if it was the last. */
  #slice(): boolean {
    const work = (this.#work ??= this.#begin());
    try {
      const step = work.next();
      if (step.done !== true) return false;
      this.#result = { value: step.value };
    } catch (error) {
      this.#work = null;
      throw error;
    }
    this.#work = null;
    return true;
  }
}
