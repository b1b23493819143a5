/** Work that must not overlap: each piece begins when the one before it has ended, however that ended. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Does the work when its turn has come. Rejects as the work does; the next piece is not touched by that. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
