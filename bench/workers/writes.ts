/** What the objects of a measured gateway write: counted in their statements. */

/** Rows of one object at one moment are one commit. A text counts as many bytes as it has UTF-16 units, any other value eight. */
export const written = { commits: 0, rows: 0, bytes: 0 };

/** Objects whose rows of this moment are one commit. */
const writing = new Set<SqlStorage>();

/** Counts what the statements of all objects write, from the first object that asks for it on. */
export function countWrites(sql: SqlStorage): void {
  const prototype: { exec: SqlStorage["exec"]; isCounted?: boolean } = Object.getPrototypeOf(sql);
  if (prototype.isCounted === true) return;
  prototype.isCounted = true;
  const plain = prototype.exec;
  prototype.exec = function <T extends Record<string, SqlStorageValue>>(
    this: SqlStorage,
    query: string,
    ...values: unknown[]
  ): SqlStorageCursor<T> {
    const cursor = plain.call<SqlStorage, [string, ...unknown[]], SqlStorageCursor<T>>(this, query, ...values);
    if (cursor.rowsWritten > 0) noteRows(this, cursor.rowsWritten, values);
    return cursor;
  };
}

function noteRows(sql: SqlStorage, rows: number, values: readonly unknown[]): void {
  written.rows += rows;
  for (const value of values) written.bytes += typeof value === "string" ? value.length : 8;
  if (writing.has(sql)) return;
  writing.add(sql);
  written.commits += 1;
  queueMicrotask(() => writing.delete(sql));
}
