/** Output for the user, on standard error: notes that stay, and on a terminal a progress line that is redrawn. */
import { progressLine, type Progress } from "./progress.ts";

const CLEAR_LINE = "\r\u001b[K";

/**
 * `live`: standard error is a terminal; otherwise no progress is written. `columns` is called for each line, because the user may
 * resize the terminal.
 */
export type DisplayOptions = { write: (text: string) => void; columns: () => number; live: boolean; quiet: boolean };

export class Display {
  #options;
  #drawn = false;

  constructor(options: DisplayOptions) {
    this.#options = options;
  }

  /** Prints a line that stays, unless quiet. */
  note(text: string): void {
    if (!this.#options.quiet) this.error(text);
  }

  /** Prints a line that stays, even if quiet. */
  error(text: string): void {
    this.clear();
    this.#options.write(`${text}\n`);
  }

  progress(progress: Progress): void {
    const { live, quiet, write, columns } = this.#options;
    if (quiet || !live) return;
    write(`${CLEAR_LINE}${progressLine(progress, columns())}`);
    this.#drawn = true;
  }

  /** Clears the progress line. */
  clear(): void {
    if (this.#drawn) this.#options.write(CLEAR_LINE);
    this.#drawn = false;
  }
}
