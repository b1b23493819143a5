/** An object's SQLite, with its cost: Cloudflare bills most for rows written. */
export class Rows {
  readonly sql: SqlStorage;
  #written = 0;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  /** Rows written by this instance, as Cloudflare bills them: setting the alarm counts as one. */
  get written(): number {
    return this.#written;
  }

  /** Counts a row that was written without SQL: the alarm's. */
  countAlarm(): void {
    this.#written += 1;
  }

  write(query: string, ...bindings: (string | number | null)[]): void {
    this.#written += this.sql.exec(query, ...bindings).rowsWritten;
  }
}
