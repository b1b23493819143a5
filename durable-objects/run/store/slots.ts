/**
 * Slots as rows. A long answer continues in rows of its own:
 *
 *   slot   one row per slot, from its first retry or its end on
 *   chunk  what did not fit into the slot's row of a long answer, piece by piece
 *   parts  what an answer has beside its text, as JSON, piece by piece: one row at least per slot that has something
 *   capped one row per slot whose answer the budget cut: few have one
 *   routed one row per slot that a target of a route answered
 *   checked one row per slot whose answer was checked against a schema, with what was found, as JSON
 *   course one row per slot whose call went to several models, or was made several times, as JSON
 *
 * The slot of a single call that has a row of its own is in that row: see singles.ts.
 */
import type { AnswerParts } from "../../../src/call.ts";
import type { Course, SlotChecks, SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf, indexOf, rangeOf, slotIdOf, type SlotState } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import { TEXT_CHUNK_CHARS } from "../../../src/limits.ts";
import { inOrder, keptIn, type RetriedRows } from "./retried.ts";
import { RECORDED_SINGLES, type SingleRows } from "./singles.ts";
import type { Rows } from "./sql.ts";

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
  capped_by: string | null;
  upstream: string | null;
  checks: string | null;
  course: string | null;
  parts: string | null;
};

/** What cut a slot's answer, as a column of the slot's row. */
const CAPPED_BY = "(SELECT cause FROM capped WHERE capped.id = slot.id) AS capped_by";
/** The same while no answer of the run was cut: then there is no such table. */
const NOT_CAPPED = "NULL AS capped_by";
/** The upstream that answered a slot, and the same while no call of the run asked for a route. */
const UPSTREAM = "(SELECT upstream FROM routed WHERE routed.id = slot.id) AS upstream";
const NOT_ROUTED = "NULL AS upstream";
/** What the checks of a slot's answers found, and the same while no call of the run had a schema. */
const CHECKS = "(SELECT body FROM checked WHERE checked.id = slot.id) AS checks";
const NOT_CHECKED = "NULL AS checks";
/** How far a call is that may be more than one answer, and the same while the run has none. */
const COURSE = "(SELECT body FROM course WHERE course.id = slot.id) AS course";
const NO_COURSE = "NULL AS course";
/** The beginning of what a slot's answer has beside its text, and the same while no answer of the run has anything. */
const PARTS = "(SELECT json FROM parts WHERE parts.id = slot.id AND part = 0) AS parts";
const NO_PARTS = "NULL AS parts";

export class SlotRows {
  readonly #rows: Rows;
  readonly #singles: SingleRows;
  readonly #retried: RetriedRows;

  constructor(rows: Rows, singles: SingleRows, retried: RetriedRows) {
    this.#rows = rows;
    this.#singles = singles;
    this.#retried = retried;
  }

  /** Writes slots, several to a statement: running one costs more than another row in it. */
  put(slots: readonly SlotRecord[]): void {
    for (let at = 0; at < slots.length; at += SLOTS_PER_INSERT) {
      const some = slots.slice(at, at + SLOTS_PER_INSERT);
      this.#rows.write("slot", INSERT_SLOTS[some.length] ?? "", ...some.flatMap(slotColumns));
      for (const { id, text, parts, cappedBy, upstream, checks, course } of some) {
        this.#putRest(id, text);
        this.#putParts(id, parts);
        if (cappedBy !== undefined)
          this.#rows.write("capped", "INSERT OR REPLACE INTO capped (id, cause) VALUES (?, ?)", id, cappedBy);
        if (upstream !== undefined)
          this.#rows.write("routed", "INSERT OR REPLACE INTO routed (id, upstream) VALUES (?, ?)", id, upstream);
        if (checks !== undefined) {
          const body = JSON.stringify(checks);
          this.#rows.write("checked", "INSERT OR REPLACE INTO checked (id, body) VALUES (?, ?)", id, body);
        }
        if (course !== undefined) {
          const body = JSON.stringify(course);
          this.#rows.write("course", "INSERT OR REPLACE INTO course (id, body) VALUES (?, ?)", id, body);
        }
      }
    }
  }

  one(slotId: number): SlotRecord | null {
    const single = indexOf(slotId) === 0 ? this.#singles.slotOf(groupSeqOf(slotId)) : null;
    if (single !== null) return single;
    const query = `SELECT *, ${this.#extra} FROM slot WHERE id = ?`;
    const row = this.#rows.first<SlotRow>("slot", query, slotId);
    if (row !== undefined) return this.#whole(row);
    for (const { seq } of this.#retried.before(groupSeqOf(slotId)).toReversed()) {
      const kept = this.#rows.first<SlotRow>("slot", `${query} AND ${KEPT}`, slotIdOf(seq, indexOf(slotId)));
      if (kept !== undefined) return keptIn(this.#whole(kept), slotId);
    }
    return null;
  }

  /** The slots of a group that have a row, from an index on, in order. */
  *from(groupSeq: number, fromIndex = 0): Generator<SlotRecord> {
    const single = fromIndex === 0 ? this.#singles.slotOf(groupSeq) : null;
    if (single !== null) return yield single;
    yield* this.#ofGroup(groupSeq, fromIndex, `SELECT *, ${this.#extra} FROM slot`);
  }

  /** The same without texts, except those of slots that are to be retried: what a rebuild needs. */
  *states(groupSeq: number): Generator<SlotRecord> {
    const single = this.#singles.slotOf(groupSeq);
    if (single !== null) return yield single;
    const select = `SELECT id, state, attempts, not_before_ms, latency_ms, queued_ms, prompt_tokens, completion_tokens,
      cost_nano_usd, estimated, model, finish_reason,
      CASE WHEN state = 'queued' THEN text END AS text, reason, ${this.#extra} FROM slot`;
    yield* this.#ofGroup(groupSeq, 0, select);
  }

  /** The slots of a group from an index on, in order; of a retry also those that completed by themselves in the groups before it. */
  *#ofGroup(groupSeq: number, fromIndex: number, select: string): Generator<SlotRecord> {
    const own = this.#between(`${select} WHERE id >= ? AND id < ? ORDER BY id`, groupSeq, fromIndex);
    const before = this.#retried.before(groupSeq);
    if (before.length === 0) return yield* own;
    const kept = `${select} WHERE id >= ? AND id < ? AND ${KEPT} ORDER BY id`;
    const others = before.map(({ seq }) => this.#between(kept, seq, fromIndex));
    for (const record of inOrder([own, ...others])) {
      yield groupSeqOf(record.id) === groupSeq ? record : keptIn(record, slotIdOf(groupSeq, indexOf(record.id)));
    }
  }

  /** The indexes of a group's slots that completed by themselves, from one index up to before another: a retry keeps their answers. */
  kept(groupSeq: number, fromIndex: number, toIndex: number): number[] {
    const query = `SELECT id FROM slot WHERE id >= ? AND id < ? AND ${KEPT} ORDER BY id`;
    const range = [slotIdOf(groupSeq, fromIndex), slotIdOf(groupSeq, toIndex)] as const;
    return [...this.#rows.read<{ id: number }>("slot", query, ...range)].map(({ id }) => indexOf(id));
  }

  *#between(query: string, groupSeq: number, fromIndex: number): Generator<SlotRecord> {
    const [first, end] = rangeOf(groupSeq);
    for (const row of this.#rows.read<SlotRow>("slot", query, first + fromIndex, end)) yield this.#whole(row);
  }

  /** The slots whose answers are recorded, in the order of their ids. */
  *recorded(): Generator<{ id: number; key: string; of: string | null }> {
    const slots = `SELECT id, reason FROM slot WHERE state = 'completed' AND reason LIKE '${REPLAY_MARK}%'`;
    const found = [...(this.#rows.has("slot") ? [slots] : []), ...(this.#rows.has("single") ? [RECORDED_SINGLES] : [])];
    if (found.length === 0) return;
    const query = `${found.join(" UNION ALL ")} ORDER BY id`;
    const table = this.#rows.has("slot") ? "slot" : "single";
    for (const { id, reason } of this.#rows.read<{ id: number; reason: string }>(table, query)) {
      const { replay } = reasonOf(reason);
      if (replay !== undefined) yield { id, key: replay.key, of: replay.of ?? null };
    }
  }

  /** Tokens and cost of a group, over all its attempts. */
  usageOf(groupSeq: number): { promptTokens: number; completionTokens: number; costNanoUsd: number } {
    const [first, end] = rangeOf(groupSeq);
    const query = `SELECT coalesce(sum(prompt_tokens), 0) AS promptTokens,
      coalesce(sum(completion_tokens), 0) AS completionTokens, coalesce(sum(cost_nano_usd), 0) AS costNanoUsd
      FROM slot WHERE id >= ? AND id < ?`;
    type Sums = { promptTokens: number; completionTokens: number; costNanoUsd: number };
    const none: Sums = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
    return this.#rows.first<Sums>("slot", query, first, end) ?? none;
  }

  /** Columns from the tables that few runs have. */
  get #extra(): string {
    const cappedBy = this.#rows.has("capped") ? CAPPED_BY : NOT_CAPPED;
    const upstream = this.#rows.has("routed") ? UPSTREAM : NOT_ROUTED;
    const checks = this.#rows.has("checked") ? CHECKS : NOT_CHECKED;
    const course = this.#rows.has("course") ? COURSE : NO_COURSE;
    return `${cappedBy}, ${upstream}, ${checks}, ${course}, ${this.#rows.has("parts") ? PARTS : NO_PARTS}`;
  }

  #putParts(id: number, parts: AnswerParts | undefined): void {
    // An answer that a slot had before may have had some.
    this.#rows.remove("parts", "DELETE FROM parts WHERE id = ?", id);
    if (parts === undefined) return;
    const json = JSON.stringify(parts);
    for (let at = 0, part = 0; at < json.length; part++) {
      const end = chunkEnd(json, at);
      this.#rows.write("parts", "INSERT INTO parts (id, part, json) VALUES (?, ?, ?)", id, part, json.slice(at, end));
      at = end;
    }
  }

  #putRest(id: number, text: string | null): void {
    if (text === null || text.length < TEXT_CHUNK_CHARS - 1) return;
    // The answer of an earlier attempt may have been longer.
    this.#rows.remove("chunk", "DELETE FROM chunk WHERE id = ?", id);
    if (text.length <= TEXT_CHUNK_CHARS) return;
    for (let at = chunkEnd(text, 0), part = 1; at < text.length; part++) {
      const end = chunkEnd(text, at);
      this.#rows.write(
        "chunk",
        "INSERT OR REPLACE INTO chunk (id, part, text) VALUES (?, ?, ?)",
        id,
        part,
        text.slice(at, end),
      );
      at = end;
    }
  }

  /** A record with all of its answer. */
  #whole(row: SlotRow): SlotRecord {
    const record = this.#withText(slotOf(row));
    if (row.parts === null) return record;
    const query = "SELECT json FROM parts WHERE id = ? AND part > 0 ORDER BY part";
    const isWhole = row.parts.length < TEXT_CHUNK_CHARS - 1;
    const rest = isWhole ? [] : [...this.#rows.read<{ json: string }>("parts", query, record.id)];
    return { ...record, parts: JSON.parse([row.parts, ...rest.map(({ json }) => json)].join("")) as AnswerParts };
  }

  #withText(record: SlotRecord): SlotRecord {
    if (record.text === null || record.text.length < TEXT_CHUNK_CHARS - 1) return record;
    const query = "SELECT text FROM chunk WHERE id = ? ORDER BY part";
    const rest = [...this.#rows.read<{ text: string }>("chunk", query, record.id)];
    return { ...record, text: [record.text, ...rest.map(({ text }) => text)].join("") };
  }
}

/** Where a piece that begins at `from` ends. Never between the two code units of a surrogate pair: half of one is no text. */
export function chunkEnd(text: string, from: number): number {
  const end = from + TEXT_CHUNK_CHARS;
  if (end >= text.length) return text.length;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
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
    slot.text === null ? null : slot.text.slice(0, chunkEnd(slot.text, 0)),
    reasonColumn(slot),
  ];
}

/** The first characters of the column `reason` of a completed slot: of a recorded answer, and of one of its provider's batch. */
const REPLAY_MARK = '{"replay":';
const SAVED_MARK = '{"savedNanoUsd":';
/** Slots that completed by themselves: a retry of their group keeps them. */
const KEPT = `state = 'completed'
  AND (reason IS NULL OR reason LIKE '${REPLAY_MARK}%' OR reason LIKE '${SAVED_MARK}%')`;

/** What such a slot has instead of a reason: a further column would cost a further row. `replay` is first, because a query finds it by its prefix. */
type InPlaceOfReason = Pick<SlotRecord, "replay" | "savedNanoUsd" | "cacheHitTokens" | "reasoningTokens">;

function reasonColumn({ reason, ...record }: SlotRecord): string | null {
  if (reason !== null) return JSON.stringify(reason);
  const { replay, savedNanoUsd, cacheHitTokens, reasoningTokens } = record;
  const tells = cacheHitTokens !== undefined || reasoningTokens !== undefined;
  if (replay === undefined && savedNanoUsd === undefined && !tells) return null;
  // Every form begins with one of the marks, which no reason begins with.
  const saved = replay === undefined ? (savedNanoUsd ?? null) : savedNanoUsd;
  return JSON.stringify({ replay, savedNanoUsd: saved, cacheHitTokens, reasoningTokens });
}

function reasonOf(column: string | null): Pick<SlotRecord, "reason"> & InPlaceOfReason {
  if (column === null) return { reason: null };
  if (!column.startsWith(REPLAY_MARK) && !column.startsWith(SAVED_MARK))
    return { reason: JSON.parse(column) as Reason };
  const { savedNanoUsd, ...inPlace }: InPlaceOfReason & { savedNanoUsd?: number | null } = JSON.parse(column);
  return { reason: null, ...inPlace, ...(savedNanoUsd == null ? {} : { savedNanoUsd }) };
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
    ...reasonOf(row.reason),
    ...(row.capped_by === "budget" ? { cappedBy: row.capped_by } : {}),
    ...(row.upstream === null ? {} : { upstream: row.upstream }),
    ...(row.checks === null ? {} : { checks: JSON.parse(row.checks) as SlotChecks }),
    ...(row.course === null ? {} : { course: JSON.parse(row.course) as Course }),
  };
}
