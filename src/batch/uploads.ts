/**
 * Uploads: a file in parts that may arrive in any order and concurrently; completing the upload names their order. A
 * repeated request to complete or cancel gets the same answer, because clients repeat it if the first answer is lost.
 */
import * as z from "zod";
import {
  NAME_CHARS_MAX,
  UPLOAD_BYTES_MAX,
  UPLOAD_EXPIRES_S,
  UPLOAD_PART_BYTES_MAX,
  UPLOAD_PARTS_MAX,
} from "../limits.ts";
import { expiresAfter } from "./expires-after.ts";
import { FILE_PURPOSES, fileName, sizeRefusal, type FileDocument, type UploadPurpose } from "./files.ts";
import { refusal, refused, schemaFault, type ApiRefusal, type Checked } from "./refusal.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The file that an upload will be, as requested at its creation. */
export type UploadRequest = {
  filename: string;
  purpose: UploadPurpose;
  bytes: number;
  mimeType: string;
  /** Life of the file, from the upload's completion, seconds; null = the default of its purpose. */
  expiresAfterS: number | null;
};

/** The record of an upload, without its parts. Expiry is not stored as a status: it follows from the time. */
export type Upload = {
  id: string;
  request: UploadRequest;
  createdAtS: number;
  status: "pending" | "completed" | "cancelled";
  /** The file that it was completed to. */
  fileId: string | null;
};

/** The request for an upload as documented. */
export const uploadCreateBody = atFirstUse(() =>
  z.strictObject({
    filename: z.string(),
    purpose: z.enum(FILE_PURPOSES),
    bytes: z.int().min(1).max(UPLOAD_BYTES_MAX),
    mime_type: z.string().max(NAME_CHARS_MAX),
    expires_after: expiresAfter().nullish(),
  }),
);

/** A parsed JSON body as a request for an upload. */
export function parseUploadCreate(value: unknown): Checked<UploadRequest> {
  const read = uploadCreateBody().safeParse(value);
  if (!read.success) return refused(schemaFault(read.error, value));
  const { filename, purpose, bytes, mime_type, expires_after } = read.data;
  const tooLarge = purpose === "batch" ? sizeRefusal(bytes, purpose) : null;
  if (tooLarge !== null) return { ok: false, refusal: tooLarge };
  return {
    ok: true,
    value: {
      filename: fileName(filename),
      purpose,
      bytes,
      mimeType: mime_type,
      expiresAfterS: expires_after?.seconds ?? null,
    },
  };
}

/** A new upload. */
export function newUpload(id: string, request: UploadRequest, nowS: number): Upload {
  return { id, request, createdAtS: nowS, status: "pending", fileId: null };
}

export type UploadStatus = Upload["status"] | "expired";

/** The status of an upload at a time. */
export function uploadStatus({ status, createdAtS }: Upload, nowS: number): UploadStatus {
  return status === "pending" && nowS >= createdAtS + UPLOAD_EXPIRES_S ? "expired" : status;
}

/** The document of an upload; `file` = null before it is completed, and after its file was deleted. */
export function uploadDocument(upload: Upload, { file, nowS }: { file: FileDocument | null; nowS: number }) {
  const { id, request, createdAtS } = upload;
  return {
    id,
    object: "upload" as const,
    bytes: request.bytes,
    created_at: createdAtS,
    expires_at: createdAtS + UPLOAD_EXPIRES_S,
    filename: request.filename,
    purpose: request.purpose,
    status: uploadStatus(upload, nowS),
    file,
  };
}

/** The document of a part. */
export function partDocument(part: { id: string; uploadId: string; createdAtS: number }) {
  return { id: part.id, object: "upload.part" as const, created_at: part.createdAtS, upload_id: part.uploadId };
}

/** The upload does not exist, or belongs to another run. */
export function noUpload(id: string): ApiRefusal {
  return refusal({ message: `No such Upload object: ${id}`, param: "id", code: null }, 404);
}

/** Why an upload cannot take another part of that size; null if it can. */
export function partRefusal(
  upload: Upload,
  { bytes, parts, nowS }: { bytes: number; parts: number; nowS: number },
): ApiRefusal | null {
  const status = uploadStatus(upload, nowS);
  if (status !== "pending") return badRequest(`Cannot add a part to an upload with status '${status}'.`, null);
  if (bytes > UPLOAD_PART_BYTES_MAX) {
    return badRequest(`Invalid 'data': a part has at most ${UPLOAD_PART_BYTES_MAX} bytes.`, "data");
  }
  return parts >= UPLOAD_PARTS_MAX ? badRequest(`An upload has at most ${UPLOAD_PARTS_MAX} parts.`, null) : null;
}

/** A request to complete; `md5` in lower case, null = not checked. */
export type UploadCompletion = { partIds: readonly string[]; md5: string | null };

/** The request to complete an upload as documented. */
export const uploadCompleteBody = atFirstUse(() =>
  z.strictObject({
    part_ids: z.array(z.string()),
    md5: z.string().nullish(),
  }),
);

/** A parsed JSON body as the completion of an upload. */
export function parseUploadComplete(value: unknown): Checked<UploadCompletion> {
  const read = uploadCompleteBody().safeParse(value);
  if (!read.success) return refused(schemaFault(read.error, value));
  return { ok: true, value: { partIds: read.data.part_ids, md5: read.data.md5?.toLowerCase() ?? null } };
}

/**
 * Checks that the named parts, in that order, make the file; null = the upload was completed before, and its file is
 * stored. `partBytes`: the size of each part that has arrived, by its id.
 */
export function assembly(
  upload: Upload,
  { partIds }: UploadCompletion,
  { partBytes, nowS }: { partBytes: ReadonlyMap<string, number>; nowS: number },
): Checked<readonly string[] | null> {
  const status = uploadStatus(upload, nowS);
  if (status === "completed") return { ok: true, value: null };
  if (status !== "pending") return { ok: false, refusal: uploadRefusal(upload, nowS) };
  if (new Set(partIds).size < partIds.length) {
    return { ok: false, refusal: badRequest("Invalid 'part_ids': a part is named more than once.", "part_ids") };
  }
  let bytes = 0;
  for (const id of partIds) {
    const size = partBytes.get(id);
    if (size === undefined) {
      return { ok: false, refusal: badRequest(`Invalid 'part_ids': this upload has no part '${id}'.`, "part_ids") };
    }
    bytes += size;
  }
  if (bytes !== upload.request.bytes) {
    const message = `The parts have ${bytes} bytes in total; this upload was created with ${upload.request.bytes}.`;
    return { ok: false, refusal: badRequest(message, "part_ids") };
  }
  return { ok: true, value: partIds };
}

/** Why an upload that is no longer pending is not completed. */
export function uploadRefusal(upload: Upload, nowS: number): ApiRefusal {
  return badRequest(`Cannot complete an upload with status '${uploadStatus(upload, nowS)}'.`, null);
}

/** Whether the file has the expected digest; both as hex. */
export function md5Refusal({ md5 }: UploadCompletion, actual: string): ApiRefusal | null {
  if (md5 === null || md5 === actual.toLowerCase()) return null;
  return badRequest(`Invalid 'md5': the parts have the checksum ${actual.toLowerCase()}.`, "md5");
}

/** The upload, completed. */
export function completeUpload(upload: Upload, fileId: string): Upload {
  return { ...upload, status: "completed", fileId };
}

/** The upload, cancelled, or why it cannot be. */
export function cancelUpload(upload: Upload, nowS: number): Checked<Upload> {
  const status = uploadStatus(upload, nowS);
  if (status === "pending" || status === "cancelled") return { ok: true, value: { ...upload, status: "cancelled" } };
  return { ok: false, refusal: badRequest(`Cannot cancel an upload with status '${status}'.`, null) };
}

function badRequest(message: string, param: string | null): ApiRefusal {
  return refusal({ message, param, code: null });
}
