/**
 * Slots as rows. A long answer continues in rows of its own:
 *
 *   slot   one row per slot, from its first retry or its end on; `extras` is what few slots have, as JSON
 *   chunk  what did not fit into the slot's row of a long answer, piece by piece
 *   parts  what an answer has beside its text, as JSON, piece by piece: one row at least per slot that has something
 *
 * The slot of a single call that has a row of its own is in that row: see singles.ts.
 */
import type { AnswerParts } from "../../../src/call.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf, indexOf, rangeOf, slotIdOf, type SlotState } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import { EXTRAS_BESIDE_TEXT_CHARS_MAX, TEXT_CHUNK_CHARS } from "../../../src/limits.ts";
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
  extras: string | null;
  parts: string | null;
};

/** What few slots have. */
type Extras = Pick<
  SlotRecord,
  "cappedBy" | "upstream" | "checks" | "course" | "replay" | "savedNanoUsd" | "cacheHitTokens" | "reasoningTokens"
>;

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
    const answered: SlotRecord[] = [];
    const others: SlotRecord[] = [];
    for (const slot of slots) (isAnswered(slot) ? answered : others).push(slot);
    this.#insert(answered, ANSWERED);
    this.#insert(others, ANY);
  }

  #insert(slots: readonly SlotRecord[], { perStatement, statements, columnsOf }: Insert): void {
    for (let at = 0; at < slots.length; at += perStatement) {
      const some = slots.slice(at, at + perStatement);
      const extras = some.map(extrasColumn);
      const columns = some.flatMap((slot, index) => columnsOf(slot, extras[index] ?? null));
      this.#rows.write("slot", statements[some.length] ?? "", ...columns);
      for (const [index, { id, text, parts }] of some.entries()) {
        this.#putRest(id, text, isTextApart(extras[index] ?? null));
        this.#putParts(id, parts);
      }
    }
  }

  one(slotId: number): SlotRecord | null {
    const single = indexOf(slotId) === 0 ? this.#singles.slotOf(groupSeqOf(slotId)) : null;
    if (single !== null) return single;
    const query = `SELECT *, ${this.#partsColumn} FROM slot WHERE id = ?`;
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
    yield* this.#ofGroup(groupSeq, fromIndex, `SELECT *, ${this.#partsColumn} FROM slot`);
  }

  /** The same without texts, except those of slots that are to be retried: what a rebuild needs. */
  *states(groupSeq: number): Generator<SlotRecord> {
    const single = this.#singles.slotOf(groupSeq);
    if (single !== null) return yield single;
    const select = `SELECT id, state, attempts, not_before_ms, latency_ms, queued_ms, prompt_tokens, completion_tokens,
      cost_nano_usd, estimated, model, finish_reason,
      CASE WHEN state = 'queued' THEN text END AS text, reason, extras, ${this.#partsColumn} FROM slot`;
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
    const found = [
      ...(this.#rows.has("slot") ? [RECORDED_SLOTS] : []),
      ...(this.#rows.has("single") ? [RECORDED_SINGLES] : []),
    ];
    if (found.length === 0) return;
    const query = `${found.join(" UNION ALL ")} ORDER BY id`;
    const table = this.#rows.has("slot") ? "slot" : "single";
    yield* this.#rows.read<{ id: number; key: string; of: string | null }>(table, query);
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

  /** The column from the table that few runs have. */
  get #partsColumn(): string {
    return this.#rows.has("parts") ? PARTS : NO_PARTS;
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

  #putRest(id: number, text: string | null, isApart: boolean): void {
    if (text === null || (text.length < TEXT_CHUNK_CHARS - 1 && !isApart)) return;
    // The answer of an earlier attempt may have been longer.
    this.#rows.remove("chunk", "DELETE FROM chunk WHERE id = ?", id);
    for (let at = isApart ? 0 : chunkEnd(text, 0), part = 1; at < text.length; part++) {
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
    const record = this.#withText(slotOf(row), isTextApart(row.extras));
    if (row.parts === null) return record;
    const query = "SELECT json FROM parts WHERE id = ? AND part > 0 ORDER BY part";
    const isWhole = row.parts.length < TEXT_CHUNK_CHARS - 1;
    const rest = isWhole ? [] : [...this.#rows.read<{ json: string }>("parts", query, record.id)];
    return { ...record, parts: JSON.parse([row.parts, ...rest.map(({ json }) => json)].join("")) as AnswerParts };
  }

  #withText(record: SlotRecord, isApart: boolean): SlotRecord {
    if (record.text === null || (record.text.length < TEXT_CHUNK_CHARS - 1 && !isApart)) return record;
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

/** How slots are inserted. */
type Insert = {
  /** Most slots of a statement. */
  perStatement: number;
  /** By how many slots they insert. */
  statements: readonly string[];
  /** The bound values of a slot. */
  columnsOf: (slot: SlotRecord, extras: string | null) => (string | number | null)[];
};

/** Values that a statement takes. */
const BOUND_VALUES_MAX = 100;

/** `row`: the values of a slot as SQL, where a question mark is a bound one. */
function insertOf(row: string, columnsOf: Insert["columnsOf"]): Insert {
  const perStatement = Math.floor(BOUND_VALUES_MAX / row.replaceAll(/[^?]/g, "").length);
  const statementOf = (rows: number): string => `INSERT OR REPLACE INTO slot (id, state, attempts, not_before_ms,
    latency_ms, queued_ms, prompt_tokens, completion_tokens, cost_nano_usd, estimated, model, finish_reason, text,
    reason, extras) VALUES ${Array(rows).fill(`(${row})`).join(",")}`;
  return {
    perStatement,
    statements: Array.from({ length: perStatement + 1 }, (_, rows) => statementOf(rows)),
    columnsOf,
  };
}

const ANY = insertOf("?,?,?,?,?,?,?,?,?,?,?,?,?,?,?", slotColumns);

/** Nearly all slots have the same in four columns, and binding a value costs more than writing it. */
const ANSWERED = insertOf("?,'completed',?,NULL,?,?,?,?,?,0,?,?,?,NULL,?", answeredColumns);

function isAnswered({ state, notBeforeMs, estimated, reason }: SlotRecord): boolean {
  return state === "completed" && notBeforeMs === null && !estimated && reason === null;
}

function answeredColumns(slot: SlotRecord, extras: string | null): (string | number | null)[] {
  const { id, attempts, latencyMs, queuedMs, promptTokens, completionTokens, costNanoUsd, model, finishReason } = slot;
  const numbers = [id, attempts, latencyMs, queuedMs, promptTokens, completionTokens, costNanoUsd];
  return [...numbers, model, finishReason, textColumn(slot, extras), extras];
}

function slotColumns(slot: SlotRecord, extras: string | null): (string | number | null)[] {
  const { reason } = slot;
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
    textColumn(slot, extras),
    reason === null ? null : JSON.stringify(reason),
    extras,
  ];
}

function textColumn({ text }: SlotRecord, extras: string | null): string | null {
  return text === null ? null : text.slice(0, isTextApart(extras) ? 0 : chunkEnd(text, 0));
}

/** Slots that completed by themselves: a retry of their group keeps them. */
const KEPT = "state = 'completed' AND reason IS NULL";

/** The answers that slots have recorded, with the recorded answer that each ended with instead of an attempt. */
const RECORDED_SLOTS = `SELECT id, extras ->> '$.replay.key' AS key, extras ->> '$.replay.of' AS of
  FROM slot WHERE state = 'completed' AND extras -> '$.replay' IS NOT NULL`;

/** Whether a slot's answer has no room beside its extras, and begins in its first chunk. */
function isTextApart(extras: string | null): boolean {
  return extras !== null && extras.length > EXTRAS_BESIDE_TEXT_CHARS_MAX;
}

function extrasColumn(slot: SlotRecord): string | null {
  const { cappedBy, upstream, checks, course, replay, savedNanoUsd, cacheHitTokens, reasoningTokens } = slot;
  const extras = { cappedBy, upstream, checks, course, replay, savedNanoUsd, cacheHitTokens, reasoningTokens };
  return Object.values(extras).every((value) => value === undefined) ? null : JSON.stringify(extras);
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
    ...(row.extras === null ? {} : (JSON.parse(row.extras) as Extras)),
  };
}
