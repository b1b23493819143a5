/**
 * The log in small pages, whatever the size of its rows. Those who read it mostly read the same rows at the same time, so a row that is worth
 * more than a page is prepared once for all of them.
 */
import { LOG_PAGE_CHARS_MAX, LOG_PAGED_ROWS_CHARS_MAX } from "../../../src/limits.ts";
import type { LogRow } from "../../../src/objects/methods/log.ts";
import type { LogRows } from "../store/log-rows.ts";

/** A stored row, line by line; its last event has the number `last`. */
type Prepared = { last: number; lines: readonly string[]; chars: number };

export class LogPages {
  readonly #rows: Pick<LogRows, "next">;
  readonly #shown: (line: string) => string;
  /** Rows that take several pages, the one that was used last at the end. */
  #kept: Prepared[] = [];

  /** `shown`: a line as its readers get it. */
  constructor(rows: Pick<LogRows, "next">, shown: (line: string) => string) {
    this.#rows = rows;
    this.#shown = shown;
  }

  /** Events after number `seq`, up to the size of a page; at least one, if there is one. */
  after(seq: number): LogRow[] {
    const page: LogRow[] = [];
    let chars = 0;
    let last = seq;
    for (let row = this.#rowAfter(last); row !== null && chars < LOG_PAGE_CHARS_MAX; row = this.#rowAfter(last)) {
      const lines: string[] = [];
      const from = row.lines.length - (row.last - last);
      for (let at = Math.max(0, from); at < row.lines.length && chars < LOG_PAGE_CHARS_MAX; at += 1) {
        const line = row.lines[at] ?? "";
        lines.push(line);
        chars += line.length;
        last = row.last - row.lines.length + 1 + at;
      }
      page.push({ last, lines: lines.join("\n") });
    }
    return page;
  }

  /** The row that has the event after number `seq`; null if there is none. */
  #rowAfter(seq: number): Prepared | null {
    const kept = this.#kept.find(({ last, lines }) => last > seq && last - lines.length <= seq);
    if (kept !== undefined) {
      this.#kept = [...this.#kept.filter((each) => each !== kept), kept];
      return kept;
    }
    const row = this.#rows.next(seq);
    if (row === null) return null;
    const lines = row.lines.split("\n").map(this.#shown);
    const prepared = { last: row.last, lines, chars: lines.reduce((sum, { length }) => sum + length, 0) };
    if (row.lines.length > LOG_PAGE_CHARS_MAX) this.#keep(prepared);
    return prepared;
  }

  #keep(row: Prepared): void {
    this.#kept.push(row);
    let chars = this.#kept.reduce((sum, each) => sum + each.chars, 0);
    while (chars > LOG_PAGED_ROWS_CHARS_MAX && this.#kept.length > 1) chars -= this.#kept.shift()?.chars ?? 0;
  }
}
