/** Reading pages before they are wanted: while one is written to the client, the next are on their way. */

/**
 * The pages of `source`, in order, of which up to `pagesMax` are read before the consumer wants them. A consumer that
 * leaves ends the source; a failure is thrown when its page is wanted.
 */
export async function* readAhead<T>(source: AsyncGenerator<T>, pagesMax: number): AsyncGenerator<T> {
  const ahead: Promise<IteratorResult<T>>[] = [];
  const readNext = (): void => {
    const next = source.next();
    // It is awaited later, or never if the consumer leaves.
    next.catch(() => undefined);
    ahead.push(next);
  };
  try {
    for (let pages = 0; pages < pagesMax; pages++) readNext();
    for (;;) {
      readNext();
      const page = await ahead.shift();
      if (page === undefined || page.done === true) return;
      yield page.value;
    }
  } finally {
    // Not awaited: the source ends when the page that it is reading has come.
    source.return(undefined).catch(() => undefined);
  }
}
