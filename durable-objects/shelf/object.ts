/**
 * What a run has in store: its files, its uploads, and the list of its batches. Contents lie in R2 under keys that begin
 * with the run's id; what stands here decides whether they exist.
 *
 *   file    one row per file, in the order in which they were made
 *   upload  one row per upload, and one per `part` of it
 *   batch   one row per batch: its id, in the order in which they were made
 */
import { DurableObject } from "cloudflare:workers";
import { isExpired, type FileRecord } from "../../src/batch/files.ts";
import type { FilesQuery, PageQuery } from "../../src/batch/pages.ts";
import { batchOf, fileKey, type Objects } from "../address.ts";
import { ShelfStore, type StoredPart } from "./store.ts";
import type { Upload } from "../../src/batch/uploads.ts";

export class ShelfObject extends DurableObject<Objects> {
  readonly #store: ShelfStore;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#store = new ShelfStore(ctx.storage);
  }

  /** Adds a file whose content is in place. Adding it again changes nothing. */
  async addFile(file: FileRecord): Promise<void> {
    this.#store.putFile(file);
    await this.#armAlarm();
  }

  /** A file; null where there is none, or it has expired. */
  file(id: string): FileRecord | null {
    const file = this.#store.file(id);
    return file === null || isExpired(file, nowS()) ? null : file;
  }

  /** Files behind the cursor, one more than asked for if there are as many; null for a cursor that names none. */
  files(query: FilesQuery): FileRecord[] | null {
    return this.#store.files(query, nowS());
  }

  /** Deletes a file and its content. False where there is none. */
  async deleteFile(id: string): Promise<boolean> {
    if (this.file(id) === null) return false;
    await this.#drop([id]);
    return true;
  }

  /** Writes an upload: a new one, or how it stands now. */
  putUpload(upload: Upload): void {
    this.#store.putUpload(upload);
  }

  /** An upload with its parts, in the order in which they were added; null for no such upload. */
  upload(id: string): { upload: Upload; parts: StoredPart[] } | null {
    const upload = this.#store.upload(id);
    return upload === null ? null : { upload, parts: this.#store.parts(id) };
  }

  /** Adds a part whose bytes are in place. */
  addPart(part: StoredPart): void {
    this.#store.putPart(part);
  }

  /** Forgets an upload's parts: they have become a file, or nothing. */
  dropParts(uploadId: string): void {
    this.#store.dropParts(uploadId);
  }

  /** Puts a batch on the list. */
  addBatch(id: string): void {
    this.#store.putBatch(id);
  }

  /** Ids of batches behind the cursor, newest first, one more than asked for; null for a cursor that names none. */
  batches(query: PageQuery): string[] | null {
    return this.#store.batches(query);
  }

  /** Leaves nothing: the run is deleted. */
  async destroy(runId: string): Promise<void> {
    if (this.#store.isEmpty) return;
    await Promise.allSettled(this.#store.batchIds().map((id) => batchOf(this.env, runId, id).destroy()));
    if (this.env.FILES !== undefined) await emptyPrefix(this.env.FILES, fileKey(runId, ""));
    await this.#store.destroy();
  }

  override async alarm(): Promise<void> {
    await this.#drop(this.#store.expired(nowS()));
    await this.#armAlarm();
  }

  /** The content first: should that fail, the row still says what is left to do. */
  async #drop(ids: readonly string[]): Promise<void> {
    const runId = this.ctx.id.name;
    const { FILES: bucket } = this.env;
    if (runId === undefined || bucket === undefined)
      throw new Error("files can only be dropped of a named run, from R2");
    if (ids.length > 0) await bucket.delete(ids.map((id) => fileKey(runId, id)));
    for (const id of ids) this.#store.dropFile(id);
  }

  async #armAlarm(): Promise<void> {
    const expiresAtS = this.#store.nextExpiryS();
    if (expiresAtS !== null) await this.ctx.storage.setAlarm(expiresAtS * 1_000);
  }
}

/** Deletes every object whose key begins so. */
async function emptyPrefix(bucket: R2Bucket, prefix: string): Promise<void> {
  for (let cursor: string | null = null; ;) {
    const listed: R2Objects = await bucket.list(cursor === null ? { prefix } : { prefix, cursor });
    if (listed.objects.length > 0) await bucket.delete(listed.objects.map(({ key }) => key));
    if (!listed.truncated) return;
    cursor = listed.cursor;
  }
}

function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}
