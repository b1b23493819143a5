/**
 * The rows of a run's files:
 *
 *   file    one row per file, in the order of creation; a deleted file has expired at 0
 *   upload  one row per upload; when its parts are to be dropped, null = they were dropped
 *   part    one row per part of an upload
 *   batch   one row per batch, in the order of creation; until when it may read its input
 *   batch_bytes  one row per batch that has reported what it stores: its rows, and parts of its files; made with the first of them
 */
import type { FileRecord } from "../../src/batch/files.ts";
import type { BatchesQuery, FilesQuery } from "../../src/batch/pages.ts";
import type { Upload } from "../../src/batch/uploads.ts";
import { FILES_DROPPED_AT_ONCE, UPLOAD_EXPIRES_S } from "../../src/limits.ts";
import type { StoredPart } from "../../src/objects/methods/file-api.ts";
import type { Tables } from "../schema-version.ts";
import type { FilesTable } from "./migrations.ts";

type Body = { body: string };

/** How long an upload's parts stay after its creation, seconds: a completion at the last moment still reads them. */
const PARTS_KEPT_S = 2 * UPLOAD_EXPIRES_S;

/** When a file's content is dropped: once it has expired and no batch may read it. */
const FILE_DUE = "max(expires_s, coalesce((SELECT max(until_s) FROM batch WHERE input = file.id), 0))";

export class FileStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #tables: Tables<FilesTable>;

  constructor(storage: DurableObjectStorage, tables: Tables<FilesTable>) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#tables = tables;
  }

  /** Whether nothing was ever stored: then there are not even tables. */
  get isEmpty(): boolean {
    return !this.#tables.has("file");
  }

  /**
   * Bytes of files and of parts of uploads in R2. The parts of an upload that is not complete count twice: once it is, they stay for
   * a while beside the file that they have become.
   */
  get contentBytes(): number {
    if (!this.#tables.has("file")) return 0;
    const query = `SELECT
      (SELECT coalesce(sum(json_extract(body, '$.bytes')), 0) FROM file) +
      (SELECT coalesce(sum(json_extract(part.body, '$.bytes') *
        iif(json_extract(upload.body, '$.status') = 'pending', 2, 1)), 0)
        FROM part JOIN upload ON upload.id = part.upload_id) AS bytes`;
    return this.#sql.exec<{ bytes: number }>(query).one().bytes;
  }

  /** Bytes that batches have reported. */
  get batchBytes(): number {
    if (!this.#tables.has("batch_bytes")) return 0;
    return this.#sql.exec<{ bytes: number }>("SELECT coalesce(sum(bytes), 0) AS bytes FROM batch_bytes").one().bytes;
  }

  /** Notes what a batch stores that is no file. */
  putBatchBytes(id: string, bytes: number): void {
    this.#tables.make("batch_bytes");
    this.#sql.exec("INSERT OR REPLACE INTO batch_bytes (id, bytes) VALUES (?, ?)", id, bytes);
  }

  async destroy(): Promise<void> {
    this.#tables.forget();
    await this.#storage.deleteAll();
  }

  transaction(write: () => void): void {
    this.#storage.transactionSync(write);
  }

  /** Adds a file, unless it is stored already. */
  putFile(file: FileRecord): void {
    const { id, expiresAtS, purpose } = file;
    const query = "INSERT OR IGNORE INTO file (id, expires_s, purpose, body) VALUES (?, ?, ?, ?)";
    this.#write(query, id, expiresAtS, purpose, JSON.stringify(file));
  }

  replaceFile(file: FileRecord): void {
    this.#write("UPDATE file SET expires_s = ?, body = ? WHERE id = ?", file.expiresAtS, JSON.stringify(file), file.id);
  }

  file(id: string): FileRecord | null {
    return this.#one<FileRecord>("SELECT body FROM file WHERE id = ?", id);
  }

  dropFile(id: string): void {
    this.#write("DELETE FROM file WHERE id = ?", id);
  }

  files({ limit, after, order, purpose }: FilesQuery, nowS: number): FileRecord[] | null {
    const position = this.#positionOf("file", after);
    if (position === null) return null;
    const [compare, direction] = order === "asc" ? [">", "ASC"] : ["<", "DESC"];
    const start = after === null ? (order === "asc" ? 0 : Number.MAX_SAFE_INTEGER) : position;
    const query = `SELECT body FROM file WHERE made ${compare} ?1 AND (?2 IS NULL OR purpose = ?2)
      AND (expires_s IS NULL OR expires_s > ?3) ORDER BY made ${direction} LIMIT ?4`;
    return this.#all<FileRecord>(query, start, purpose, nowS, limit + 1);
  }

  /** Ids of files whose content is to be dropped, at most `FILES_DROPPED_AT_ONCE`. */
  dueFiles(nowS: number): string[] {
    return this.#ids(
      `SELECT id FROM file WHERE expires_s <= ?1 AND ${FILE_DUE} <= ?1 LIMIT ?2`,
      nowS,
      FILES_DROPPED_AT_ONCE,
    );
  }

  /** Ids of uploads whose parts are to be dropped. */
  dueUploads(nowS: number): string[] {
    return this.#ids("SELECT id FROM upload WHERE parts_until_s <= ?", nowS);
  }

  /** When something is to be dropped next; null if nothing is. Reads few rows: those that are due, and the next one. */
  nextDueS(nowS: number): number | null {
    if (!this.#tables.has("file")) return null;
    const query = `SELECT min(due) AS next FROM (
      SELECT min(expires_s) AS due FROM file WHERE expires_s > ?1
      UNION ALL SELECT min(${FILE_DUE}) FROM file WHERE expires_s <= ?1
      UNION ALL SELECT min(parts_until_s) FROM upload)`;
    return this.#sql.exec<{ next: number | null }>(query, nowS).one().next;
  }

  /** Adds or replaces an upload, with the time at which its parts are to be dropped. */
  putUpload(upload: Upload, { dropPartsS } = { dropPartsS: upload.createdAtS + PARTS_KEPT_S }): void {
    const query = "INSERT OR REPLACE INTO upload (id, parts_until_s, body) VALUES (?, ?, ?)";
    this.#write(query, upload.id, dropPartsS, JSON.stringify(upload));
  }

  upload(id: string): Upload | null {
    return this.#one<Upload>("SELECT body FROM upload WHERE id = ?", id);
  }

  putPart(part: StoredPart): void {
    this.#write("INSERT INTO part (upload_id, body) VALUES (?, ?)", part.uploadId, JSON.stringify(part));
  }

  parts(uploadId: string): StoredPart[] {
    return this.#all<StoredPart>("SELECT body FROM part WHERE upload_id = ? ORDER BY made", uploadId);
  }

  partCount(uploadId: string): number {
    if (!this.#tables.has("file")) return 0;
    const query = "SELECT count(*) AS parts FROM part WHERE upload_id = ?";
    return this.#sql.exec<{ parts: number }>(query, uploadId).one().parts;
  }

  dropParts(uploadId: string): void {
    this.#storage.transactionSync(() => {
      this.#write("DELETE FROM part WHERE upload_id = ?", uploadId);
      this.#write("UPDATE upload SET parts_until_s = NULL WHERE id = ?", uploadId);
    });
  }

  /** Adds a batch, unless it is stored already. */
  putBatch(id: string, { inputFileId, neededUntilS }: { inputFileId: string; neededUntilS: number }): void {
    const query = "INSERT OR IGNORE INTO batch (id, input, until_s) VALUES (?, ?, ?)";
    this.#write(query, id, inputFileId, neededUntilS);
  }

  endBatch(id: string): void {
    this.#write("UPDATE batch SET until_s = 0 WHERE id = ?", id);
  }

  batches({ limit, after, before = null, prefix }: BatchesQuery): string[] | null {
    const position = this.#positionOf("batch", after ?? before);
    if (position === null) return null;
    const pattern = `${prefix}*`;
    if (before !== null) {
      const query = "SELECT id FROM batch WHERE made > ? AND id GLOB ? ORDER BY made LIMIT ?";
      // Those just before the cursor, in the order of the list: what is more than a page is the newest.
      return this.#ids(query, position, pattern, limit + 1).toReversed();
    }
    const start = after === null ? Number.MAX_SAFE_INTEGER : position;
    const query = "SELECT id FROM batch WHERE made < ? AND id GLOB ? ORDER BY made DESC LIMIT ?";
    return this.#ids(query, start, pattern, limit + 1);
  }

  dropBatch(id: string): void {
    this.#write("DELETE FROM batch WHERE id = ?", id);
    if (this.#tables.has("batch_bytes")) this.#write("DELETE FROM batch_bytes WHERE id = ?", id);
  }

  batchIds(): string[] {
    return this.#ids("SELECT id FROM batch");
  }

  /** The position of an item in its table's order; 0 without a cursor, null for a cursor that names no item. */
  #positionOf(table: "file" | "batch", after: string | null): number | null {
    if (after === null) return 0;
    if (!this.#tables.has("file")) return null;
    const row = this.#sql.exec<{ made: number }>(`SELECT made FROM ${table} WHERE id = ?`, after).toArray()[0];
    return row?.made ?? null;
  }

  #one<T>(query: string, id: string): T | null {
    return this.#all<T>(query, id)[0] ?? null;
  }

  #all<T>(query: string, ...bindings: (string | number | null)[]): T[] {
    if (!this.#tables.has("file")) return [];
    return this.#sql
      .exec<Body>(query, ...bindings)
      .toArray()
      .map(({ body }) => JSON.parse(body) as T);
  }

  #ids(query: string, ...bindings: (number | string)[]): string[] {
    if (!this.#tables.has("file")) return [];
    const rows = this.#sql.exec<{ id: string }>(query, ...bindings).toArray();
    return rows.map(({ id }) => id);
  }

  #write(query: string, ...bindings: (string | number | null)[]): void {
    this.#tables.make("file", "upload", "part", "batch");
    this.#sql.exec(query, ...bindings);
  }
}
