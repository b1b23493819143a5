/** The tables of a directory object, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type DirectoryTable = "run" | "summary" | "past" | "day";

export const MIGRATIONS: readonly Migration<DirectoryTable>[] = [
  {
    version: 1,
    table: "run",
    sql: `CREATE TABLE run (opened INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, day TEXT,
    held_nano_usd INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0) STRICT`,
  },
  {
    version: 1,
    table: "summary",
    sql: "CREATE TABLE summary (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, body TEXT NOT NULL) STRICT, WITHOUT ROWID",
  },
  {
    version: 1,
    table: "past",
    sql: "CREATE TABLE past (hour INTEGER PRIMARY KEY, nano_usd INTEGER NOT NULL) STRICT",
  },
  {
    version: 1,
    table: "day",
    sql: "CREATE TABLE day (day TEXT PRIMARY KEY, committed_nano_usd INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  },
];
