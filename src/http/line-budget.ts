/** How many lines of one kind this isolate writes to the operator's console: a client can provoke some of them, again and again. */
import { CONSOLE_LINES_MAX, CONSOLE_LINES_MS } from "../limits.ts";

export class LineBudget {
  readonly #now: () => number;
  #sinceMs = -Infinity;
  #lines = 0;
  #dropped = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The line to write; null = there have been enough. The first of the next term says how many were not written. */
  take(line: string): string | null {
    const nowMs = this.#now();
    let dropped = 0;
    if (nowMs >= this.#sinceMs + CONSOLE_LINES_MS) {
      dropped = this.#dropped;
      [this.#sinceMs, this.#lines, this.#dropped] = [nowMs, 0, 0];
    }
    if (this.#lines === CONSOLE_LINES_MAX) {
      this.#dropped += 1;
      return null;
    }
    this.#lines += 1;
    return dropped === 0 ? line : `${line} (${dropped} lines like this were not written)`;
  }
}

const brokenOff = new LineBudget(() => Date.now());

/** Notes that an answer broke off on its way, a bounded number of times. */
export function logBrokenOff(what: string, error: unknown): void {
  const line = brokenOff.take(`${what} broke off`);
  if (line !== null) console.error(line, error);
}
