/** The tables of a run. Each is made with its first row: making one costs as much as two rows, and few runs need all. */
export const TABLES = {
  meta: "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
  grp: "CREATE TABLE grp (seq INTEGER PRIMARY KEY, header TEXT NOT NULL, result TEXT) STRICT",
  retried: "CREATE TABLE retried (seq INTEGER PRIMARY KEY, before TEXT NOT NULL) STRICT",
  graph:
    "CREATE TABLE graph (seq INTEGER, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (seq, part)) STRICT, WITHOUT ROWID",
  page: "CREATE TABLE page (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, calls TEXT NOT NULL) STRICT",
  single: `CREATE TABLE single (
    seq INTEGER PRIMARY KEY, key TEXT, hash TEXT, header TEXT NOT NULL, result TEXT, lease TEXT,
    facts TEXT NOT NULL, slot TEXT, calls TEXT NOT NULL) STRICT`,
  slot: `CREATE TABLE slot (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, attempts INTEGER NOT NULL, not_before_ms INTEGER,
    latency_ms INTEGER NOT NULL, queued_ms INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost_nano_usd INTEGER NOT NULL,
    estimated INTEGER NOT NULL, model TEXT, finish_reason TEXT, text TEXT, reason TEXT) STRICT`,
  chunk: `CREATE TABLE chunk (
    id INTEGER, part INTEGER, text TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID`,
  parts:
    "CREATE TABLE parts (id INTEGER, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID",
  capped: "CREATE TABLE capped (id INTEGER PRIMARY KEY, cause TEXT NOT NULL) STRICT",
  routed: "CREATE TABLE routed (id INTEGER PRIMARY KEY, upstream TEXT NOT NULL) STRICT",
  checked: "CREATE TABLE checked (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
  course: "CREATE TABLE course (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
  shard: "CREATE TABLE shard (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
  provider:
    "CREATE TABLE provider (seq INTEGER, page INTEGER, leases TEXT NOT NULL, PRIMARY KEY (seq, page)) STRICT, WITHOUT ROWID",
  child: "CREATE TABLE child (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
  log: "CREATE TABLE log (last INTEGER PRIMARY KEY, lines TEXT NOT NULL) STRICT",
  named: "CREATE TABLE named (key TEXT PRIMARY KEY, hash TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  keys: "CREATE TABLE keys (last INTEGER PRIMARY KEY, keys TEXT NOT NULL) STRICT",
  tape: "CREATE TABLE tape (id INTEGER PRIMARY KEY, marks TEXT NOT NULL, answers TEXT NOT NULL) STRICT",
  space: "CREATE TABLE space (id TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  kept: "CREATE TABLE kept (id TEXT PRIMARY KEY, upstream TEXT NOT NULL) STRICT, WITHOUT ROWID",
} as const;

export type TableName = keyof typeof TABLES;

/**
 * The version of these tables and of what their rows hold. An object whose version is higher was written by newer code and
 * is refused. Up to 3, all tables were made when the run was opened; from 4 on, the row of a shard may have a tail, and a
 * page may have the place of its bodies in R2.
 */
export const SCHEMA_VERSION = 4;

/**
 * The version of a run that has stored a graph: older code would start all of its tasks at once, so it must refuse the object.
 */
export const GRAPH_SCHEMA_VERSION = 5;

/** The version of a run that has changed a graph: older code would start what was removed. */
export const CHANGED_GRAPH_SCHEMA_VERSION = 6;

/** The version of a run that records answers: older code would take the key of a recorded answer for the reason of a failure. */
export const REPLAY_SCHEMA_VERSION = 7;

/** The version of a run with calls in batches of their providers: older code would send them once more. */
export const PROVIDER_SCHEMA_VERSION = 8;

/** The version of a run with single calls in rows of their own: older code would not find them, and would make them once more. */
export const SINGLE_SCHEMA_VERSION = 9;

/** The version of a run with a page of copies: older code would find one call in it. */
export const COPIES_SCHEMA_VERSION = 10;

/** The version of a run with a group that refers to the calls and answers of the groups that it retries: older code would find none. */
export const RETRIED_SCHEMA_VERSION = 11;
