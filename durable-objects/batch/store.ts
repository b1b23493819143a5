/**
 * The rows of a batch, in its object's SQLite:
 *
 *   meta   the job: the batch itself, how far its input was fed and its lines were written
 *   chunk  one row per group of lines that is open in the run
 *   tail   what was written to a file and is not in R2 yet: R2's parts are large, and memory does not survive
 */
import type { Batch } from "../../src/batch/lifecycle.ts";
import type { AppendState } from "../../src/files/r2-append.ts";
import { BATCH_TAIL_BYTES } from "../../src/limits.ts";
import { Tables } from "../schema-version.ts";
import { MIGRATIONS, type BatchTable } from "./migrations.ts";

/** The two files that a batch writes. */
export type BatchFile = "output" | "error";
export const BATCH_FILES: readonly BatchFile[] = ["output", "error"];

/** The state of a batch's work. Plain JSON. */
export type Job = {
  batch: Batch;
  runId: string;
  /** Hash of the request that created it: another request under the same id is refused. */
  requestHash: string;
  /** Size of the input, bytes; 0 before it is known. */
  inputBytes: number;
  /** The next line to feed: its first byte, its number in the file, and the number of requests before it. */
  feed: { start: number; number: number; index: number; chunkNo: number; done: boolean };
  files: Record<BatchFile, { id: string; state: AppendState; bytes: number }>;
  /** The notification of its end to the operator's webhook; null until the batch has ended. */
  webhook: { id: string; tries: number; atMs: number; done: boolean } | null;
};

/** Lines that are open in the run as one group, `seq`; those before `nextIndex` are written. */
export type Chunk = { no: number; seq: number; firstIndex: number; count: number; nextIndex: number };

export class BatchStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #tables: Tables<BatchTable>;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#tables = new Tables(storage, MIGRATIONS);
  }

  /** Bytes that the object stores now. */
  get storedBytes(): number {
    return this.#sql.databaseSize;
  }

  /** Makes the tables, unless they exist. */
  create(): void {
    this.#tables.make("meta", "chunk", "tail");
  }

  async destroy(): Promise<void> {
    this.#tables.forget();
    await this.#storage.deleteAll();
  }

  transaction(write: () => void): void {
    this.#storage.transactionSync(write);
  }

  job(): Job | null {
    if (!this.#tables.has("meta")) return null;
    const row = this.#sql.exec<{ value: string }>("SELECT value FROM meta WHERE key = 'job'").toArray()[0];
    return row === undefined ? null : (JSON.parse(row.value) as Job);
  }

  putJob(job: Job): void {
    this.#sql.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('job', ?)", JSON.stringify(job));
  }

  chunks(): Chunk[] {
    const rows = this.#sql.exec<{ body: string }>("SELECT body FROM chunk ORDER BY no").toArray();
    return rows.map(({ body }) => JSON.parse(body) as Chunk);
  }

  putChunk(chunk: Chunk): void {
    this.#sql.exec("INSERT OR REPLACE INTO chunk (no, body) VALUES (?, ?)", chunk.no, JSON.stringify(chunk));
  }

  dropChunk(no: number): void {
    this.#sql.exec("DELETE FROM chunk WHERE no = ?", no);
  }

  /** Stores bytes of a file that begin at `start`, in pieces that fit a row. */
  putTail(file: BatchFile, start: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += BATCH_TAIL_BYTES) {
      const piece = bytes.slice(at, at + BATCH_TAIL_BYTES);
      this.#sql.exec("INSERT INTO tail (file, start, bytes) VALUES (?, ?, ?)", file, start + at, piece.buffer);
    }
  }

  /** The stored bytes of a file, in order. */
  *tail(file: BatchFile): Generator<{ start: number; bytes: Uint8Array }> {
    const query = "SELECT start, bytes FROM tail WHERE file = ? ORDER BY start";
    for (const row of this.#sql.exec<{ start: number; bytes: ArrayBuffer }>(query, file)) {
      yield { start: row.start, bytes: new Uint8Array(row.bytes) };
    }
  }

  /** Deletes the pieces of a file that end at or before `end`: R2 has them. */
  dropTail(file: BatchFile, end: number): void {
    this.#sql.exec("DELETE FROM tail WHERE file = ? AND start + length(bytes) <= ?", file, end);
  }
}
