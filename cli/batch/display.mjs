/** Output for the user, on standard error: notes that stay, and on a terminal a progress line that is redrawn. */
import { progressLine } from "./progress.mjs";

const CLEAR_LINE = "\r\u001b[K";

/**
 * `live`: standard error is a terminal; otherwise no progress is written. `columns` is called for each line, because the user may
 * resize the terminal.
 * @typedef {{ write: (text: string) => void, columns: () => number, live: boolean, quiet: boolean }} DisplayOptions
 */

export class Display {
  #options;
  #drawn = false;

  /** @param {DisplayOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /**
   * Prints a line that stays, unless quiet.
   * @param {string} text
   */
  note(text) {
    if (!this.#options.quiet) this.error(text);
  }

  /**
   * Prints a line that stays, even if quiet.
   * @param {string} text
   */
  error(text) {
    this.clear();
    this.#options.write(`${text}\n`);
  }

  /** @param {import("./progress.mjs").Progress} progress */
  progress(progress) {
    const { live, quiet, write, columns } = this.#options;
    if (quiet || !live) return;
    write(`${CLEAR_LINE}${progressLine(progress, columns())}`);
    this.#drawn = true;
  }

  /** Clears the progress line. */
  clear() {
    if (this.#drawn) this.#options.write(CLEAR_LINE);
    this.#drawn = false;
  }
}
