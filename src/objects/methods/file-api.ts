/** The methods of a run's file object: its files, its uploads and the list of its batches. */
import type { FileRecord } from "../../batch/files.ts";
import type { BatchesQuery, FilesQuery } from "../../batch/pages.ts";
import type { ApiRefusal, Checked } from "../../batch/refusal.ts";
import type { Upload } from "../../batch/uploads.ts";
import type { ContextRecord, IndexedContext } from "../../contexts/types.ts";
import type { ContextsQuery } from "../../contract/contexts/contexts.ts";
import type { Reason } from "../../errors.ts";
import type { Refused } from "./types.ts";

/** A part of an upload; its bytes are in R2 under its id. */
export type StoredPart = { id: string; uploadId: string; bytes: number; createdAtS: number };

export type ContextAdded = { ok: true; record: ContextRecord; isNew: boolean };

export interface FileApi extends Rpc.DurableObjectBranded {
  /** Adds a file whose content is in R2. Safe to repeat. Null, or why there is no room for it: then the caller deletes the content. */
  addFile(file: FileRecord): Promise<Reason | null>;

  /** A file; null if there is none, or it has expired. */
  file(id: string): FileRecord | null;

  /** Files behind the cursor, one more than `limit` if there are as many; null for a cursor that names no file. */
  files(query: FilesQuery): FileRecord[] | null;

  /** Deletes a file: it is gone at once, its content once no batch reads it. False if there is no such file. */
  deleteFile(id: string): Promise<boolean>;

  /** Adds an upload. */
  putUpload(upload: Upload): Promise<void>;

  /** An upload with its parts, in the order in which they were added; null if there is no such upload. */
  upload(id: string): { upload: Upload; parts: StoredPart[] } | null;

  /** Adds a part whose bytes are in R2; or why it is refused: then the caller deletes the bytes. */
  addPart(part: StoredPart): Promise<ApiRefusal | Refused | null>;

  /**
   * Makes an upload a file whose content is in R2: the file exists from now on, and the parts expire. If another
   * completion was faster, its file is kept and this one's content is deleted.
   */
  completeUpload(id: string, file: FileRecord): Promise<Checked<Upload>>;

  /** Cancels an upload and deletes its parts; null if there is no such upload. */
  cancelUpload(id: string): Promise<Checked<Upload> | null>;

  /** Adds a batch to the list, and keeps the content of its input for as long as it may read that. */
  addBatch(id: string, inputFileId: string): void;

  /** A batch has ended: it reads its input no more. */
  batchEnded(id: string): Promise<void>;

  /** A batch stores so many bytes that are no file: rows, and parts of the files that it writes. */
  batchStored(id: string, bytes: number): Promise<void>;

  /** Ids of batches behind the cursor, newest first, one more than `limit`; null for a cursor that names no batch. */
  batches(query: BatchesQuery): string[] | null;

  /** Takes a batch that was deleted off the list. */
  dropBatch(id: string): Promise<void>;

  /** Objects of contexts may be in R2 from now on: without this, the deletion of a run that has nothing here looks for none. */
  expectContextObject(): void;

  /**
   * Adds a context; `text` null = its object in R2 has the text. Its record, or that of the same text, which the run had: then
   * the caller deletes its object. Or why there is no room for it.
   */
  addContext(context: IndexedContext, text: Uint8Array | null): Promise<ContextAdded | Refused>;

  /** A context; null if there is none. */
  context(id: string): IndexedContext | null;

  /** Contexts behind the cursor, newest first, one more than `limit`; null for a cursor that names no context. */
  contexts(query: ContextsQuery): ContextRecord[] | null;

  /** Bytes of the text of a context that is not in R2; null if there is no such context, or R2 has it. */
  contextText(id: string, from: number, to: number): Uint8Array | null;

  /** Deletes a context at once. False if there is no such context. */
  deleteContext(id: string): Promise<boolean>;

  /** Deletes everything, as the run is deleted. */
  destroy(runId: string): Promise<void>;
}
