/** Places where the calls of a fake upstream wait for each other, or for the test. */

/** A place where callers wait until `size` of them wait at once; then all of them leave, and the next ones wait anew. */
export class Meeting {
  readonly #size: number;
  #waiting: ((isMet: boolean) => void)[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  /** Resolves to true once `size` callers wait, to false if that takes longer than `withinMs`. */
  arrive(withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== leave);
        resolve(false);
      }, withinMs);
      const leave = (isMet: boolean) => {
        clearTimeout(timer);
        resolve(isMet);
      };
      this.#waiting.push(leave);
      if (this.#waiting.length < this.#size) return;
      for (const each of this.#waiting.splice(0)) each(true);
    });
  }
}

/** A place where callers wait until the test opens it; it stays open. */
export class Latch {
  readonly #waiting: (() => void)[] = [];
  #isOpen = false;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves once the latch is open, or the caller is let through. */
  arrive(): Promise<void> {
    return this.#isOpen ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Lets the callers pass that have waited longest; those that arrive later wait. */
  letThrough(count: number): void {
    for (const leave of this.#waiting.splice(0, count)) leave();
  }

  open(): void {
    this.#isOpen = true;
    this.letThrough(this.#waiting.length);
  }
}
