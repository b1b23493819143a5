/**
 * The rows of a run, in its object's SQLite. What survives a restart is here and nowhere else:
 *
 *   meta   the schema's version, the run's settings, its status
 *   grp    one row per group: its header at opening, its result when it has ended or was stopped
 *   page   a group's calls, up to 32 to a row: facts for dispatch and bodies for executors; written once
 *   slot   one row per slot, from the moment it differs from a fresh one: a retry to make, or how it ended
 *   child  one row per child run: what it holds of this run's budget until it ends, and what it spent
 *   shard  one row per executor: its attempts in flight with their reservations, and the totals of those that ended
 *
 * There are no secondary indexes and no row per claim: what is next and what is orphaned is derived on start. A slot of
 * a page with neither slot row nor lease is queued, or has ended the way its group's row says.
 */
import type { GroupHeader, GroupMetrics, GroupStatus } from "../../src/engine/group.ts";
import type { SlotRecord } from "../../src/engine/record.ts";
import type { StoredShard } from "../../src/engine/shard.ts";
import { PLACES_PER_GROUP, rangeOf, slotIdOf, type SlotState } from "../../src/engine/slot.ts";
import type { Reason } from "../../src/errors.ts";
import type { ChildRecord } from "./children.ts";
import type { RunSettings, RunStatus } from "./settings.ts";

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
];

/** A group as stored. `defaultsJson` holds the call settings that its slots share. */
export type StoredGroup = {
  header: GroupHeader;
  defaultsJson: string;
  /** False until its last page has been written: such a group never starts. */
  sealed: boolean;
};

/** How a group ended, or was told to. */
export type GroupResult = {
  status: GroupStatus;
  metrics: GroupMetrics;
  endedAtMs: number | null;
  drained: { state: "cancelled" | "failed"; reason: Reason } | null;
};

/** A stored page: `calls` holds one JSON text per line, in the order of `facts`. */
export type StoredPage = { firstIndex: number; facts: string; calls: string };

type SlotRow = {
  id: number;
  state: string;
  attempts: number;
  not_before_ms: number | null;
  latency_ms: number;
  queued_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost_nano_usd: number;
  estimated: number;
  model: string | null;
  finish_reason: string | null;
  text: string | null;
  reason: string | null;
};

export class RunStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  /** Rows written by this instance, as Cloudflare bills them; the alarm's count as one each. */
  rowsWritten = 0;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#migrate();
  }

  /** Runs `write` as one transaction: all of it is durable before any reply leaves, or none of it happened. */
  transaction(write: () => void): void {
    this.#storage.transactionSync(write);
  }

  settings(): RunSettings | null {
    const row = this.#sql.exec<{ value: string }>("SELECT value FROM meta WHERE key = 'run'").toArray()[0];
    return row === undefined ? null : (JSON.parse(row.value) as RunSettings);
  }

  putSettings(settings: RunSettings): void {
    this.#write("INSERT OR REPLACE INTO meta (key, value) VALUES ('run', ?)", JSON.stringify(settings));
  }

  /** The status last set; null for a run that was never opened nor ended. */
  status(): RunStatus | null {
    const row = this.#sql.exec<{ value: RunStatus }>("SELECT value FROM meta WHERE key = 'status'").toArray()[0];
    return row?.value ?? null;
  }

  /** Whether the run's holder has been told what it spent. */
  reported(): boolean {
    return this.#sql.exec("SELECT 1 FROM meta WHERE key = 'reported'").toArray().length > 0;
  }

  putReported(): void {
    this.#write("INSERT OR REPLACE INTO meta (key, value) VALUES ('reported', '1')");
  }

  putChild(child: ChildRecord): void {
    this.#write("INSERT OR REPLACE INTO child (seq, body) VALUES (?, ?)", child.seq, JSON.stringify(child));
  }

  /** Every child run there ever was, oldest first. */
  *children(): Generator<ChildRecord> {
    const rows = this.#sql.exec<{ body: string }>("SELECT body FROM child ORDER BY seq");
    for (const row of rows) yield JSON.parse(row.body) as ChildRecord;
  }

  putStatus(status: RunStatus): void {
    this.#write("INSERT OR REPLACE INTO meta (key, value) VALUES ('status', ?)", status);
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
    const row = this.#sql.exec<GroupRow>("SELECT seq, header, result FROM grp WHERE seq = ?", seq).toArray()[0];
    return row === undefined ? null : groupOf(row);
  }

  /** Every group, oldest first. */
  *groups(): Generator<{ stored: StoredGroup; result: GroupResult | null }> {
    for (const row of this.#sql.exec<GroupRow>("SELECT seq, header, result FROM grp ORDER BY seq")) yield groupOf(row);
  }

  putPage(groupSeq: number, page: StoredPage): void {
    const id = slotIdOf(groupSeq, page.firstIndex);
    this.#write("INSERT INTO page (id, facts, calls) VALUES (?, ?, ?)", id, page.facts, page.calls);
  }

  /** The page that holds a slot. */
  pageOf(slotId: number): StoredPage | null {
    const query = "SELECT id, facts, calls FROM page WHERE id <= ? ORDER BY id DESC LIMIT 1";
    const row = this.#sql.exec<{ id: number; facts: string; calls: string }>(query, slotId).toArray()[0];
    return row === undefined ? null : { firstIndex: row.id % PLACES_PER_GROUP, facts: row.facts, calls: row.calls };
  }

  /** The facts of a group's pages, without the bodies. */
  *pageFacts(groupSeq: number): Generator<{ firstIndex: number; facts: string }> {
    const [first, end] = rangeOf(groupSeq);
    const query = "SELECT id, facts FROM page WHERE id >= ? AND id < ? ORDER BY id";
    for (const row of this.#sql.exec<{ id: number; facts: string }>(query, first, end)) {
      yield { firstIndex: row.id % PLACES_PER_GROUP, facts: row.facts };
    }
  }

  /** Writes slots, several to a statement: running one costs more than another row in it. */
  putSlots(slots: readonly SlotRecord[]): void {
    for (let at = 0; at < slots.length; at += SLOTS_PER_INSERT) {
      const some = slots.slice(at, at + SLOTS_PER_INSERT);
      this.#write(INSERT_SLOTS[some.length] ?? "", ...some.flatMap(slotColumns));
    }
  }

  slot(slotId: number): SlotRecord | null {
    const row = this.#sql.exec<SlotRow>("SELECT * FROM slot WHERE id = ?", slotId).toArray()[0];
    return row === undefined ? null : slotOf(row);
  }

  /** The remembered slots of a group from an index on, in order of their place. */
  *slots(groupSeq: number, fromIndex = 0): Generator<SlotRecord> {
    const [first, end] = rangeOf(groupSeq);
    const query = "SELECT * FROM slot WHERE id >= ? AND id < ? ORDER BY id";
    for (const row of this.#sql.exec<SlotRow>(query, first + fromIndex, end)) yield slotOf(row);
  }

  /** The same without the answers' texts: what a rebuild needs. */
  *slotStates(groupSeq: number): Generator<SlotRecord> {
    const [first, end] = rangeOf(groupSeq);
    const query = `SELECT id, state, attempts, not_before_ms, latency_ms, queued_ms, prompt_tokens, completion_tokens,
      cost_nano_usd, estimated, model, finish_reason, NULL AS text, reason FROM slot WHERE id >= ? AND id < ? ORDER BY id`;
    for (const row of this.#sql.exec<SlotRow>(query, first, end)) yield slotOf(row);
  }

  /** Tokens and cost of a group, over all its attempts. */
  groupUsage(groupSeq: number): { promptTokens: number; completionTokens: number; costNanoUsd: number } {
    const [first, end] = rangeOf(groupSeq);
    const query = `SELECT coalesce(sum(prompt_tokens), 0) AS promptTokens,
      coalesce(sum(completion_tokens), 0) AS completionTokens, coalesce(sum(cost_nano_usd), 0) AS costNanoUsd
      FROM slot WHERE id >= ? AND id < ?`;
    return this.#sql
      .exec<{ promptTokens: number; completionTokens: number; costNanoUsd: number }>(query, first, end)
      .one();
  }

  putShard(id: number, shard: StoredShard): void {
    this.#write("INSERT OR REPLACE INTO shard (id, body) VALUES (?, ?)", id, JSON.stringify(shard));
  }

  *shards(): Generator<{ id: number; shard: StoredShard }> {
    for (const row of this.#sql.exec<{ id: number; body: string }>("SELECT id, body FROM shard ORDER BY id")) {
      yield { id: row.id, shard: JSON.parse(row.body) as StoredShard };
    }
  }

  /** Sets the object's one alarm. */
  setAlarm(atMs: number): void {
    this.rowsWritten += 1;
    void this.#storage.setAlarm(atMs);
  }

  #write(query: string, ...bindings: (string | number | null)[]): void {
    this.rowsWritten += this.#sql.exec(query, ...bindings).rowsWritten;
  }

  /** Applies the migrations that this object has not seen. They are append-only: a storage newer than the code is refused. */
  #migrate(): void {
    this.#sql.exec("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const row = this.#sql.exec<{ value: string }>("SELECT value FROM meta WHERE key = 'schema'").toArray()[0];
    const version = Number(row?.value ?? 0);
    if (version > MIGRATIONS.length)
      throw new Error(`storage has schema ${version}, this code knows ${MIGRATIONS.length}`);
    if (version === MIGRATIONS.length) return;
    this.transaction(() => {
      for (const migration of MIGRATIONS.slice(version)) this.#sql.exec(migration);
      this.#write("INSERT OR REPLACE INTO meta (key, value) VALUES ('schema', ?)", String(MIGRATIONS.length));
    });
  }
}

/** A statement takes at most 100 bound values, and a slot has 14. */
const SLOTS_PER_INSERT = 7;
const INSERT_SLOTS = Array.from(
  { length: SLOTS_PER_INSERT + 1 },
  (_, rows) => `INSERT OR REPLACE INTO slot (id, state, attempts, not_before_ms, latency_ms, queued_ms, prompt_tokens,
    completion_tokens, cost_nano_usd, estimated, model, finish_reason, text, reason)
    VALUES ${Array(rows).fill("(?,?,?,?,?,?,?,?,?,?,?,?,?,?)").join(",")}`,
);

function slotColumns(slot: SlotRecord): (string | number | null)[] {
  return [
    slot.id,
    slot.state,
    slot.attempts,
    slot.notBeforeMs,
    slot.latencyMs,
    slot.queuedMs,
    slot.promptTokens,
    slot.completionTokens,
    slot.costNanoUsd,
    slot.estimated ? 1 : 0,
    slot.model,
    slot.finishReason,
    slot.text,
    slot.reason === null ? null : JSON.stringify(slot.reason),
  ];
}

type GroupRow = { seq: number; header: string; result: string | null };

function groupOf(row: GroupRow): { stored: StoredGroup; result: GroupResult | null } {
  return {
    stored: JSON.parse(row.header) as StoredGroup,
    result: row.result === null ? null : (JSON.parse(row.result) as GroupResult),
  };
}

function slotOf(row: SlotRow): SlotRecord {
  return {
    id: row.id,
    state: row.state as SlotState,
    attempts: row.attempts,
    notBeforeMs: row.not_before_ms,
    latencyMs: row.latency_ms,
    queuedMs: row.queued_ms,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    costNanoUsd: row.cost_nano_usd,
    estimated: row.estimated === 1,
    model: row.model,
    finishReason: row.finish_reason,
    text: row.text,
    reason: row.reason === null ? null : (JSON.parse(row.reason) as Reason),
  };
}
