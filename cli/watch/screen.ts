/** A terminal whose last lines are redrawn in place, while other lines scroll up as usual. */
import { widthOf } from "./text.ts";

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_BELOW = "\u001b[J";

/** The lines drawn last, at the bottom of the terminal. Texts must not contain escape codes; this class adds its own. */
export class Screen {
  #live: string[] = [];
  #begun = false;

  /**
   * The output that puts `history` above and `live` below; "" if nothing changes.
   * @param columns The terminal's current width: a narrower terminal has wrapped the lines drawn before.
   */
  draw(history: readonly string[], live: readonly string[], columns: number): string {
    if (this.#begun && history.length === 0 && sameLines(live, this.#live)) return "";
    const start = this.#begun ? "" : HIDE_CURSOR;
    const up = rowsOf(this.#live, columns);
    this.#begun = true;
    this.#live = [...live];
    const lines = [...history, ...live].map((line) => `${line}\n`).join("");
    // Clear first: a code after a line that fills its row would erase that line's last character.
    return `${start}${up > 0 ? `\u001b[${up}A` : ""}\r${CLEAR_BELOW}${lines}`;
  }

  /** The output at the end; the live lines stay on the terminal. */
  close(): string {
    return this.#begun ? SHOW_CURSOR : "";
  }
}

function rowsOf(lines: readonly string[], columns: number): number {
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
}

function sameLines(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, place) => line === b[place]);
}
