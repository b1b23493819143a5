/**
 * The rows of a run's contexts, in the order of their creation:
 *
 *   context   one row per context: its record, its index, and its text unless that is in R2
 */
import type { ContextRecord, IndexedContext } from "../../src/contexts/types.ts";
import type { ContextsQuery } from "../../src/contract/contexts/contexts.ts";
import type { Reason } from "../../src/errors.ts";
import { CONTEXTS_BYTES_MAX, CONTEXTS_MAX } from "../../src/limits.ts";
import type { Tables } from "../schema-version.ts";
import type { FilesTable } from "./migrations.ts";

type Row = { body: string };

export class ContextStore {
  readonly #sql: SqlStorage;
  readonly #tables: Tables<FilesTable>;
  /** Contexts, and bytes of their texts; null = there is no table yet. */
  #totals: { count: number; bytes: number } | null = null;

  constructor({ sql }: DurableObjectStorage, tables: Tables<FilesTable>) {
    this.#sql = sql;
    this.#tables = tables;
    if (tables.has("context")) this.#count();
  }

  /** Bytes of the texts that are in R2. */
  get contentBytes(): number {
    const query = "SELECT coalesce(sum(bytes), 0) AS bytes FROM context WHERE text IS NULL";
    return this.#rows<{ bytes: number }>(query)[0]?.bytes ?? 0;
  }

  /** Whether nothing was ever stored. */
  get isEmpty(): boolean {
    return this.#totals === null;
  }

  forget(): void {
    this.#totals = null;
  }

  /** Why there is no room for a context; null = there is. */
  roomReason(bytes: number): Reason | null {
    const { count, bytes: stored } = this.#totals ?? { count: 0, bytes: 0 };
    if (count >= CONTEXTS_MAX) {
      const message = `this run has ${CONTEXTS_MAX} contexts already; delete some, or give a chunk as the part of a larger one`;
      return { reason: "invalid_request", message, param: null };
    }
    if (stored + bytes <= CONTEXTS_BYTES_MAX) return null;
    const what = "what the contexts of this run have together";
    return { reason: "payload_too_large", what, bytesMax: CONTEXTS_BYTES_MAX, param: null };
  }

  /** Makes the table, unless it is there. */
  create(): void {
    if (this.#totals !== null) return;
    this.#totals = { count: 0, bytes: 0 };
    this.#tables.make("context");
  }

  /** Adds a context that is not there. */
  put({ record, index }: IndexedContext, text: Uint8Array | null): void {
    this.create();
    const query = "INSERT INTO context (id, bytes, body, blocks, text) VALUES (?, ?, ?, ?, ?)";
    const body = JSON.stringify(record);
    this.#sql.exec(query, record.id, record.bytes, body, bufferOf(index), text === null ? null : bufferOf(text));
    this.#add(1, record.bytes);
  }

  record(id: string): ContextRecord | null {
    const row = this.#rows<Row>("SELECT body FROM context WHERE id = ?", id)[0];
    return row === undefined ? null : recordOf(row);
  }

  context(id: string): IndexedContext | null {
    const row = this.#rows<Row & { blocks: ArrayBuffer }>("SELECT body, blocks FROM context WHERE id = ?", id)[0];
    return row === undefined ? null : { record: recordOf(row), index: new Uint8Array(row.blocks) };
  }

  list({ limit, after }: ContextsQuery): ContextRecord[] | null {
    let before = Number.MAX_SAFE_INTEGER;
    if (after !== null) {
      const found = this.#rows<{ made: number }>("SELECT made FROM context WHERE id = ?", after)[0];
      if (found === undefined) return null;
      before = found.made;
    }
    const query = "SELECT body FROM context WHERE made < ? ORDER BY made DESC LIMIT ?";
    return this.#rows<Row>(query, before, limit + 1).map(recordOf);
  }

  text(id: string, from: number, to: number): Uint8Array | null {
    // SQLite counts from 1.
    const query = "SELECT substr(text, ?, ?) AS part FROM context WHERE id = ? AND text IS NOT NULL";
    const row = this.#rows<{ part: ArrayBuffer }>(query, from + 1, to - from, id)[0];
    return row === undefined ? null : new Uint8Array(row.part);
  }

  drop({ id, bytes }: ContextRecord): void {
    this.#rows("DELETE FROM context WHERE id = ?", id);
    this.#add(-1, -bytes);
  }

  #rows<T extends Record<string, SqlStorageValue>>(query: string, ...bindings: (string | number)[]): T[] {
    return this.#totals === null ? [] : this.#sql.exec<T>(query, ...bindings).toArray();
  }

  #add(count: number, bytes: number): void {
    const before = this.#totals ?? { count: 0, bytes: 0 };
    this.#totals = { count: before.count + count, bytes: before.bytes + bytes };
  }

  /** Reads every row, so only once. */
  #count(): void {
    const query = "SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM context";
    this.#totals = this.#sql.exec<{ count: number; bytes: number }>(query).one();
  }
}

function recordOf({ body }: Row): ContextRecord {
  return JSON.parse(body);
}

/** A view may be part of a larger buffer. */
function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer;
}
