/** The tables of a run's files and contexts, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type FilesTable = "file" | "upload" | "part" | "batch" | "batch_bytes" | "context";

export const MIGRATIONS: readonly Migration<FilesTable>[] = [
  {
    version: 1,
    table: "file",
    sql: `CREATE TABLE file (made INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, expires_s INTEGER,
    purpose TEXT NOT NULL, body TEXT NOT NULL) STRICT`,
  },
  { version: 1, table: "file", sql: "CREATE INDEX file_expires ON file (expires_s)" },
  {
    version: 1,
    table: "upload",
    sql: "CREATE TABLE upload (id TEXT PRIMARY KEY, parts_until_s INTEGER, body TEXT NOT NULL) STRICT, WITHOUT ROWID",
  },
  { version: 1, table: "upload", sql: "CREATE INDEX upload_parts_until ON upload (parts_until_s)" },
  {
    version: 1,
    table: "part",
    sql: "CREATE TABLE part (made INTEGER PRIMARY KEY AUTOINCREMENT, upload_id TEXT NOT NULL, body TEXT NOT NULL) STRICT",
  },
  { version: 1, table: "part", sql: "CREATE INDEX part_of ON part (upload_id)" },
  {
    version: 1,
    table: "batch",
    sql: `CREATE TABLE batch (made INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, input TEXT NOT NULL,
    until_s INTEGER NOT NULL) STRICT`,
  },
  { version: 1, table: "batch", sql: "CREATE INDEX batch_input ON batch (input)" },
  {
    version: 1,
    table: "batch_bytes",
    sql: "CREATE TABLE batch_bytes (id TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  },
  {
    version: 1,
    table: "context",
    sql: `CREATE TABLE context (made INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    bytes INTEGER NOT NULL, body TEXT NOT NULL, blocks BLOB NOT NULL, text BLOB) STRICT`,
  },
];
