/**
 * The run's log as rows: one per write, its key the number of its last event, its events one JSON text per line. A write
 * that is too large for one row takes several.
 */
import type { LoggedEvent, LogWrite } from "../../../src/run/log.ts";
import { LOG_ROW_CHARS_MAX } from "../../../src/limits.ts";
import type { LogRow } from "../../../src/objects/methods/log.ts";
import type { Rows } from "./sql.ts";

export class LogRows {
  readonly #rows: Rows;
  #written = 0;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Rows of the log written by this instance. */
  get written(): number {
    return this.#written;
  }

  put({ lastSeq, events, texts }: LogWrite): void {
    let seq = lastSeq - events.length;
    let lines: string[] = [];
    let chars = 0;
    for (const [at, event] of events.entries()) {
      const line = texts[at] ?? JSON.stringify(event satisfies LoggedEvent);
      if (chars + line.length > LOG_ROW_CHARS_MAX && lines.length > 0) {
        this.#put(seq, lines);
        lines = [];
        chars = 0;
      }
      lines.push(line);
      chars += line.length;
      seq += 1;
    }
    this.#put(seq, lines);
  }

  /** Number of the last event written; 0 = no event was written. */
  lastSeq(): number {
    return this.#rows.first<{ last: number | null }>("log", "SELECT max(last) AS last FROM log")?.last ?? 0;
  }

  /** Rows that hold events after `seq`, in order, up to `charsMax` characters; at least one, if there is one. */
  after(seq: number, charsMax: number): LogRow[] {
    const rows: LogRow[] = [];
    let chars = 0;
    for (const row of this.#rows.read<LogRow>("log", "SELECT last, lines FROM log WHERE last > ? ORDER BY last", seq)) {
      rows.push(row);
      chars += row.lines.length;
      if (chars >= charsMax) break;
    }
    return rows;
  }

  /** The row that holds the first event after `seq`; null if there is none. */
  next(seq: number): LogRow | null {
    const query = "SELECT last, lines FROM log WHERE last > ? ORDER BY last LIMIT 1";
    return this.#rows.first<LogRow>("log", query, seq) ?? null;
  }

  /** The row whose last event is the newest before number `seq`; null if there is none. */
  before(seq: number): LogRow | null {
    const query = "SELECT last, lines FROM log WHERE last < ? ORDER BY last DESC LIMIT 1";
    return this.#rows.first<LogRow>("log", query, seq) ?? null;
  }

  #put(last: number, lines: string[]): void {
    this.#written += 1;
    this.#rows.write("log", "INSERT INTO log (last, lines) VALUES (?, ?)", last, lines.join("\n"));
  }
}
