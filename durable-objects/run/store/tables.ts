/**
 * The tables of a run, as one append-only list of migrations: see ../../schema-version.ts. Each table is made with its first row: making
 * one costs as much as two rows, and few runs need all.
 */
import type { Migration } from "../../schema-version.ts";

export const MIGRATIONS = [
  {
    version: 1,
    table: "meta",
    sql: "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
  },
  {
    version: 1,
    table: "grp",
    sql: "CREATE TABLE grp (seq INTEGER PRIMARY KEY, header TEXT NOT NULL, result TEXT) STRICT",
  },
  { version: 1, table: "retried", sql: "CREATE TABLE retried (seq INTEGER PRIMARY KEY, before TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "graph",
    sql: "CREATE TABLE graph (seq INTEGER, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (seq, part)) STRICT, WITHOUT ROWID",
  },
  {
    version: 1,
    table: "page",
    sql: "CREATE TABLE page (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, calls TEXT NOT NULL) STRICT",
  },
  {
    version: 1,
    table: "single",
    sql: `CREATE TABLE single (
    seq INTEGER PRIMARY KEY, key TEXT, hash TEXT, header TEXT NOT NULL, result TEXT, lease TEXT,
    facts TEXT NOT NULL, slot TEXT, calls TEXT NOT NULL) STRICT`,
  },
  {
    version: 1,
    table: "slot",
    sql: `CREATE TABLE slot (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, attempts INTEGER NOT NULL, not_before_ms INTEGER,
    latency_ms INTEGER NOT NULL, queued_ms INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost_nano_usd INTEGER NOT NULL,
    estimated INTEGER NOT NULL, model TEXT, finish_reason TEXT, text TEXT, reason TEXT) STRICT`,
  },
  {
    version: 1,
    table: "chunk",
    sql: `CREATE TABLE chunk (
    id INTEGER, part INTEGER, text TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID`,
  },
  {
    version: 1,
    table: "parts",
    sql: "CREATE TABLE parts (id INTEGER, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID",
  },
  { version: 1, table: "capped", sql: "CREATE TABLE capped (id INTEGER PRIMARY KEY, cause TEXT NOT NULL) STRICT" },
  { version: 1, table: "routed", sql: "CREATE TABLE routed (id INTEGER PRIMARY KEY, upstream TEXT NOT NULL) STRICT" },
  { version: 1, table: "checked", sql: "CREATE TABLE checked (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  { version: 1, table: "course", sql: "CREATE TABLE course (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  { version: 1, table: "shard", sql: "CREATE TABLE shard (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "provider",
    sql: "CREATE TABLE provider (seq INTEGER, page INTEGER, leases TEXT NOT NULL, PRIMARY KEY (seq, page)) STRICT, WITHOUT ROWID",
  },
  { version: 1, table: "child", sql: "CREATE TABLE child (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT" },
  { version: 1, table: "log", sql: "CREATE TABLE log (last INTEGER PRIMARY KEY, lines TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "named",
    sql: "CREATE TABLE named (key TEXT PRIMARY KEY, hash TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  },
  { version: 1, table: "keys", sql: "CREATE TABLE keys (last INTEGER PRIMARY KEY, keys TEXT NOT NULL) STRICT" },
  {
    version: 1,
    table: "tape",
    sql: "CREATE TABLE tape (id INTEGER PRIMARY KEY, marks TEXT NOT NULL, answers TEXT NOT NULL) STRICT",
  },
  {
    version: 1,
    table: "space",
    sql: "CREATE TABLE space (id TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  },
  {
    version: 1,
    table: "kept",
    sql: "CREATE TABLE kept (id TEXT PRIMARY KEY, upstream TEXT NOT NULL) STRICT, WITHOUT ROWID",
  },
  // What few slots have was in a table for each kind of it, and in the column of the reason, which slots with an answer did not use: those
  // that completed, and those that are asked again.
  { version: 2, table: "slot", sql: "ALTER TABLE slot ADD COLUMN extras TEXT" },
  {
    version: 2,
    table: "slot",
    sql: `UPDATE slot SET extras = json_patch('{}', reason), reason = NULL
    WHERE reason LIKE '{"replay":%' OR reason LIKE '{"savedNanoUsd":%'`,
  },
  ...intoExtras("capped", "'$.cappedBy'", "cause"),
  ...intoExtras("routed", "'$.upstream'", "upstream"),
  ...intoExtras("checked", "'$.checks'", "json(body)"),
  ...intoExtras("course", "'$.course'", "json(body)"),
  // What a group is for was known of judges' calls only.
  ...servesOfJudges("grp"),
  ...servesOfJudges("single"),
  // The rules of a group were fields beside what every group has.
  ...rulesTogether("grp"),
  ...rulesTogether("single"),
  ...withoutByNewNames(),
  // The settings had a row beside the version's, which every run has too.
  {
    version: 4,
    table: "meta",
    sql: "ALTER TABLE meta ADD COLUMN more TEXT",
  },
  {
    version: 4,
    table: "meta",
    sql: "UPDATE meta SET more = (SELECT value FROM meta WHERE key = 'run') WHERE key = 'schema'",
  },
  {
    version: 4,
    table: "meta",
    sql: "DELETE FROM meta WHERE key = 'run'",
    whole: "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, more TEXT) STRICT, WITHOUT ROWID",
  },
  // The end of a call wrote its shard's row beside its own.
  {
    version: 5,
    table: "single",
    sql: "ALTER TABLE single ADD COLUMN shard TEXT",
    whole: `CREATE TABLE single (
    seq INTEGER PRIMARY KEY, key TEXT, hash TEXT, header TEXT NOT NULL, result TEXT, lease TEXT,
    facts TEXT NOT NULL, slot TEXT, calls TEXT NOT NULL, shard TEXT) STRICT`,
  },
] as const satisfies readonly Migration[];

/** Statements that move a table with a row per slot into the slots' extras, and end it: newer code never makes it. */
function intoExtras<const Table extends string>(table: Table, path: string, value: string) {
  return [
    {
      version: 2,
      table,
      sql: `UPDATE slot SET extras = json_set(coalesce(extras, '{}'), ${path},
    (SELECT ${value} FROM ${table} WHERE ${table}.id = slot.id)) WHERE id IN (SELECT id FROM ${table})`,
    },
    { version: 2, table, sql: `DROP TABLE ${table}` },
  ] as const;
}

/** The statement that names the service of a judge's call in the headers of a table. */
function servesOfJudges<const Table extends string>(table: Table) {
  return [
    {
      version: 2,
      table,
      sql: `UPDATE ${table} SET header = json_set(json_remove(header, '$.header.judges'), '$.header.serves',
    json_set(header -> '$.header.judges', '$.as', 'judge'))
    WHERE header -> '$.header.judges' IS NOT NULL`,
    },
  ] as const;
}

/** The statement that makes one map of the rules in the headers of a table. */
function rulesTogether<const Table extends string>(table: Table) {
  const names = ["stopWhen", "judgeWhen", "ballot", "tiers", "atLeast", "onError"];
  const places = names.map((name) => `'$.header.${name}'`).join(", ");
  const rules = `json_each(header, '$.header') WHERE key IN (${names.map((name) => `'${name}'`).join(", ")})
    AND value <> 'continue'`;
  return [
    {
      version: 3,
      table,
      sql: `UPDATE ${table} SET header = json_set(json_remove(header, ${places}), '$.header.rules',
    json((SELECT json_group_object(key, header -> ('$.header.' || key)) FROM ${rules})))
    WHERE EXISTS (SELECT 1 FROM ${rules})`,
    },
  ] as const;
}

/**
 * The statements for the rows of retries, which refer to the header of the first group and name what of it they have not: an early stop was
 * a field then, and so was what a judge's call is for.
 */
function withoutByNewNames() {
  const names = (list: string): string =>
    `EXISTS (SELECT 1 FROM json_each(header, '$.without') WHERE value IN (${list}))`;
  return [
    {
      version: 3,
      table: "grp",
      sql: `UPDATE grp SET header = json_set(header, '$.header.rules', json_remove(
    (SELECT first.header -> '$.header.rules' FROM grp AS first WHERE first.seq = grp.header ->> '$.like'),
    '$.stopWhen', '$.judgeWhen')) WHERE ${names("'stopWhen', 'judgeWhen'")}`,
    },
    {
      version: 3,
      table: "grp",
      sql: `UPDATE grp SET header = json_insert(header, '$.without[#]', 'serves') WHERE ${names("'judges'")}`,
    },
  ] as const;
}

export type TableName = (typeof MIGRATIONS)[number]["table"];
