/**
 * The rows of a run, in its object's SQLite. What survives a restart is here and nowhere else:
 *
 *   meta   single values: the schema's version, the run's settings, its status, baselines of its counters: see meta.ts
 *   grp, graph, page, retried  groups, their graphs and their calls: see groups.ts
 *   slot, chunk, capped, routed  how slots ended: see slots.ts
 *   single  one row per stored single call, with all of that: see singles.ts
 *   log    what happened, in the order in which it was written: see ../log/rows.ts
 *   tape   what single calls have recorded and replayed: see tape.ts
 *   named  one row per Idempotency-Key of a group of many or a child: which it opened, and the hash of its request
 *   kept   one row per answer that its upstream stores for later requests: which upstream that is
 *   child  one row per child run: its reservation in this run's budget until it ends, and what it spent
 *   space  of a root run, one row per descendant that stores more than the floor: how many bytes more it may
 *   provider  one row per page of slots that a provider's batch answers: their leases, written once
 *   shard  one row per executor: its attempts in flight with their reservations, and the totals of those that ended.
 *          The row of a turn's first shard also has the events that are in no row of the log: the log lags, and loses
 *          nothing
 *
 * There are no secondary indexes and no row per claim: what is next and what is orphaned is derived on start. A slot of
 * a page with neither slot row nor lease is queued, or has ended the way its group's row says.
 */
import type { StoredProviderPage } from "../../../src/run/steps/provider-settle.ts";
import type { LeaseApart, StoredShard } from "../../../src/run/leases/shard.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { readTail } from "../../../src/run/log.ts";
import type { StoredAnswer } from "../../../src/objects/methods/calls.ts";
import { RUN_STORED_BYTES_MAX } from "../../../src/limits.ts";
import { LogRows } from "./log-rows.ts";
import { storedGraphJson } from "./graph-json.ts";
import { GroupRows } from "./groups.ts";
import { Meta } from "./meta.ts";
import { groupSeqOf, indexOf, slotIdOf } from "../../../src/run/queue/slot.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { newestShards } from "./carried-shards.ts";
import type {
  CarriedShard,
  ChildRecord,
  GroupResult,
  KeyRecord,
  ShardLines,
  ShardRecord,
  StoredGroup,
} from "./records.ts";
import { newestOf } from "./settled-groups.ts";
import { RetriedRows, type Before } from "./retried.ts";
import { SingleRows, type SingleCall } from "./singles.ts";
import { SlotRows } from "./slots.ts";
import { RunSpace } from "./space.ts";
import { Rows } from "./sql.ts";
import { migrate, versionOf } from "../../schema-version.ts";
import { MIGRATIONS } from "./tables.ts";
import { TapeRows } from "./tape.ts";

export class RunStore {
  readonly meta: Meta;
  readonly groups: GroupRows;
  readonly slots: SlotRows;
  readonly singles: SingleRows;
  readonly log: LogRows;
  readonly tape: TapeRows;
  readonly space: RunSpace;
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;
  readonly #retried: RetriedRows;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
    this.meta = new Meta(this.#rows);
    this.singles = new SingleRows(this.#rows);
    this.#retried = new RetriedRows(this.#rows);
    this.groups = new GroupRows(this.#rows, this.singles, this.#retried);
    this.slots = new SlotRows(this.#rows, this.singles, this.#retried);
    this.log = new LogRows(this.#rows);
    this.tape = new TapeRows(this.#rows);
    this.space = new RunSpace(this.#rows, this.meta);
    if (this.meta.exists) this.#migrate();
  }

  /** Rows written by this instance, as Cloudflare bills them. */
  get rowsWritten(): number {
    return this.#rows.written;
  }

  /** Rows read by this instance, as Cloudflare bills them. */
  get rowsRead(): number {
    return this.#rows.rowsRead;
  }

  /** Bytes that the object stores now. */
  get storedBytes(): number {
    return this.#rows.storedBytes;
  }

  /** What the run may store before it refuses more; below zero, it stores more than that. */
  get freeBytes(): number {
    return this.space.freeBytes;
  }

  /** Whether no more answers are recorded: the root's bound is reached, or a descendant alone has as much. */
  get isFull(): boolean {
    return this.storedBytes >= RUN_STORED_BYTES_MAX || this.space.isFull;
  }

  /** Marks the storage as a run's with this code's version, unless it is one. */
  create(): void {
    if (!this.meta.exists) this.meta.set("schemaVersion", versionOf(MIGRATIONS));
  }

  /** Stores the graph of a group. */
  putGraph(seq: number, graph: CompiledGraph): void {
    this.groups.putGraph(seq, storedGraphJson(graph, this.groups.defaultsJson(seq)));
  }

  /** Stores a group that retries others: it refers to their rows. */
  putRetry(group: StoredGroup, before: readonly Before[]): void {
    this.#retried.put(group.header.seq, before);
    this.groups.put(group);
  }

  /** Whether the run has stored single calls in rows of their own. */
  get hasSingles(): boolean {
    return this.#rows.has("single");
  }

  /**
   * Stores single calls that a turn has opened, each with what the turn has made of it: one row, also if the call has ended, such as
   * one that is replayed. Takes their results out of `results`, and returns the slots that are in no row yet.
   */
  putSingles(
    calls: ReadonlyMap<number, SingleCall>,
    leases: ReadonlyMap<number, LeaseApart>,
    { slots, results }: { slots: readonly SlotRecord[]; results: Map<number, GroupResult> },
  ): readonly SlotRecord[] {
    if (calls.size === 0) return slots;
    const own = new Map(slots.map((slot) => [slot.id, slot]));
    for (const [seq, call] of calls) {
      const id = slotIdOf(seq, 0);
      const opened = { lease: leases.get(seq) ?? null, slot: own.get(id) ?? null, result: results.get(seq) ?? null };
      results.delete(seq);
      if (this.singles.put(call, opened)) own.delete(id);
    }
    return [...own.values()];
  }

  /**
   * Stores how slots are by now, and the groups of these numbers; of a single call both are one row, which may carry a shard, too.
   * `hasLease`: whether the first attempt of a slot is in flight.
   */
  putProgress(
    slots: readonly SlotRecord[],
    results: Map<number, GroupResult>,
    { hasLease, carried: { by, shard } }: { hasLease: (slotId: number) => boolean; carried: CarriedShard },
  ): void {
    const shardOf = (seq: number): string | null =>
      seq === by && shard !== undefined ? `${shard.id}\n${linesOf(shard)}` : null;
    const others = slots.filter((slot) => {
      const seq = groupSeqOf(slot.id);
      if (indexOf(slot.id) > 0 || !this.singles.has(seq)) return true;
      const result = results.get(seq) ?? null;
      results.delete(seq);
      return !this.singles.putProgress(seq, { slot, result, hasLease: hasLease(slot.id), shard: shardOf(seq) });
    });
    this.slots.put(others);
    for (const [seq, result] of results) {
      if (this.singles.has(seq))
        this.singles.putProgress(seq, { slot: null, result, hasLease: true, shard: shardOf(seq) });
      else this.groups.putResult(seq, result);
    }
  }

  /** Stores a page of slots that go to their provider. */
  putProviderPage(seq: number, { page, leases }: StoredProviderPage): void {
    const query = "INSERT INTO provider (seq, page, leases) VALUES (?, ?, ?)";
    this.#rows.write("provider", query, seq, page, JSON.stringify(leases));
  }

  /** The pages of a group that went to its provider. */
  *providerPages(seq: number): Generator<StoredProviderPage> {
    const query = "SELECT page, leases FROM provider WHERE seq = ? ORDER BY page";
    for (const { page, leases } of this.#rows.read<{ page: number; leases: string }>("provider", query, seq))
      yield { page, leases: JSON.parse(leases) as StoredProviderPage["leases"] };
  }

  /** Deletes the pages of a group that has ended. */
  dropProviderPages(seq: number): void {
    this.#rows.remove("provider", "DELETE FROM provider WHERE seq = ?", seq);
  }

  /** Deletes everything, the alarm too. */
  async destroy(): Promise<void> {
    await this.#storage.deleteAll();
    this.#rows.lookAgain();
  }

  /** Runs `write` as one transaction: all of it is durable before any reply leaves, or none of it happened. */
  transaction(write: () => void): void {
    try {
      this.#storage.transactionSync(write);
    } catch (error) {
      this.#rows.lookAgain();
      throw error;
    }
  }

  /** Sets the object's one alarm. */
  setAlarm(atMs: number): void {
    this.#rows.countAlarm();
    void this.#storage.setAlarm(atMs);
  }

  /** The number of the group, or of the child, that an Idempotency-Key has opened; null if it has opened nothing. */
  keyRecord(key: string): KeyRecord | null {
    const query = "SELECT seq, hash FROM named WHERE key = ?";
    return this.singles.keyRecord(key) ?? this.#rows.first<KeyRecord>("named", query, key) ?? null;
  }

  putKeyRecord(key: string, { seq, hash }: KeyRecord): void {
    this.#rows.write("named", "INSERT INTO named (key, hash, seq) VALUES (?, ?, ?)", key, hash, seq);
  }

  /** The upstream that stores an answer; null if no upstream does. */
  storedAnswerAt(id: string): string | null {
    const query = "SELECT upstream FROM kept WHERE id = ?";
    return this.#rows.first<{ upstream: string }>("kept", query, id)?.upstream ?? null;
  }

  putStoredAnswer({ id, upstream }: StoredAnswer): void {
    this.#rows.write("kept", "INSERT OR REPLACE INTO kept (id, upstream) VALUES (?, ?)", id, upstream);
  }

  putChild(child: ChildRecord): void {
    this.#rows.write(
      "child",
      "INSERT OR REPLACE INTO child (seq, body) VALUES (?, ?)",
      child.seq,
      JSON.stringify(child),
    );
  }

  /** Every child run there ever was, oldest first. */
  *children(): Generator<ChildRecord> {
    const rows = this.#rows.read<{ body: string }>("child", "SELECT body FROM child ORDER BY seq");
    for (const row of rows) yield JSON.parse(row.body) as ChildRecord;
  }

  /** Up to `limit` children of numbers below `before`, the newest first. */
  childrenBefore(before: number, limit: number): ChildRecord[] {
    const query = "SELECT body FROM child WHERE seq < ? ORDER BY seq DESC LIMIT ?";
    const rows = this.#rows.read<{ body: string }>("child", query, before, limit);
    return [...rows].map(({ body }) => JSON.parse(body) as ChildRecord);
  }

  /** The id of the child of that number; null if there is none. */
  childId(seq: number): string | null {
    const row = this.#rows.first<{ body: string }>("child", "SELECT body FROM child WHERE seq = ?", seq);
    return row === undefined ? null : (JSON.parse(row.body) as ChildRecord).id;
  }

  /** Writes the row of a shard. */
  putShard(shard: ShardLines): void {
    this.#rows.write("shard", "INSERT OR REPLACE INTO shard (id, body) VALUES (?, ?)", shard.id, linesOf(shard));
  }

  /** The shards as they were written last, and those that calls carry which ended since their rows were written. */
  shards(): ReturnType<typeof newestShards> {
    const query = "SELECT id, body FROM shard ORDER BY id";
    const read = [...this.#rows.read<{ id: number; body: string }>("shard", query)];
    const rows = read.map(({ id, body }) => shardRecord(id, body.split("\n")));
    const settled = newestOf(rows.map(({ shard }) => shard.settled));
    const copies = [...this.singles.carriedShards(settled)].map((text) => {
      const [id, ...lines] = text.split("\n");
      return shardRecord(Number(id), lines);
    });
    return newestShards(rows, copies);
  }

  /** Brings the rows to their present form. Throws if newer code has written them. */
  #migrate(): void {
    migrate(this.#storage, MIGRATIONS, this.meta.get("schemaVersion"), (version) =>
      this.meta.set("schemaVersion", version),
    );
  }
}

/** The lines that a shard is stored as: the first is the shard. */
function linesOf({ text, tail }: ShardLines): string {
  return tail === null ? text : `${text}\n${tail}`;
}

/** A shard from the lines that it is stored as. */
function shardRecord(id: number, [shard = "", ...tail]: string[]): ShardRecord {
  return { id, shard: JSON.parse(shard) as StoredShard, tail: readTail(tail) };
}
