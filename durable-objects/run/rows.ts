/** An object's SQLite, with its cost: Cloudflare bills most for rows written. */
export class Rows {
  readonly sql: SqlStorage;
  /** Rows written by this instance, as Cloudflare bills them; the alarm's count as one each. */
  written = 0;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  write(query: string, ...bindings: (string | number | null)[]): void {
    this.written += this.sql.exec(query, ...bindings).rowsWritten;
  }
}
