/** The tables of a directory object, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type DirectoryTable = "run" | "summary" | "past" | "day" | "lease";

/** Without an index of ids: `opened` is found from the time that a run was opened at. */
const RUN = `CREATE TABLE run (opened INTEGER PRIMARY KEY, id TEXT NOT NULL, day TEXT,
    held_nano_usd INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0, at_ms INTEGER, body TEXT) STRICT`;

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
  // Older code would take what is committed of a part's lease for what is committed of the whole budget.
  {
    version: 2,
    table: "lease",
    sql: `CREATE TABLE lease (day TEXT NOT NULL, part TEXT NOT NULL, no INTEGER NOT NULL, nano_usd INTEGER NOT NULL,
    limit_nano_usd INTEGER, PRIMARY KEY (day, part)) STRICT, WITHOUT ROWID`,
  },
  // A run's summary had a row of its own.
  { version: 3, table: "run", sql: "ALTER TABLE run ADD COLUMN at_ms INTEGER" },
  { version: 3, table: "run", sql: "ALTER TABLE run ADD COLUMN body TEXT" },
  {
    version: 3,
    table: "summary",
    sql: "UPDATE run SET at_ms = summary.at_ms, body = summary.body FROM summary WHERE summary.id = run.id",
  },
  { version: 3, table: "summary", sql: "DROP TABLE summary" },
  // Each run wrote a row of an index of ids beside its own.
  { version: 4, table: "run", sql: "ALTER TABLE run RENAME TO run_indexed" },
  { version: 4, table: "run", sql: RUN },
  {
    version: 4,
    table: "run",
    sql: `INSERT INTO run SELECT opened, id, day, held_nano_usd, ended, at_ms, body FROM run_indexed;
    DROP TABLE run_indexed`,
    whole: RUN,
  },
];
