/** The tables of a gate, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export type GateTable = "memory" | "metered" | "unread";

/** Without row ids where the key is a text: it would be a second row that is written, and billed. */
export const MIGRATIONS: readonly Migration<GateTable>[] = [
  { version: 1, table: "memory", sql: "CREATE TABLE memory (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "metered",
    sql: `CREATE TABLE metered (run TEXT PRIMARY KEY, number INTEGER NOT NULL, sheet TEXT NOT NULL,
    ended INTEGER NOT NULL, day INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
  },
  {
    version: 1,
    table: "unread",
    sql: "CREATE TABLE unread (run TEXT PRIMARY KEY, day INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  },
];
