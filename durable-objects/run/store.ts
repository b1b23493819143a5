/**
 * The rows of a run, in its object's SQLite. What survives a restart is here and nowhere else:
 *
 *   meta   the schema's version, the run's settings, its status and when it ended, counters to be shown from zero
 *   grp    one row per group: its header at opening, its result when it has ended or was stopped
 *   page   a group's calls, up to 32 to a row: facts for dispatch and bodies for executors; written once
 *   slot, chunk  how slots ended: see slot-rows.ts
 *   log    what happened, as it was written: see log-rows.ts
 *   named  one row per Idempotency-Key: the group or child that it opened, and what its request said
 *   kept   one row per answer that its upstream keeps for later requests: which upstream that is
 *   child  one row per child run: what it holds of this run's budget until it ends, and what it spent
 *   shard  one row per executor: its attempts in flight with their reservations, and the totals of those that ended
 *
 * There are no secondary indexes and no row per claim: what is next and what is orphaned is derived on start. A slot of
 * a page with neither slot row nor lease is queued, or has ended the way its group's row says.
 */
import type { StoredShard } from "../../src/engine/shard.ts";
import { PLACES_PER_GROUP, rangeOf, slotIdOf } from "../../src/engine/slot.ts";
import type { ChildRecord } from "./children.ts";
import { LogRows } from "./log-rows.ts";
import { Rows } from "./rows.ts";
import type { RunSettings, RunStatus } from "./settings.ts";
import { SlotRows } from "./slot-rows.ts";
import type { GroupResult, StoredGroup, StoredPage } from "./stored.ts";

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
];

export class RunStore {
  readonly slots: SlotRows;
  readonly log: LogRows;
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;
  /** Whether there are tables: an object that was never opened stores nothing. */
  #created: boolean;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
    this.slots = new SlotRows(this.#rows);
    this.log = new LogRows(this.#rows);
    this.#created = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'meta'").toArray().length > 0;
    if (this.#created) this.#migrate();
  }

  /** Rows written by this instance, as Cloudflare bills them. */
  get rowsWritten(): number {
    return this.#rows.written;
  }

  /** Makes the tables, if there are none. */
  create(): void {
    if (!this.#created) this.#migrate();
    this.#created = true;
  }

  /** Deletes everything, the alarm too. */
  async destroy(): Promise<void> {
    this.#created = false;
    await this.#storage.deleteAll();
  }

  /** Runs `write` as one transaction: all of it is durable before any reply leaves, or none of it happened. */
  transaction(write: () => void): void {
    this.#storage.transactionSync(write);
  }

  settings(): RunSettings | null {
    const value = this.#meta("run");
    // Runs that were opened before there were tools have none.
    return value === null ? null : { tools: [], ...(JSON.parse(value) as Omit<RunSettings, "tools">) };
  }

  putSettings(settings: RunSettings): void {
    this.#putMeta("run", JSON.stringify(settings));
  }

  /** The status last set; null for a run that was never opened nor ended. */
  status(): RunStatus | null {
    return this.#meta("status") as RunStatus | null;
  }

  putStatus(status: RunStatus): void {
    this.#putMeta("status", status);
  }

  /** When the run ended, epoch ms; null while it has not. */
  endedAtMs(): number | null {
    const value = this.#meta("ended");
    return value === null ? null : Number(value);
  }

  putEnded(atMs: number): void {
    this.#putMeta("ended", String(atMs));
  }

  /** How many instances of the object have found groups open. */
  epoch(): number {
    return Number(this.#meta("epoch") ?? 0);
  }

  /** Counts one more. */
  nextEpoch(): number {
    const epoch = this.epoch() + 1;
    this.#putMeta("epoch", String(epoch));
    return epoch;
  }

  /** Whether the run's holder has been told what it spent. */
  reported(): boolean {
    return this.#meta("reported") !== null;
  }

  putReported(): void {
    this.#putMeta("reported", "1");
  }

  /** Whether a patch may have left more set aside for the run than its limits come to. */
  holdInDoubt(): boolean {
    return this.#meta("hold_in_doubt") === "1";
  }

  putHoldInDoubt(inDoubt: boolean): void {
    this.#putMeta("hold_in_doubt", inDoubt ? "1" : "0");
  }

  /** Bytes that the client has added to the log. */
  clientLogBytes(): number {
    return Number(this.#meta("client_log") ?? 0);
  }

  putClientLogBytes(bytes: number): void {
    this.#putMeta("client_log", String(bytes));
  }

  /** What counters stood at when they were last shown as zero, as JSON; null = never. */
  base(name: "stats" | "usage"): string | null {
    return this.#meta(`base_${name}`);
  }

  putBase(name: "stats" | "usage", json: string): void {
    this.#putMeta(`base_${name}`, json);
  }

  /** The number of the group, or of the child, that an Idempotency-Key has opened. */
  named(key: string): { seq: number; hash: string } | null {
    const query = "SELECT seq, hash FROM named WHERE key = ?";
    return this.#rows.sql.exec<{ seq: number; hash: string }>(query, key).toArray()[0] ?? null;
  }

  putNamed(key: string, { seq, hash }: { seq: number; hash: string }): void {
    this.#write("INSERT INTO named (key, hash, seq) VALUES (?, ?, ?)", key, hash, seq);
  }

  /** The upstream that keeps an answer. */
  keptAt(id: string): string | null {
    const query = "SELECT upstream FROM kept WHERE id = ?";
    return this.#rows.sql.exec<{ upstream: string }>(query, id).toArray()[0]?.upstream ?? null;
  }

  putKept({ id, upstream }: { id: string; upstream: string }): void {
    this.#write("INSERT OR REPLACE INTO kept (id, upstream) VALUES (?, ?)", id, upstream);
  }

  putChild(child: ChildRecord): void {
    this.#write("INSERT OR REPLACE INTO child (seq, body) VALUES (?, ?)", child.seq, JSON.stringify(child));
  }

  /** Every child run there ever was, oldest first. */
  *children(): Generator<ChildRecord> {
    const rows = this.#rows.sql.exec<{ body: string }>("SELECT body FROM child ORDER BY seq");
    for (const row of rows) yield JSON.parse(row.body) as ChildRecord;
  }

  /** The child of that number. */
  childId(seq: number): string | null {
    const row = this.#rows.sql.exec<{ body: string }>("SELECT body FROM child WHERE seq = ?", seq).toArray()[0];
    return row === undefined ? null : (JSON.parse(row.body) as ChildRecord).id;
  }

  putGroup(group: StoredGroup): void {
    this.#write("INSERT OR REPLACE INTO grp (seq, header) VALUES (?, ?)", group.header.seq, JSON.stringify(group));
  }

  /** Forgets a group that is not opened after all, with its pages. */
  dropGroup(seq: number): void {
    this.#write("DELETE FROM page WHERE id >= ? AND id < ?", ...rangeOf(seq));
    this.#write("DELETE FROM grp WHERE seq = ?", seq);
  }

  putGroupResult(seq: number, result: GroupResult): void {
    this.#write("UPDATE grp SET result = ? WHERE seq = ?", JSON.stringify(result), seq);
  }

  group(seq: number): { stored: StoredGroup; result: GroupResult | null } | null {
    const row = this.#rows.sql.exec<GroupRow>("SELECT seq, header, result FROM grp WHERE seq = ?", seq).toArray()[0];
    return row === undefined ? null : groupOf(row);
  }

  /** Every group, oldest first. */
  *groups(): Generator<{ stored: StoredGroup; result: GroupResult | null }> {
    for (const row of this.#rows.sql.exec<GroupRow>("SELECT seq, header, result FROM grp ORDER BY seq"))
      yield groupOf(row);
  }

  putPage(groupSeq: number, page: StoredPage): void {
    const id = slotIdOf(groupSeq, page.firstIndex);
    this.#write("INSERT OR REPLACE INTO page (id, facts, calls) VALUES (?, ?, ?)", id, page.facts, page.calls);
  }

  /** The page that holds a slot. */
  pageOf(slotId: number): StoredPage | null {
    const query = "SELECT id, facts, calls FROM page WHERE id <= ? ORDER BY id DESC LIMIT 1";
    const row = this.#rows.sql.exec<{ id: number; facts: string; calls: string }>(query, slotId).toArray()[0];
    return row === undefined ? null : { firstIndex: row.id % PLACES_PER_GROUP, facts: row.facts, calls: row.calls };
  }

  /** The facts of the page that holds a slot. */
  factsOf(slotId: number): { firstIndex: number; facts: string } | null {
    const query = "SELECT id, facts FROM page WHERE id <= ? ORDER BY id DESC LIMIT 1";
    const row = this.#rows.sql.exec<{ id: number; facts: string }>(query, slotId).toArray()[0];
    return row === undefined ? null : { firstIndex: row.id % PLACES_PER_GROUP, facts: row.facts };
  }

  /** The facts of a group's pages, without the bodies. */
  *pageFacts(groupSeq: number): Generator<{ firstIndex: number; facts: string }> {
    const [first, end] = rangeOf(groupSeq);
    const query = "SELECT id, facts FROM page WHERE id >= ? AND id < ? ORDER BY id";
    for (const row of this.#rows.sql.exec<{ id: number; facts: string }>(query, first, end)) {
      yield { firstIndex: row.id % PLACES_PER_GROUP, facts: row.facts };
    }
  }

  putShard(id: number, shard: StoredShard): void {
    this.#write("INSERT OR REPLACE INTO shard (id, body) VALUES (?, ?)", id, JSON.stringify(shard));
  }

  *shards(): Generator<{ id: number; shard: StoredShard }> {
    for (const row of this.#rows.sql.exec<{ id: number; body: string }>("SELECT id, body FROM shard ORDER BY id")) {
      yield { id: row.id, shard: JSON.parse(row.body) as StoredShard };
    }
  }

  /** Sets the object's one alarm. */
  setAlarm(atMs: number): void {
    this.#rows.written += 1;
    void this.#storage.setAlarm(atMs);
  }

  #write(query: string, ...bindings: (string | number | null)[]): void {
    this.#rows.write(query, ...bindings);
  }

  #meta(key: string): string | null {
    if (!this.#created) return null;
    const query = "SELECT value FROM meta WHERE key = ?";
    return this.#rows.sql.exec<{ value: string }>(query, key).toArray()[0]?.value ?? null;
  }

  #putMeta(key: string, value: string): void {
    this.#write("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", key, value);
  }

  /** Applies the migrations that this object has not seen. They are append-only: a storage newer than the code is refused. */
  #migrate(): void {
    const { sql } = this.#rows;
    sql.exec("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const row = sql.exec<{ value: string }>("SELECT value FROM meta WHERE key = 'schema'").toArray()[0];
    const version = Number(row?.value ?? 0);
    if (version > MIGRATIONS.length)
      throw new Error(`storage has schema ${version}, this code knows ${MIGRATIONS.length}`);
    if (version === MIGRATIONS.length) return;
    this.transaction(() => {
      for (const migration of MIGRATIONS.slice(version)) sql.exec(migration);
      this.#putMeta("schema", String(MIGRATIONS.length));
    });
  }
}

type GroupRow = { seq: number; header: string; result: string | null };

function groupOf(row: GroupRow): { stored: StoredGroup; result: GroupResult | null } {
  return {
    stored: JSON.parse(row.header) as StoredGroup,
    result: row.result === null ? null : (JSON.parse(row.result) as GroupResult),
  };
}
