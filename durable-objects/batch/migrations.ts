/** The tables of a batch, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type BatchTable = "meta" | "chunk" | "tail";

export const MIGRATIONS: readonly Migration<BatchTable>[] = [
  {
    version: 1,
    table: "meta",
    sql: "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
  },
  { version: 1, table: "chunk", sql: "CREATE TABLE chunk (no INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "tail",
    sql: "CREATE TABLE tail (file TEXT, start INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (file, start)) STRICT, WITHOUT ROWID",
  },
];
