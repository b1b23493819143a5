/**
 * A run's files: its files, its uploads, its contexts, and the list of its batches. Contents are in R2 under keys that begin with the
 * run's id; the rows here decide whether they exist. The alarm deletes the contents of what has expired. Its methods are
 * described in src/objects/methods/file-api.ts.
 */
import { DurableObject } from "cloudflare:workers";
import { isExpired, type FileRecord } from "../../src/batch/files.ts";
import type { BatchesQuery, FilesQuery } from "../../src/batch/pages.ts";
import type { ApiRefusal, Checked } from "../../src/batch/refusal.ts";
import {
  cancelUpload,
  completeUpload,
  noUpload,
  partRefusal,
  uploadRefusal,
  type Upload,
} from "../../src/batch/uploads.ts";
import type { ContextRecord, IndexedContext } from "../../src/contexts/types.ts";
import type { ContextsQuery } from "../../src/contract/contexts/contexts.ts";
import { emptyPrefix } from "../../src/files/r2-delete.ts";
import { BATCH_WINDOW_S, FILES_DROPPED_AT_ONCE } from "../../src/limits.ts";
import type { ContextAdded, FileApi, StoredPart } from "../../src/objects/methods/file-api.ts";
import type { Refused } from "../../src/objects/methods/types.ts";
import type { Reason } from "../../src/errors.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import { batchOf, contextKey, fileKey, type Objects } from "../../src/objects/address.ts";
import { alarmMs } from "../alarm-time.ts";
import { ContextStore } from "./contexts.ts";
import { FilesSpace } from "./space.ts";
import { FileStore } from "./store.ts";
import { Tables } from "../schema-version.ts";
import { MIGRATIONS } from "./migrations.ts";

/** How long a batch may need its input if this object is never notified of its end, seconds: its window and an hour. */
const INPUT_NEEDED_S = BATCH_WINDOW_S + 3_600;

/** How long the parts of a completed upload stay, seconds: another completion may be reading them. */
const PARTS_READ_S = 600;

/** Its name is that of the class in `wrangler.toml`: objects in use are stored under it, and renaming it needs a migration there. */
export class ShelfObject extends DurableObject<Objects> implements FileApi {
  readonly #store: FileStore;
  readonly #contexts: ContextStore;
  readonly #space: FilesSpace;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    const tables = new Tables(ctx.storage, MIGRATIONS);
    this.#store = new FileStore(ctx.storage, tables);
    this.#contexts = new ContextStore(ctx.storage, tables);
    const storedBytes = (): number =>
      ctx.storage.sql.databaseSize + this.#store.contentBytes + this.#store.batchBytes + this.#contexts.contentBytes;
    const report = (bytes: number, isStored: boolean): Promise<Reason | null> =>
      new RunCaller(env, this.#runId())
        .callWithRetry<Reason | null>((run) => run.filesStored(bytes, isStored))
        .catch((error: unknown) => {
          // A run that a deploy has not replaced yet keeps no account.
          if (objectFailure(error) === "outdated") return null;
          throw error;
        });
    this.#space = new FilesSpace({ storedBytes, report });
  }

  async addFile(file: FileRecord): Promise<Reason | null> {
    // What a batch writes was accepted with its input: it counts, and is not refused.
    const isWritten = file.purpose === "batch_output";
    const full = isWritten ? null : await this.#space.take(file.bytes);
    if (full !== null) return full;
    this.#store.putFile(file);
    if (isWritten) await this.#space.report();
    else this.#space.stored(file.bytes);
    await this.#armAlarm();
    return null;
  }

  file(id: string): FileRecord | null {
    const file = this.#store.file(id);
    return file === null || isExpired(file, nowS()) ? null : file;
  }

  files(query: FilesQuery): FileRecord[] | null {
    return this.#store.files(query, nowS());
  }

  async deleteFile(id: string): Promise<boolean> {
    const file = this.file(id);
    if (file === null) return false;
    this.#store.replaceFile({ ...file, expiresAtS: 0 });
    await this.#sweep();
    return true;
  }

  async putUpload(upload: Upload): Promise<void> {
    this.#store.putUpload(upload);
    await this.#armAlarm();
  }

  upload(id: string): { upload: Upload; parts: StoredPart[] } | null {
    const upload = this.#store.upload(id);
    return upload === null ? null : { upload, parts: this.#store.parts(id) };
  }

  async addPart(part: StoredPart): Promise<ApiRefusal | Refused | null> {
    const { uploadId, bytes } = part;
    // Its file has as many bytes, while the part is still there.
    const full = await this.#space.take(2 * bytes);
    if (full !== null) return { ok: false, reason: full };
    const upload = this.#store.upload(uploadId);
    const parts = this.#store.partCount(uploadId);
    const refused = upload === null ? noUpload(uploadId) : partRefusal(upload, { bytes, parts, nowS: nowS() });
    if (refused === null) this.#store.putPart(part);
    this.#space.stored(2 * bytes);
    return refused;
  }

  async completeUpload(id: string, file: FileRecord): Promise<Checked<Upload>> {
    const upload = this.#store.upload(id);
    const isPending = upload?.status === "pending";
    this.#store.transaction(() => {
      // The losing file is stored as already expired, so that the sweep deletes its content.
      this.#store.putFile(isPending ? file : { ...file, expiresAtS: 0 });
      if (upload !== null && isPending)
        this.#store.putUpload(completeUpload(upload, file.id), { dropPartsS: nowS() + PARTS_READ_S });
    });
    await this.#sweep();
    const now = this.#store.upload(id);
    if (now === null) return { ok: false, refusal: noUpload(id) };
    return now.status === "completed" ? { ok: true, value: now } : { ok: false, refusal: uploadRefusal(now, nowS()) };
  }

  async cancelUpload(id: string): Promise<Checked<Upload> | null> {
    const upload = this.#store.upload(id);
    if (upload === null) return null;
    const cancelled = cancelUpload(upload, nowS());
    if (!cancelled.ok || upload.status === "cancelled") return cancelled;
    this.#store.putUpload(cancelled.value, { dropPartsS: 0 });
    await this.#sweep();
    return cancelled;
  }

  addBatch(id: string, inputFileId: string): void {
    this.#store.putBatch(id, { inputFileId, neededUntilS: nowS() + INPUT_NEEDED_S });
  }

  async batchEnded(id: string): Promise<void> {
    this.#store.endBatch(id);
    await this.#sweep();
  }

  async batchStored(id: string, bytes: number): Promise<void> {
    this.#store.putBatchBytes(id, bytes);
    await this.#space.report();
  }

  batches(query: BatchesQuery): string[] | null {
    return this.#store.batches(query);
  }

  async dropBatch(id: string): Promise<void> {
    this.#store.dropBatch(id);
    await this.#sweep();
  }

  expectContextObject(): void {
    this.#contexts.create();
  }

  async addContext(context: IndexedContext, text: Uint8Array | null): Promise<ContextAdded | Refused> {
    const { id, bytes } = context.record;
    const known = this.#contexts.record(id);
    if (known !== null) return { ok: true, record: known, isNew: false };
    const full = this.#contexts.roomReason(bytes) ?? (await this.#space.take(bytes));
    if (full !== null) return { ok: false, reason: full };
    // The same text may have come meanwhile.
    const meanwhile = this.#contexts.record(id);
    if (meanwhile === null) this.#contexts.put(context, text);
    this.#space.stored(bytes);
    if (meanwhile !== null) return { ok: true, record: meanwhile, isNew: false };
    return { ok: true, record: context.record, isNew: true };
  }

  context(id: string): IndexedContext | null {
    return this.#contexts.context(id);
  }

  contexts(query: ContextsQuery): ContextRecord[] | null {
    return this.#contexts.list(query);
  }

  contextText(id: string, from: number, to: number): Uint8Array | null {
    return this.#contexts.text(id, from, to);
  }

  async deleteContext(id: string): Promise<boolean> {
    const record = this.#contexts.record(id);
    if (record === null) return false;
    // The row first: the same text may be stored once more while its object is deleted. If that fails, the run's end does it.
    this.#contexts.drop(record);
    const { FILES: bucket } = this.env;
    if (record.object !== null && bucket !== undefined) await bucket.delete(contextKey(this.#runId(), record.object));
    await this.#space.report();
    return true;
  }

  async destroy(runId: string): Promise<void> {
    if (this.#store.isEmpty && this.#contexts.isEmpty) return;
    await Promise.allSettled(this.#store.batchIds().map((id) => batchOf(this.env, runId, id).destroy()));
    if (this.env.FILES !== undefined) await emptyPrefix(this.env.FILES, fileKey(runId, ""));
    this.#contexts.forget();
    await this.#store.destroy();
  }

  override async alarm(): Promise<void> {
    await this.#sweep();
  }

  /** Deletes what is due, contents first: if that fails, the rows still list what is left to delete. */
  async #sweep(): Promise<void> {
    const files = this.#store.dueFiles(nowS());
    await this.#deleteContents(files);
    for (const id of files) this.#store.dropFile(id);
    for (const uploadId of this.#store.dueUploads(nowS())) {
      await this.#deleteContents(this.#store.parts(uploadId).map(({ id }) => id));
      this.#store.dropParts(uploadId);
    }
    await this.#space.report();
    await this.#armAlarm();
  }

  async #deleteContents(ids: readonly string[]): Promise<void> {
    const runId = this.#runId();
    const { FILES: bucket } = this.env;
    if (bucket === undefined) throw new Error("contents of files cannot be deleted: R2 is not bound as FILES");
    for (let at = 0; at < ids.length; at += FILES_DROPPED_AT_ONCE) {
      await bucket.delete(ids.slice(at, at + FILES_DROPPED_AT_ONCE).map((id) => fileKey(runId, id)));
    }
  }

  #runId(): string {
    const { name } = this.ctx.id;
    if (name === undefined) throw new Error("the file object of a run has the run's id as its name");
    return name;
  }

  async #armAlarm(): Promise<void> {
    const dueS = this.#store.nextDueS(nowS());
    // A concurrent sweep may be deleting what is due already; if it fails, the alarm deletes it.
    if (dueS !== null) await this.ctx.storage.setAlarm(alarmMs(dueS * 1_000, Date.now()));
  }
}

function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}
