/**
 * Stored single calls, one row each: the group of one, its call, its Idempotency-Key, its first reservation and how it ended. A
 * group of many has these in rows of their own, and shares them among its calls; a single call would pay for each.
 *
 * There is no index over the keys, because an index is a row per call as well: those of this table are in memory, up to
 * SINGLE_KEYS_CHARS_MAX, and further calls are stored like groups of many. So that an object that wakes need not read every call for them,
 * every KEYS_PER_ROW keys are also in one row of the table `keys`.
 */
import { answerChars } from "../../../src/answer.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import type { LeaseApart, StoredSettled } from "../../../src/run/leases/shard.ts";
import { SLOT_IDS_PER_GROUP } from "../../../src/run/queue/slot.ts";
import { KEYS_PER_ROW, SINGLE_CHARS_MAX, SINGLE_KEYS_CHARS_MAX } from "../../../src/limits.ts";
import type { IdempotencyKey } from "../../../src/objects/methods/types.ts";
import type { GroupResult, KeyRecord, StoredGroup, StoredPage } from "./records.ts";
import type { Rows } from "./sql.ts";

/** Characters that a key counts for beside its own: its entry in the map of keys. */
const KEY_ENTRY_CHARS = 100;

type NumberedKey = [seq: number, key: string];
type KeysRow = { last: number; keys: string };

/** What the row of a single call is opened with. */
export type SingleCall = { stored: StoredGroup; page: StoredPage; key: IdempotencyKey | null };

/**
 * How a call is by now; null = nothing new. `slot` of a call that has too long an answer is in a row of its own. `hasLease`: the
 * attempt that it was opened with may be in flight.
 */
export type SingleProgress = {
  slot: SlotRecord | null;
  result: GroupResult | null;
  hasLease: boolean;
  /** The text of the shard that its end carries; null = none. */
  shard: string | null;
};

/** What the turn that opens a call makes of it; null = nothing yet. */
export type OpenedSingle = { lease: LeaseApart | null; slot: SlotRecord | null; result: GroupResult | null };

export class SingleRows {
  readonly #rows: Rows;
  /** The numbers of the groups by their keys; null = not read yet. */
  #seqs: Map<string, number> | null = null;
  #keyChars = 0;
  /** Keys that are in no row of keys yet, with the numbers of their groups, in that order. */
  #loose: NumberedKey[] = [];

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Whether a call that has this key, if it has one, may be stored here. */
  hasRoomFor({ page, key }: Pick<SingleCall, "page" | "key">): boolean {
    if (page.facts.length + page.calls.length > SINGLE_CHARS_MAX) return false;
    if (key === null) return true;
    this.#readKeys();
    return this.#keyChars + key.key.length + KEY_ENTRY_CHARS <= SINGLE_KEYS_CHARS_MAX;
  }

  /**
   * Stores a call with what the same turn has made of it: its first attempt, or how it has ended. Returns whether the slot is in the
   * row, or must have a row of its own.
   */
  put({ stored, page, key }: SingleCall, { lease, slot, result }: OpenedSingle): boolean {
    const { seq } = stored.header;
    const columns = "seq, key, hash, header, result, lease, facts, slot, calls";
    const named = [key?.key ?? null, key?.hash ?? null];
    const slotJson = slot === null ? null : slotJsonOf(slot);
    const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
    const states = [JSON.stringify(stored), json(result), json(lease), page.facts, slotJson, page.calls];
    this.#rows.write(
      "single",
      `INSERT INTO single (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      seq,
      ...named,
      ...states,
    );
    if (key !== null) this.#addKey([seq, key.key]);
    if (this.#loose.length >= KEYS_PER_ROW) this.#putKeys(this.#loose.splice(0, KEYS_PER_ROW));
    return slot === null || slotJson !== null;
  }

  /**
   * The leases that calls were opened with and that may be in flight: if the row of their shard is not newer. Of the calls that may change;
   * without `settled`, of all.
   */
  *leases(settled: StoredSettled | null = null): Generator<LeaseApart> {
    const parts = settled === null ? ["TRUE"] : unsettled(settled);
    const selects = parts.map((part) => `SELECT seq, lease FROM single WHERE lease IS NOT NULL AND ${part}`);
    const query = `${selects.join(" UNION ALL ")} ORDER BY seq`;
    for (const { lease } of this.#rows.read<{ lease: string }>("single", query)) yield JSON.parse(lease) as LeaseApart;
  }

  /** Whether a group is stored here. */
  has(seq: number): boolean {
    return this.#rows.first("single", "SELECT seq FROM single WHERE seq = ?", seq) !== undefined;
  }

  /** Stores how a call is by now: one row. Returns whether the slot is in it, or must have a row of its own. */
  putProgress(seq: number, { slot, result, hasLease, shard }: SingleProgress): boolean {
    const resultJson = result === null ? null : JSON.stringify(result);
    if (slot === null) {
      const query = "UPDATE single SET result = ?, shard = coalesce(?, shard) WHERE seq = ?";
      this.#rows.write("single", query, resultJson, shard, seq);
      return true;
    }
    const slotJson = slotJsonOf(slot);
    const lease = hasLease ? "lease" : "NULL";
    const query = `UPDATE single SET result = coalesce(?, result), slot = ?, lease = ${lease}, shard = coalesce(?, shard)
      WHERE seq = ?`;
    this.#rows.write("single", query, resultJson, slotJson, shard, seq);
    return slotJson !== null;
  }

  /** The texts of the shards that ends of calls carry. Of the calls that may change; without `settled`, of all. */
  *carriedShards(settled: StoredSettled | null): Generator<string> {
    const parts = settled === null ? ["TRUE"] : unsettled(settled);
    const query = parts
      .map((part) => `SELECT shard FROM single WHERE shard IS NOT NULL AND ${part}`)
      .join(" UNION ALL ");
    for (const { shard } of this.#rows.read<{ shard: string }>("single", query)) yield shard;
  }

  /** The slot of a single call; null if it is in a row of its own, or has none. */
  slotOf(seq: number): SlotRecord | null {
    const json = this.#rows.first<{ slot: string | null }>(
      "single",
      "SELECT slot FROM single WHERE seq = ?",
      seq,
    )?.slot;
    return json == null ? null : (JSON.parse(json) as SlotRecord);
  }

  /** The call of a group that is stored here. */
  pageOf(seq: number): StoredPage | null {
    const query = "SELECT facts, calls FROM single WHERE seq = ?";
    const row = this.#rows.first<{ facts: string; calls: string }>("single", query, seq);
    return row === undefined ? null : { firstIndex: 0, ...row };
  }

  /** The facts of that call, without its body. */
  factsOf(seq: number): Omit<StoredPage, "calls"> | null {
    const row = this.#rows.first<{ facts: string }>("single", "SELECT facts FROM single WHERE seq = ?", seq);
    return row === undefined ? null : { firstIndex: 0, facts: row.facts };
  }

  /** What a key has opened here; null = nothing. */
  keyRecord(key: string): KeyRecord | null {
    const seq = this.#readKeys().get(key);
    if (seq === undefined) return null;
    const hash = this.#rows.first<{ hash: string }>("single", "SELECT hash FROM single WHERE seq = ?", seq)?.hash;
    return hash === undefined ? null : { seq, hash };
  }

  #readKeys(): Map<string, number> {
    if (this.#seqs !== null) return this.#seqs;
    this.#seqs = new Map();
    let covered = 0;
    for (const row of this.#rows.read<KeysRow>("keys", "SELECT last, keys FROM keys ORDER BY last")) {
      for (const key of JSON.parse(row.keys) as NumberedKey[]) this.#addKey(key);
      covered = row.last;
    }
    // What rows of keys have is in them.
    this.#loose = [];
    const query = "SELECT seq, key FROM single WHERE seq > ? AND key IS NOT NULL ORDER BY seq";
    for (const { seq, key } of this.#rows.read<{ seq: number; key: string }>("single", query, covered))
      this.#addKey([seq, key]);
    return this.#seqs;
  }

  #addKey(added: NumberedKey): void {
    // Keys that nobody has looked for are read with the others.
    if (this.#seqs === null) return;
    const [seq, key] = added;
    this.#seqs.set(key, seq);
    this.#keyChars += key.length + KEY_ENTRY_CHARS;
    this.#loose.push(added);
  }

  /** Stores keys as one row, with the number up to which it and those before it have every key. */
  #putKeys(keys: readonly NumberedKey[]): void {
    const last = keys.at(-1)?.[0] ?? 0;
    this.#rows.write("keys", "INSERT INTO keys (last, keys) VALUES (?, ?)", last, JSON.stringify(keys));
  }
}

/** The groups that may change, as conditions that each find them by their numbers. */
export function unsettled({ before, open }: StoredSettled): string[] {
  return [`seq >= ${before}`, ...(open.length === 0 ? [] : [`seq IN (${open.join(", ")})`])];
}

/** A slot as its call's row has it; null = its answer is too long for that row. */
function slotJsonOf(slot: SlotRecord): string | null {
  if (answerChars(slot) > SINGLE_CHARS_MAX) return null;
  const { position: _, ...lasting } = slot;
  return JSON.stringify(lasting);
}

/** The answers that single calls have recorded, with the recorded answer that each ended with instead of an attempt. */
export const RECORDED_SINGLES = `SELECT seq * ${SLOT_IDS_PER_GROUP} AS id, slot ->> '$.replay.key' AS key, slot ->> '$.replay.of' AS of
  FROM single WHERE slot ->> '$.state' = 'completed' AND slot -> '$.replay' IS NOT NULL`;
