/** The rows of a run's shelf. */
import type { FileRecord } from "../../src/batch/files.ts";
import type { FilesQuery, PageQuery } from "../../src/batch/pages.ts";
import type { Upload } from "../../src/batch/uploads.ts";
import { FILES_DROPPED_AT_ONCE } from "../../src/limits.ts";

/** A part of an upload; its bytes lie in R2 under its id. */
export type StoredPart = { id: string; uploadId: string; bytes: number; createdAtS: number };

type Body = { body: string };

export class ShelfStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  #created: boolean;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#created = this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'file'").toArray().length > 0;
  }

  /** A shelf that nothing was ever put on stores nothing. */
  get isEmpty(): boolean {
    return !this.#created;
  }

  async destroy(): Promise<void> {
    this.#created = false;
    await this.#storage.deleteAll();
  }

  putFile(file: FileRecord): void {
    const { id, expiresAtS, purpose } = file;
    const query = "INSERT OR IGNORE INTO file (id, expires_s, purpose, body) VALUES (?, ?, ?, ?)";
    this.#write(query, id, expiresAtS, purpose, JSON.stringify(file));
  }

  file(id: string): FileRecord | null {
    return this.#one<FileRecord>("SELECT body FROM file WHERE id = ?", id);
  }

  dropFile(id: string): void {
    this.#write("DELETE FROM file WHERE id = ?", id);
  }

  files({ limit, after, order, purpose }: FilesQuery, nowS: number): FileRecord[] | null {
    const place = this.#placeOf("file", after);
    if (place === null) return null;
    const [compare, direction] = order === "asc" ? [">", "ASC"] : ["<", "DESC"];
    const start = after === null ? (order === "asc" ? 0 : Number.MAX_SAFE_INTEGER) : place;
    const query = `SELECT body FROM file WHERE made ${compare} ?1 AND (?2 IS NULL OR purpose = ?2)
      AND (expires_s IS NULL OR expires_s > ?3) ORDER BY made ${direction} LIMIT ?4`;
    return this.#all<FileRecord>(query, start, purpose, nowS, limit + 1);
  }

  /** Ids of files that have expired, a number of them that is dropped at once. */
  expired(nowS: number): string[] {
    if (!this.#created) return [];
    const query = "SELECT id FROM file WHERE expires_s <= ? LIMIT ?";
    const rows = this.#sql.exec<{ id: string }>(query, nowS, FILES_DROPPED_AT_ONCE).toArray();
    return rows.map(({ id }) => id);
  }

  nextExpiryS(): number | null {
    if (!this.#created) return null;
    return this.#sql.exec<{ next: number | null }>("SELECT min(expires_s) AS next FROM file").one().next;
  }

  putUpload(upload: Upload): void {
    this.#write("INSERT OR REPLACE INTO upload (id, body) VALUES (?, ?)", upload.id, JSON.stringify(upload));
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

  dropParts(uploadId: string): void {
    this.#write("DELETE FROM part WHERE upload_id = ?", uploadId);
  }

  putBatch(id: string): void {
    this.#write("INSERT OR IGNORE INTO batch (id) VALUES (?)", id);
  }

  batches({ limit, after }: PageQuery): string[] | null {
    const place = this.#placeOf("batch", after);
    if (place === null) return null;
    if (!this.#created) return [];
    const query = "SELECT id FROM batch WHERE made < ? ORDER BY made DESC LIMIT ?";
    const rows = this.#sql.exec<{ id: string }>(query, after === null ? Number.MAX_SAFE_INTEGER : place, limit + 1);
    return rows.toArray().map(({ id }) => id);
  }

  batchIds(): string[] {
    if (!this.#created) return [];
    return this.#sql
      .exec<{ id: string }>("SELECT id FROM batch")
      .toArray()
      .map(({ id }) => id);
  }

  /** Where an item stands in its table's order; 0 without a cursor, null for a cursor that names no item. */
  #placeOf(table: "file" | "batch", after: string | null): number | null {
    if (after === null) return 0;
    if (!this.#created) return null;
    const row = this.#sql.exec<{ made: number }>(`SELECT made FROM ${table} WHERE id = ?`, after).toArray()[0];
    return row?.made ?? null;
  }

  #one<T>(query: string, id: string): T | null {
    return this.#all<T>(query, id)[0] ?? null;
  }

  #all<T>(query: string, ...bindings: (string | number | null)[]): T[] {
    if (!this.#created) return [];
    return this.#sql
      .exec<Body>(query, ...bindings)
      .toArray()
      .map(({ body }) => JSON.parse(body) as T);
  }

  #write(query: string, ...bindings: (string | number | null)[]): void {
    if (!this.#created) this.#create();
    this.#sql.exec(query, ...bindings);
  }

  #create(): void {
    this.#storage.transactionSync(() => {
      this.#sql.exec(`
        CREATE TABLE file (made INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, expires_s INTEGER,
          purpose TEXT NOT NULL, body TEXT NOT NULL) STRICT;
        CREATE TABLE upload (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE part (made INTEGER PRIMARY KEY AUTOINCREMENT, upload_id TEXT NOT NULL, body TEXT NOT NULL) STRICT;
        CREATE INDEX part_of ON part (upload_id);
        CREATE TABLE batch (made INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE) STRICT`);
    });
    this.#created = true;
  }
}
