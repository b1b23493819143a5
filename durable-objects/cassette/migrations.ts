/** The tables of a cassette, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type CassetteTable = "exchange" | "had" | "facts";

export const MIGRATIONS: readonly Migration<CassetteTable>[] = [
  {
    version: 1,
    table: "exchange",
    sql: `CREATE TABLE exchange (key TEXT NOT NULL, n INTEGER NOT NULL, sketch BLOB NOT NULL, bytes INTEGER NOT NULL,
    line TEXT NOT NULL, PRIMARY KEY (key, n)) STRICT`,
  },
  {
    version: 1,
    table: "had",
    sql: `CREATE TABLE had (session TEXT NOT NULL, attempt TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (session, attempt, key)) STRICT, WITHOUT ROWID`,
  },
  { version: 1, table: "facts", sql: "CREATE TABLE facts (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
];
