/** The tables of an upstream object, as one append-only list of migrations: see ../schema-version.ts. */
import type { Migration } from "../schema-version.ts";

export const MIGRATIONS: readonly Migration<"template">[] = [
  {
    version: 1,
    table: "template",
    sql: `CREATE TABLE template (model TEXT, shape TEXT, body TEXT NOT NULL, PRIMARY KEY (model, shape)) STRICT, WITHOUT ROWID`,
  },
];
