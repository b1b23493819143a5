/**
 * Groups and their calls as rows:
 *
 *   grp    one row per group: its header at opening, its result when it has ended or was stopped
 *   graph  the compiled graph of a group whose slots depend on each other, as JSON in parts: it may be larger than a row
 *   page   a group's calls, up to 32 to a row: facts for dispatch and bodies for executors; written once
 *
 * A retry has what the groups before it have, and rows only for what is its own: see retried.ts.
 * What is read here may also be a single call with a row of its own: see singles.ts.
 */
import { groupSeqOf, indexOf, rangeOf, slotIdOf } from "../../../src/run/queue/slot.ts";
import { wholeGraphJson } from "./graph-json.ts";
import type { GroupResult, StoredGroup, StoredPage } from "./records.ts";
import type { StoredSettled } from "../../../src/run/leases/shard.ts";
import { groupJson, groupOfJson, retriedGraphJson, type Before, type RetriedRows } from "./retried.ts";
import { chunkEnd } from "./slots.ts";
import { unsettled, type SingleRows } from "./singles.ts";
import type { Rows } from "./sql.ts";

type GroupRow = { seq: number; header: string; result: string | null };

/** A group with its result; null while it runs and was not stopped. */
export type GroupRecord = { stored: StoredGroup; result: GroupResult | null };

/** The facts of a page, without the bodies of its calls. */
type PageFacts = { firstIndex: number; facts: string };

/** Groups that a look at the newest reads with one statement: who stops early has read few. */
const GROUPS_AT_ONCE = 64;

/** The tables that have groups. */
const GROUP_TABLES = ["grp", "single"] as const;

export class GroupRows {
  readonly #rows: Rows;
  readonly #singles: SingleRows;
  readonly #retried: RetriedRows;

  constructor(rows: Rows, singles: SingleRows, retried: RetriedRows) {
    this.#rows = rows;
    this.#singles = singles;
    this.#retried = retried;
  }

  put(group: StoredGroup): void {
    const { seq } = group.header;
    this.#rows.write("grp", "INSERT OR REPLACE INTO grp (seq, header) VALUES (?, ?)", seq, this.#json(group));
  }

  /** Stores the header of a group whose graph has changed; its result stays. */
  putHeader(group: StoredGroup): void {
    this.#rows.write("grp", "UPDATE grp SET header = ? WHERE seq = ?", this.#json(group), group.header.seq);
  }

  #json(group: StoredGroup): string {
    const [first] = this.#retried.before(group.header.seq);
    return groupJson(group, first === undefined ? null : this.#groupOf(first.seq));
  }

  #groupOf(seq: number): StoredGroup {
    const found = this.get(seq);
    if (found === null) throw new Error(`group ${seq}, which was retried, is gone`);
    return found.stored;
  }

  /** Stores a group's graph, in place of the one that it may have. */
  putGraph(seq: number, json: string): void {
    this.#rows.remove("graph", "DELETE FROM graph WHERE seq = ?", seq);
    for (let at = 0, part = 0; at < json.length; part++) {
      const end = chunkEnd(json, at);
      this.#rows.write("graph", "INSERT INTO graph (seq, part, json) VALUES (?, ?, ?)", seq, part, json.slice(at, end));
      at = end;
    }
  }

  /** A group's graph as JSON text; null if it has none. */
  graphJson(seq: number): string | null {
    const own = this.#graphText(seq);
    if (own !== null) return wholeGraphJson(own, this.defaultsJson(seq));
    for (const before of this.#retried.before(seq).toReversed()) {
      const text = this.#graphText(before.seq);
      if (text !== null) return retriedGraphJson(wholeGraphJson(text, this.defaultsJson(seq)));
    }
    return null;
  }

  #graphText(seq: number): string | null {
    const query = "SELECT json FROM graph WHERE seq = ? ORDER BY part";
    const parts = [...this.#rows.read<{ json: string }>("graph", query, seq)].map(({ json }) => json);
    return parts.length === 0 ? null : parts.join("");
  }

  /** What the calls of a group share. */
  defaultsJson(seq: number): string {
    return this.get(seq)?.stored.defaultsJson ?? "{}";
  }

  /** Deletes a group that is not opened after all, with its pages. */
  drop(seq: number): void {
    this.#rows.remove("page", "DELETE FROM page WHERE id >= ? AND id < ?", ...rangeOf(seq));
    this.#rows.remove("grp", "DELETE FROM grp WHERE seq = ?", seq);
  }

  putResult(seq: number, result: GroupResult): void {
    this.#rows.write("grp", "UPDATE grp SET result = ? WHERE seq = ?", JSON.stringify(result), seq);
  }

  /** A group; null if there is no such group. */
  get(seq: number): GroupRecord | null {
    const row = this.#rowOf("grp", seq) ?? this.#rowOf("single", seq);
    return row === undefined ? null : this.#recordOf(row);
  }

  /** Every group that may change, oldest first; without `settled`, every group. */
  *all(settled: StoredSettled | null = null): Generator<GroupRecord> {
    const [first, ...others] = GROUP_TABLES.filter((table) => this.#rows.has(table));
    if (first === undefined) return;
    const parts = settled === null ? ["TRUE"] : unsettled(settled);
    const selects = [first, ...others].flatMap((table) =>
      parts.map((part) => `SELECT seq, header, result FROM ${table} WHERE ${part}`),
    );
    const query = `${selects.join(" UNION ALL ")} ORDER BY seq`;
    for (const row of this.#rows.read<GroupRow>(first, query)) yield this.#recordOf(row);
  }

  /** Every group from a number on down, newest first. */
  *newest(fromSeq: number): Generator<GroupRecord> {
    const [first, ...others] = GROUP_TABLES.filter((table) => this.#rows.has(table));
    if (first === undefined) return;
    for (let before = fromSeq + 1; ;) {
      const part = [first, ...others].map(
        (table) => `SELECT * FROM (SELECT seq, header, result FROM ${table}
        WHERE seq < ?1 ORDER BY seq DESC LIMIT ${GROUPS_AT_ONCE})`,
      );
      const query = `${part.join(" UNION ALL ")} ORDER BY seq DESC LIMIT ${GROUPS_AT_ONCE}`;
      const rows = [...this.#rows.read<GroupRow>(first, query, before)];
      for (const row of rows) yield this.#recordOf(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < GROUPS_AT_ONCE) return;
      before = last.seq;
    }
  }

  #rowOf(table: (typeof GROUP_TABLES)[number], seq: number): GroupRow | undefined {
    return this.#rows.first<GroupRow>(table, `SELECT seq, header, result FROM ${table} WHERE seq = ?`, seq);
  }

  putPage(groupSeq: number, page: StoredPage): void {
    const id = slotIdOf(groupSeq, page.firstIndex);
    this.#rows.write(
      "page",
      "INSERT OR REPLACE INTO page (id, facts, calls) VALUES (?, ?, ?)",
      id,
      page.facts,
      page.calls,
    );
  }

  /** The groups before a retry of a group: those before it, and itself. */
  beforeRetryOf(seq: number): Before[] {
    const query = "SELECT min(id) AS id FROM page WHERE id >= ? AND id < ?";
    const first = this.#rows.first<{ id: number | null }>("page", query, ...rangeOf(seq))?.id ?? null;
    return [...this.#retried.before(seq), { seq, firstCall: first === null ? null : indexOf(first) }];
  }

  /** Where the page that holds a slot may be, by ids of slots in one group each: of a retry, its own and those before, newest first. */
  #placesOf(slotId: number): number[] {
    const index = indexOf(slotId);
    const has = ({ firstCall }: Before): boolean => firstCall !== null && firstCall <= index;
    const before = this.#retried.before(groupSeqOf(slotId)).filter(has).toReversed();
    return [slotId, ...before.map(({ seq }) => slotIdOf(seq, index))];
  }

  #pageRow<T extends { id: number; facts: string }>(columns: string, slotId: number): T | undefined {
    const query = `SELECT ${columns} FROM page WHERE id <= ? AND id >= ? ORDER BY id DESC LIMIT 1`;
    for (const id of this.#placesOf(slotId)) {
      const row = this.#rows.first<T>("page", query, id, id - indexOf(id));
      if (row !== undefined) return row;
    }
    return undefined;
  }

  /** The page that holds a slot; null if there is none. */
  pageOf(slotId: number): StoredPage | null {
    const single = this.#singles.pageOf(groupSeqOf(slotId));
    if (single !== null) return single;
    const row = this.#pageRow<{ id: number; facts: string; calls: string }>("id, facts, calls", slotId);
    return row === undefined ? null : { firstIndex: indexOf(row.id), facts: row.facts, calls: row.calls };
  }

  /** The facts of the page that holds a slot; null if there is none. */
  factsOf(slotId: number): PageFacts | null {
    const single = this.#singles.factsOf(groupSeqOf(slotId));
    if (single !== null) return single;
    const row = this.#pageRow<{ id: number; facts: string }>("id, facts", slotId);
    return row === undefined ? null : { firstIndex: indexOf(row.id), facts: row.facts };
  }

  /** The facts of a group's pages, in order. */
  *pageFacts(groupSeq: number): Generator<PageFacts> {
    const single = this.#singles.factsOf(groupSeq);
    if (single !== null) return yield single;
    const query = "SELECT id, facts FROM page WHERE id >= ? AND id < ? ORDER BY id";
    const before = this.#retried.before(groupSeq).filter(({ firstCall }) => firstCall !== null);
    for (const { seq } of [...before, { seq: groupSeq }]) {
      for (const row of this.#rows.read<{ id: number; facts: string }>("page", query, ...rangeOf(seq))) {
        yield { firstIndex: indexOf(row.id), facts: row.facts };
      }
    }
  }

  #recordOf(row: GroupRow): GroupRecord {
    return {
      stored: groupOfJson(row.header, (seq) => this.#groupOf(seq)),
      result: row.result === null ? null : (JSON.parse(row.result) as GroupResult),
    };
  }
}
