/** What the person sees, on standard error: notes that stay, and a line of progress that a terminal redraws. */
import { progressLine } from "./progress.mjs";

const CLEAR_LINE = "\r\u001b[K";
/** Columns of a line that goes to a file or a pipe. */
const PLAIN_COLUMNS = 100;

/**
 * `live`: the line of progress is redrawn in place; else there is a new one for each tenth. `columns` is asked anew for
 * each line, for a person may resize the terminal.
 * @typedef {{ write: (text: string) => void, columns: () => number, live: boolean, quiet: boolean }} DisplayOptions
 */

export class Display {
  #options;
  #drawn = false;
  /** Of the last plain line: its phase, and the tenths that were done. */
  #said = "";

  /** @param {DisplayOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /**
   * A line that stays; nothing where it is quiet.
   * @param {string} text
   */
  note(text) {
    if (!this.#options.quiet) this.error(text);
  }

  /**
   * A line that stays, quiet or not.
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
    if (key === this.#said) return;
    this.#said = key;
    write(`${progressLine(progress, PLAIN_COLUMNS)}\n`);
  }

  /** Takes the line of progress away. */
  clear() {
    if (this.#drawn) this.#options.write(CLEAR_LINE);
    this.#drawn = false;
  }
}
