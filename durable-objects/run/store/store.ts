/**
 * The rows of a run, in its object's SQLite. What survives a restart is here and nowhere else:
 *
 *   meta   single values: the schema's version, the run's settings, its status, baselines of its counters: see meta.ts
 *   grp, page            groups and their calls: see groups.ts
 *   slot, chunk, capped  how slots ended: see slots.ts
 *   log    what happened, in the order in which it was written: see ../log/rows.ts
 *   named  one row per Idempotency-Key: the group or child that it opened, and the hash of its request
 *   kept   one row per answer that its upstream stores for later requests: which upstream that is
 *   child  one row per child run: its reservation in this run's budget until it ends, and what it spent
 *   shard  one row per executor: its attempts in flight with their reservations, and the totals of those that ended
 *
 * There are no secondary indexes and no row per claim: what is next and what is orphaned is derived on start. A slot of
 * a page with neither slot row nor lease is queued, or has ended the way its group's row says.
 */
import type { StoredShard } from "../../../src/engine/shard.ts";
import type { StoredAnswer } from "../../../src/run-api/calls.ts";
import { LogRows } from "../log/rows.ts";
import { GroupRows } from "./groups.ts";
import { Meta } from "./meta.ts";
import type { ChildRecord, KeyRecord } from "./records.ts";
import { SlotRows } from "./slots.ts";
import { Rows } from "./sql.ts";

const MIGRATIONS: readonly string[] = [
  `CREATE TABLE grp (seq INTEGER PRIMARY KEY, header TEXT NOT NULL, result TEXT) STRICT;
   CREATE TABLE page (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, calls TEXT NOT NULL) STRICT;
   CREATE TABLE slot (
     id INTEGER PRIMARY KEY, state TEXT NOT NULL, attempts INTEGER NOT NULL, not_before_ms INTEGER,
     latency_ms INTEGER NOT NULL, queued_ms INTEGER NOT NULL,
     prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost_nano_usd INTEGER NOT NULL,
     estimated INTEGER NOT NULL, model TEXT, finish_reason TEXT, text TEXT, reason TEXT) STRICT;
   CREATE TABLE shard (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
   CREATE TABLE child (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;`,
  `CREATE TABLE log (last INTEGER PRIMARY KEY, lines TEXT NOT NULL) STRICT;
   CREATE TABLE chunk (id INTEGER, part INTEGER, text TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID;
   CREATE TABLE named (key TEXT PRIMARY KEY, hash TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
   CREATE TABLE kept (id TEXT PRIMARY KEY, upstream TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE capped (id INTEGER PRIMARY KEY, cause TEXT NOT NULL) STRICT;`,
];

export class RunStore {
  readonly meta: Meta;
  readonly groups: GroupRows;
  readonly slots: SlotRows;
  readonly log: LogRows;
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
    this.meta = new Meta(this.#rows);
    this.groups = new GroupRows(this.#rows);
    this.slots = new SlotRows(this.#rows);
    this.log = new LogRows(this.#rows);
    if (this.meta.exists) this.#migrate();
  }

  /** Rows written by this instance, as Cloudflare bills them. */
  get rowsWritten(): number {
    return this.#rows.written;
  }

  /** Bytes that the object stores now. */
  get storedBytes(): number {
    return this.#rows.sql.databaseSize;
  }

  /** Makes the tables, unless they exist. */
  create(): void {
    if (this.meta.exists) return;
    this.meta.create();
    this.#migrate();
  }

  /** Deletes everything, the alarm too. */
  async destroy(): Promise<void> {
    this.meta.deleted();
    await this.#storage.deleteAll();
  }

  /** Runs `write` as one transaction: all of it is durable before any reply leaves, or none of it happened. */
  transaction(write: () => void): void {
    this.#storage.transactionSync(write);
  }

  /** Sets the object's one alarm. */
  setAlarm(atMs: number): void {
    this.#rows.countAlarm();
    void this.#storage.setAlarm(atMs);
  }

  /** The number of the group, or of the child, that an Idempotency-Key has opened; null if it has opened nothing. */
  keyRecord(key: string): KeyRecord | null {
    const query = "SELECT seq, hash FROM named WHERE key = ?";
    return this.#rows.sql.exec<KeyRecord>(query, key).toArray()[0] ?? null;
  }

  putKeyRecord(key: string, { seq, hash }: KeyRecord): void {
    this.#rows.write("INSERT INTO named (key, hash, seq) VALUES (?, ?, ?)", key, hash, seq);
  }

  /** The upstream that stores an answer; null if no upstream does. */
  storedAnswerAt(id: string): string | null {
    const query = "SELECT upstream FROM kept WHERE id = ?";
    return this.#rows.sql.exec<{ upstream: string }>(query, id).toArray()[0]?.upstream ?? null;
  }

  putStoredAnswer({ id, upstream }: StoredAnswer): void {
    this.#rows.write("INSERT OR REPLACE INTO kept (id, upstream) VALUES (?, ?)", id, upstream);
  }

  putChild(child: ChildRecord): void {
    this.#rows.write("INSERT OR REPLACE INTO child (seq, body) VALUES (?, ?)", child.seq, JSON.stringify(child));
  }

  /** Every child run there ever was, oldest first. */
  *children(): Generator<ChildRecord> {
    const rows = this.#rows.sql.exec<{ body: string }>("SELECT body FROM child ORDER BY seq");
    for (const row of rows) yield JSON.parse(row.body) as ChildRecord;
  }

  /** The id of the child of that number; null if there is none. */
  childId(seq: number): string | null {
    const row = this.#rows.sql.exec<{ body: string }>("SELECT body FROM child WHERE seq = ?", seq).toArray()[0];
    return row === undefined ? null : (JSON.parse(row.body) as ChildRecord).id;
  }

  putShard(id: number, shard: StoredShard): void {
    this.#rows.write("INSERT OR REPLACE INTO shard (id, body) VALUES (?, ?)", id, JSON.stringify(shard));
  }

  *shards(): Generator<{ id: number; shard: StoredShard }> {
    for (const row of this.#rows.sql.exec<{ id: number; body: string }>("SELECT id, body FROM shard ORDER BY id")) {
      yield { id: row.id, shard: JSON.parse(row.body) as StoredShard };
    }
  }

  /** Applies the migrations that this object has not seen. They are append-only: a storage newer than the code is refused. */
  #migrate(): void {
    const version = this.meta.get("schemaVersion");
    if (version > MIGRATIONS.length)
      throw new Error(`storage has schema ${version}, this code knows ${MIGRATIONS.length}`);
    if (version === MIGRATIONS.length) return;
    this.transaction(() => {
      for (const migration of MIGRATIONS.slice(version)) this.#rows.sql.exec(migration);
      this.meta.set("schemaVersion", MIGRATIONS.length);
    });
  }
}
