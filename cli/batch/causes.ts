/** Groups failed lines by cause, so that a fault that many lines share is reported once, however many they are. */
import { printable } from "../text/printable.ts";
import { countText } from "../text/amounts.ts";

/** Causes that are reported by name, the most frequent first. */
const CAUSES_SHOWN_MAX = 5;
/** Lines that are named for each cause. */
const NAMES_SHOWN_MAX = 3;
/** Different causes that are counted apart: bounds memory if every line fails with a message of its own. */
const CAUSES_KEPT_MAX = 1_000;

/** `message` is that of the first line. */
export type Cause = { message: string; count: number; names: string[] };

export class Causes {
  #causes: Map<string, Cause> = new Map();
  #count = 0;

  /** @param name The line's id or number; "" if the fault belongs to no line. */
  add(name: string, message: string): void {
    this.#count += 1;
    // Figures differ from line to line, such as what is left of the budget; the cause is the same.
    const key = printable(message).replace(/\d[\d.,]*/g, "0");
    const cause = this.#causes.get(key);
    if (cause !== undefined) {
      cause.count += 1;
      if (cause.names.length < NAMES_SHOWN_MAX) cause.names.push(name);
    } else if (this.#causes.size < CAUSES_KEPT_MAX) {
      this.#causes.set(key, { message: printable(message), count: 1, names: [name] });
    }
  }

  /** The most frequent causes, each with the names of some of its lines. */
  top(): Cause[] {
    return [...this.#causes.values()].sort((a, b) => b.count - a.count).slice(0, CAUSES_SHOWN_MAX);
  }

  /**
   * One line of text for each of the most frequent causes, then one for the rest.
   * @param one How a single failed line is named.
   */
  report(one: (name: string) => string): string[] {
    const causes = this.top();
    const shown = causes.reduce((sum, { count }) => sum + count, 0);
    const lines = causes.map(({ message, count, names }) => {
      const whose = count === 1 ? one(names[0] ?? "") : manyOf(count, names);
      return printable(whose === "" ? message : `${whose}: ${message}`);
    });
    const rest = this.#count - shown;
    if (rest > 0) lines.push(`${countText(rest)} more ${rest === 1 ? "line" : "lines"}, for other reasons`);
    return lines;
  }
}

/** "100 lines (1, 2, 3, …)"; without names if the fault belongs to no line. */
function manyOf(count: number, names: string[]) {
  const shown = names.filter((name) => name !== "");
  if (shown.length === 0) return "";
  return `${countText(count)} lines (${shown.join(", ")}${count > shown.length ? ", …" : ""})`;
}
