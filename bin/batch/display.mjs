/** Output for the user, on standard error: notes that stay, and a progress line that a terminal redraws. */
import { progressLine } from "./progress.mjs";

const CLEAR_LINE = "\r\u001b[K";
/** Width of a line that goes to a file or a pipe. */
const PLAIN_COLUMNS = 100;

/**
 * `live`: the progress line is redrawn in place; otherwise a new line is printed for each tenth. `columns` is called for each
 * line, because the user may resize the terminal.
 * @typedef {{ write: (text: string) => void, columns: () => number, live: boolean, quiet: boolean }} DisplayOptions
 */

export class Display {
  #options;
  #drawn = false;
  /** Phase and completed tenths of the last plain line. */
  #printed = "";

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
    if (quiet) return;
    if (live) {
      write(`${CLEAR_LINE}${progressLine(progress, columns())}`);
      this.#drawn = true;
      return;
    }
    const tenths = progress.total === 0 ? 0 : Math.floor((10 * progress.done) / progress.total);
    const key = `${progress.phase} ${progress.total > 0} ${tenths}`;
    if (key === this.#printed) return;
    this.#printed = key;
    write(`${progressLine(progress, PLAIN_COLUMNS)}\n`);
  }

  /** Clears the progress line. */
  clear() {
    if (this.#drawn) this.#options.write(CLEAR_LINE);
    this.#drawn = false;
  }
}
