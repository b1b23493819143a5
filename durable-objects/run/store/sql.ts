/** An object's SQLite, with its cost: Cloudflare bills most for rows written, and making a table writes rows too. */
import { makeTables, tablesIn } from "../../schema-version.ts";
import { MIGRATIONS, type TableName } from "./tables.ts";

type Value = string | number | null;

export class Rows {
  readonly #sql: SqlStorage;
  #made: Set<string>;
  #written = 0;
  #read = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#made = tablesIn(sql);
  }

  /** Rows written by this instance, as Cloudflare bills them: setting the alarm counts as one. */
  get written(): number {
    return this.#written;
  }

  /** Rows read by this instance, as Cloudflare bills them. */
  get rowsRead(): number {
    return this.#read;
  }

  /** Bytes that the object stores now. */
  get storedBytes(): number {
    return this.#sql.databaseSize;
  }

  /** Counts a row that was written without SQL: the alarm's. */
  countAlarm(): void {
    this.#written += 1;
  }

  /** Whether a table was made: it gets its first row with `write`. */
  has(table: TableName): boolean {
    return this.#made.has(table);
  }

  /** Writes rows to a table, which is made if it was not. */
  write(table: TableName, query: string, ...bindings: Value[]): void {
    this.make(table);
    this.#written += this.#sql.exec(query, ...bindings).rowsWritten;
  }

  /** Deletes rows of a table. */
  remove(table: TableName, query: string, ...bindings: Value[]): void {
    if (this.has(table)) this.write(table, query, ...bindings);
  }

  /** The rows of a query on a table: none if it was not made. */
  read<T extends Record<string, SqlStorageValue>>(table: TableName, query: string, ...bindings: Value[]): Iterable<T> {
    return this.has(table) ? this.#counted(this.#sql.exec<T>(query, ...bindings)) : [];
  }

  /** A query's rows, which count as read when they are no longer wanted. */
  *#counted<T extends Record<string, SqlStorageValue>>(cursor: SqlStorageCursor<T>): Generator<T> {
    try {
      yield* cursor;
    } finally {
      this.#read += cursor.rowsRead;
    }
  }

  /** The first row of a query on a table. */
  first<T extends Record<string, SqlStorageValue>>(
    table: TableName,
    query: string,
    ...bindings: Value[]
  ): T | undefined {
    if (!this.has(table)) return undefined;
    const cursor = this.#sql.exec<T>(query, ...bindings);
    const [row] = cursor.toArray();
    this.#read += cursor.rowsRead;
    return row;
  }

  /** Makes a table, if it was not made. */
  make(table: TableName): void {
    if (this.#made.has(table)) return;
    this.#written += makeTables(this.#sql, MIGRATIONS, [table]);
    this.#made.add(table);
  }

  /** Looks again which tables there are: a transaction was undone, or the storage was deleted. */
  lookAgain(): void {
    this.#made = tablesIn(this.#sql);
  }
}
