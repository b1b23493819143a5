/**
 * Lets the pages of a log go one after another, and the instance serve others between them. All that follow a run read on at the same
 * moment, and their pages together would hold for long what each alone holds for a millisecond.
 */
import { LOG_PAGE_CHARS_MAX } from "../../../src/limits.ts";
import type { LogPage } from "../../../src/objects/methods/log.ts";

export class Pace {
  readonly #serveOthers: () => Promise<void>;
  #chars = 0;
  #next: Promise<void> | null = null;

  /** `serveOthers` resolves when what had arrived meanwhile is served. */
  constructor(serveOthers: () => Promise<void>) {
    this.#serveOthers = serveOthers;
  }

  /** Makes a page at its turn, in the order of the callers. Small pages share one. */
  async page(make: () => LogPage | null): Promise<LogPage | null> {
    while (this.#chars >= LOG_PAGE_CHARS_MAX) await (this.#next ??= this.#afterOthers());
    const page = make();
    for (const { lines } of page?.rows ?? []) this.#chars += lines.length;
    return page;
  }

  async #afterOthers(): Promise<void> {
    await this.#serveOthers();
    this.#chars = 0;
    this.#next = null;
  }
}
