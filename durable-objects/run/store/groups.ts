/**
 * Groups and their calls as rows:
 *
 *   grp    one row per group: its header at opening, its result when it has ended or was stopped
 *   graph  the compiled graph of a group whose slots depend on each other, as JSON in parts: it may be larger than a row
 *   page   a group's calls, up to 32 to a row: facts for dispatch and bodies for executors; written once
 *
 * What is read here may also be a single call with a row of its own: see singles.ts.
 */
import { groupSeqOf, SLOT_IDS_PER_GROUP, rangeOf, slotIdOf } from "../../../src/run/queue/slot.ts";
import { wholeGraphJson } from "./graph-json.ts";
import type { GroupResult, StoredGroup, StoredPage } from "./records.ts";
import type { StoredSettled } from "../../../src/run/leases/shard.ts";
import { chunkEnd } from "./slots.ts";
import { unsettled, type SingleRows } from "./singles.ts";
import type { Rows } from "./sql.ts";

type GroupRow = { seq: number; header: string; result: string | null };

/** A group with its result; null while it runs and was not stopped. */
export type GroupRecord = { stored: StoredGroup; result: GroupResult | null };

/** The facts of a page, without the bodies of its calls. */
type PageFacts = { firstIndex: number; facts: string };

/** The tables that have groups. */
const GROUP_TABLES = ["grp", "single"] as const;

export class GroupRows {
  readonly #rows: Rows;
  readonly #singles: SingleRows;

  constructor(rows: Rows, singles: SingleRows) {
    this.#rows = rows;
    this.#singles = singles;
  }

  put(group: StoredGroup): void {
    this.#rows.write(
      "grp",
      "INSERT OR REPLACE INTO grp (seq, header) VALUES (?, ?)",
      group.header.seq,
      JSON.stringify(group),
    );
  }

  /** Stores the header of a group whose graph has changed; its result stays. */
  putHeader(group: StoredGroup): void {
    this.#rows.write("grp", "UPDATE grp SET header = ? WHERE seq = ?", JSON.stringify(group), group.header.seq);
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
    const query = "SELECT json FROM graph WHERE seq = ? ORDER BY part";
    const parts = [...this.#rows.read<{ json: string }>("graph", query, seq)].map(({ json }) => json);
    return parts.length === 0 ? null : wholeGraphJson(parts.join(""), this.defaultsJson(seq));
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
    return row === undefined ? null : recordOf(row);
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
    for (const row of this.#rows.read<GroupRow>(first, query)) yield recordOf(row);
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

  /** Stores the calls of one group for another one, too. */
  copyPages(fromSeq: number, toSeq: number): void {
    const [first, end] = rangeOf(fromSeq);
    const query = "INSERT INTO page (id, facts, calls) SELECT id + ?, facts, calls FROM page WHERE id >= ? AND id < ?";
    this.#rows.write("page", query, slotIdOf(toSeq, 0) - first, first, end);
  }

  /** The page that holds a slot; null if there is none. */
  pageOf(slotId: number): StoredPage | null {
    const single = this.#singles.pageOf(groupSeqOf(slotId));
    if (single !== null) return single;
    const query = "SELECT id, facts, calls FROM page WHERE id <= ? ORDER BY id DESC LIMIT 1";
    const row = this.#rows.first<{ id: number; facts: string; calls: string }>("page", query, slotId);
    return row === undefined ? null : { firstIndex: row.id % SLOT_IDS_PER_GROUP, facts: row.facts, calls: row.calls };
  }

  /** The facts of the page that holds a slot; null if there is none. */
  factsOf(slotId: number): PageFacts | null {
    const single = this.#singles.factsOf(groupSeqOf(slotId));
    if (single !== null) return single;
    const query = "SELECT id, facts FROM page WHERE id <= ? ORDER BY id DESC LIMIT 1";
    const row = this.#rows.first<{ id: number; facts: string }>("page", query, slotId);
    return row === undefined ? null : { firstIndex: row.id % SLOT_IDS_PER_GROUP, facts: row.facts };
  }

  /** The facts of a group's pages, in order. */
  *pageFacts(groupSeq: number): Generator<PageFacts> {
    const single = this.#singles.factsOf(groupSeq);
    if (single !== null) return yield single;
    const [first, end] = rangeOf(groupSeq);
    const query = "SELECT id, facts FROM page WHERE id >= ? AND id < ? ORDER BY id";
    for (const row of this.#rows.read<{ id: number; facts: string }>("page", query, first, end)) {
      yield { firstIndex: row.id % SLOT_IDS_PER_GROUP, facts: row.facts };
    }
  }
}

function recordOf(row: GroupRow): GroupRecord {
  return {
    stored: JSON.parse(row.header) as StoredGroup,
    result: row.result === null ? null : (JSON.parse(row.result) as GroupResult),
  };
}
