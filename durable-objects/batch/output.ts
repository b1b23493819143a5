/**
 * The two files of a batch. Lines are rows first, in the transaction that records which lines they are, and become parts
 * in R2 once there are enough of them.
 */
import { AppendedObject } from "../../src/files/r2-append.ts";
import { fileKey } from "../../src/objects/address.ts";
import { BATCH_FILES, type BatchFile, type BatchStore, type Job } from "./store.ts";

const encoder = new TextEncoder();

export class BatchOutput {
  readonly #store: BatchStore;
  readonly #bucket: R2Bucket;
  /** Writers of this instance: the rows of each file are appended to its writer already. */
  #writers = new Map<BatchFile, AppendedObject>();

  constructor(store: BatchStore, bucket: R2Bucket) {
    this.#store = store;
    this.#bucket = bucket;
  }

  /**
   * Writes lines in one transaction with what `alsoWrite` writes. Then uploads what makes up full parts.
   */
  async write(job: Job, lines: Record<BatchFile, string[]>, alsoWrite: () => void): Promise<void> {
    const added = new Map<BatchFile, Uint8Array>();
    for (const file of BATCH_FILES) {
      const bytes = encoder.encode(lines[file].join(""));
      if (bytes.length > 0) added.set(file, bytes);
    }
    // The writers first: a new one reads the rows, which must not hold these bytes yet.
    for (const file of added.keys()) await this.#writer(job, file);
    this.#store.transaction(() => {
      for (const [file, bytes] of added) {
        this.#store.putTail(file, job.files[file].bytes, bytes);
        job.files[file].bytes += bytes.length;
      }
      alsoWrite();
      this.#store.putJob(job);
    });
    for (const [file, bytes] of added) await this.#append(job, file, bytes);
  }

  /** Completes the files and returns their sizes; a file without lines is not created. Safe to repeat. */
  async complete(job: Job): Promise<Record<BatchFile, number>> {
    const sizes: Record<BatchFile, number> = { output: 0, error: 0 };
    for (const file of BATCH_FILES) {
      if (job.files[file].bytes === 0) continue;
      const writer = await this.#writer(job, file);
      sizes[file] = await writer.complete();
    }
    return sizes;
  }

  async #append(job: Job, file: BatchFile, bytes: Uint8Array): Promise<void> {
    const writer = await this.#writer(job, file);
    const state = await writer.append(bytes);
    if (state === null) return;
    job.files[file].state = state;
    this.#store.transaction(() => {
      this.#store.dropTail(file, state.bytes);
      this.#store.putJob(job);
    });
  }

  /** The writer of a file; the rows of the file are appended to a new one, though R2 may have some of them. */
  async #writer(job: Job, file: BatchFile): Promise<AppendedObject> {
    const known = this.#writers.get(file);
    if (known !== undefined) return known;
    const { id, state, bytes } = job.files[file];
    const tail = [...this.#store.tail(file)];
    const key = fileKey(job.runId, id);
    const fromByte = Math.min(state.bytes, tail[0]?.start ?? bytes);
    const writer = new AppendedObject(this.#bucket, { key, contentType: "application/jsonl", state, fromByte });
    this.#writers.set(file, writer);
    for (const piece of tail) await writer.append(piece.bytes);
    return writer;
  }
}
