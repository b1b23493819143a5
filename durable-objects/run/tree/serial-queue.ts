/** Runs asynchronous work one piece at a time: each begins when the one before it has succeeded or failed. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the work after all work added before. Rejects if the work does; the next piece runs regardless. */
  add<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
