/**
 * What a run has in store: its files, its uploads, and the list of its batches. Contents lie in R2 under keys that begin
 * with the run's id; what stands here decides whether they exist. The alarm drops the contents of what has expired.
 */
import { DurableObject } from "cloudflare:workers";
import { isExpired, type FileRecord } from "../../src/batch/files.ts";
import type { FilesQuery, PageQuery } from "../../src/batch/pages.ts";
import type { ApiRefusal, Checked } from "../../src/batch/refusal.ts";
import {
  cancelUpload,
  completeUpload,
  noUpload,
  partRefusal,
  uploadRefusal,
  type Upload,
} from "../../src/batch/uploads.ts";
import { BATCH_WINDOW_S, FILES_DROPPED_AT_ONCE } from "../../src/limits.ts";
import { batchOf, fileKey, type Objects } from "../address.ts";
import { ShelfStore, type StoredPart } from "./store.ts";

/** How long a batch may need its input, should its end never be told here, seconds: its window and an hour to end in. */
const INPUT_NEEDED_S = BATCH_WINDOW_S + 3_600;

/** How long the parts of a completed upload stay, seconds: another completion may be reading them. */
const PARTS_READ_S = 600;

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

  /** Deletes a file: it is gone at once, its content once no batch reads it. False where there is none. */
  async deleteFile(id: string): Promise<boolean> {
    const file = this.file(id);
    if (file === null) return false;
    this.#store.replaceFile({ ...file, expiresAtS: 0 });
    await this.#sweep();
    return true;
  }

  /** Puts a new upload on the shelf. */
  async putUpload(upload: Upload): Promise<void> {
    this.#store.putUpload(upload);
    await this.#armAlarm();
  }

  /** An upload with its parts, in the order in which they were added; null for no such upload. */
  upload(id: string): { upload: Upload; parts: StoredPart[] } | null {
    const upload = this.#store.upload(id);
    return upload === null ? null : { upload, parts: this.#store.parts(id) };
  }

  /** Adds a part whose bytes are in place; or why it may not be, and then they are the caller's to delete. */
  addPart(part: StoredPart): ApiRefusal | null {
    const { uploadId, bytes } = part;
    const upload = this.#store.upload(uploadId);
    if (upload === null) return noUpload(uploadId);
    const refused = partRefusal(upload, { bytes, parts: this.#store.partCount(uploadId), nowS: nowS() });
    if (refused === null) this.#store.putPart(part);
    return refused;
  }

  /**
   * The upload has become a file whose content is in place: the file exists from now on, and the parts go. Where another
   * completion was faster, its file stands and this one's content is dropped.
   */
  async completeUpload(id: string, file: FileRecord): Promise<Checked<Upload>> {
    const upload = this.#store.upload(id);
    const isPending = upload?.status === "pending";
    this.#store.transaction(() => {
      // What is not to be seen goes the way of all that has expired.
      this.#store.putFile(isPending ? file : { ...file, expiresAtS: 0 });
      if (upload !== null && isPending)
        this.#store.putUpload(completeUpload(upload, file.id), { dropPartsS: nowS() + PARTS_READ_S });
    });
    await this.#sweep();
    const now = this.#store.upload(id);
    if (now === null) return { ok: false, refusal: noUpload(id) };
    return now.status === "completed" ? { ok: true, value: now } : { ok: false, refusal: uploadRefusal(now, nowS()) };
  }

  /** Gives an upload up, with its parts; null for no such upload. */
  async cancelUpload(id: string): Promise<Checked<Upload> | null> {
    const upload = this.#store.upload(id);
    if (upload === null) return null;
    const cancelled = cancelUpload(upload, nowS());
    if (!cancelled.ok || upload.status === "cancelled") return cancelled;
    this.#store.putUpload(cancelled.value, { dropPartsS: 0 });
    await this.#sweep();
    return cancelled;
  }

  /** Puts a batch on the list, and keeps the content of its input for as long as it may read that. */
  addBatch(id: string, inputFileId: string): void {
    this.#store.putBatch(id, { inputFileId, neededUntilS: nowS() + INPUT_NEEDED_S });
  }

  /** A batch has ended: it reads its input no more. */
  async batchEnded(id: string): Promise<void> {
    this.#store.endBatch(id);
    await this.#sweep();
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
    await this.#sweep();
  }

  /** Drops what is due; the contents first: should that fail, the rows still say what is left to do. */
  async #sweep(): Promise<void> {
    const files = this.#store.dueFiles(nowS());
    await this.#deleteContents(files);
    for (const id of files) this.#store.dropFile(id);
    for (const uploadId of this.#store.dueUploads(nowS())) {
      await this.#deleteContents(this.#store.parts(uploadId).map(({ id }) => id));
      this.#store.dropParts(uploadId);
    }
    await this.#armAlarm();
  }

  async #deleteContents(ids: readonly string[]): Promise<void> {
    const runId = this.ctx.id.name;
    const { FILES: bucket } = this.env;
    if (runId === undefined || bucket === undefined) {
      throw new Error("files can only be dropped of a named run, from R2");
    }
    for (let at = 0; at < ids.length; at += FILES_DROPPED_AT_ONCE) {
      await bucket.delete(ids.slice(at, at + FILES_DROPPED_AT_ONCE).map((id) => fileKey(runId, id)));
    }
  }

  async #armAlarm(): Promise<void> {
    const dueS = this.#store.nextDueS(nowS());
    // What is due already may be another's to drop, who is at it now: the alarm sees to it that it is dropped.
    if (dueS !== null) await this.ctx.storage.setAlarm(Math.max(dueS * 1_000, Date.now()));
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
