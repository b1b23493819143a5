/** `/v1/uploads`: a large file in parts, which may come in any order and at once. */
import type { Context } from "hono";
import { fileKey, runFilesOf } from "../../objects/address.ts";
import type { StoredPart } from "../../objects/methods/file-api.ts";
import { requireRun } from "../auth/middleware.ts";
import { expiryOf } from "../../batch/expires-after.ts";
import { fileDocument, type FileRecord } from "../../batch/files.ts";
import { missing, refusal, type ApiRefusal } from "../../batch/refusal.ts";
import { UploadCheck } from "../../batch/upload-check.ts";
import {
  assembly,
  md5Refusal,
  newUpload,
  noUpload,
  partDocument,
  partRefusal,
  parseUploadComplete,
  parseUploadCreate,
  uploadDocument,
  type Upload,
  type UploadCompletion,
} from "../../batch/uploads.ts";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../../errors.ts";
import type { Refused } from "../../objects/methods/types.ts";
import { pageSource } from "../../files/r2-read.ts";
import { stageFile, type StagedFile } from "../../files/r2-upload.ts";
import { chainSources } from "../../files/source.ts";
import { UPLOAD_PART_BYTES_MAX } from "../../limits.ts";
import {
  apiRefusal,
  bucketOf,
  freshId,
  nowS,
  readSmallJson,
  requireOpenRun,
  requireRoom,
  requireRoomFor,
} from "../file-access.ts";
import { stageForm, watched } from "./file-form.ts";
import type { Handlers } from "../handler.ts";

export const uploadHandlers = {
  "POST /v1/uploads": create,
  "POST /v1/uploads/:id/parts": (c) => addPart(c, c.req.param("id")),
  "POST /v1/uploads/:id/complete": (c) => complete(c, c.req.param("id")),
  "POST /v1/uploads/:id/cancel": async (c) => {
    bucketOf(c);
    const id = c.req.param("id");
    const cancelled = await runFilesOf(c.env, requireRun(c)).cancelUpload(id);
    if (cancelled === null) return apiRefusal(noUpload(id));
    return cancelled.ok ? c.json(shown(cancelled.value, null)) : apiRefusal(cancelled.refusal);
  },
} satisfies Partial<Handlers>;

async function create(c: Context<AppEnv>): Promise<Response> {
  bucketOf(c);
  const runId = await requireOpenRun(c);
  const parsed = parseUploadCreate((await readSmallJson(c)).value);
  if (!parsed.ok) return apiRefusal(parsed.refusal);
  // Its file, while its parts are still there: what finds no room is refused before a part of it is sent.
  await requireRoomFor(c, runId, 2 * parsed.value.bytes);
  const upload = newUpload(freshId("upload_"), parsed.value, nowS());
  await runFilesOf(c.env, runId).putUpload(upload);
  return c.json(shown(upload, null));
}

async function addPart(c: Context<AppEnv>, uploadId: string): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = await requireOpenRun(c);
  const shelf = runFilesOf(c.env, runId);
  const known = await shelf.upload(uploadId);
  if (known === null) return apiRefusal(noUpload(uploadId));
  const early = partRefusal(known.upload, { bytes: 0, parts: known.parts.length, nowS: nowS() });
  if (early !== null) return apiRefusal(early);
  // Its file has as many bytes, while the part is still there.
  await requireRoom(c, runId, 2);
  const id = freshId("part_");
  const key = fileKey(runId, id);
  const plan = { name: "data", key, bytesMax: UPLOAD_PART_BYTES_MAX, see: () => undefined };
  const { file } = await stageForm(c.req.raw, bucket, plan);
  if (file === null) return apiRefusal(refusal(missing("data")));
  await file.commit();
  const part: StoredPart = { id, uploadId, bytes: file.bytes, createdAtS: nowS() };
  // The upload may have been completed or cancelled while the part was on its way.
  const late: ApiRefusal | Refused | null = await runFilesOf(c.env, runId).addPart(part);
  if (late === null) return c.json(partDocument(part));
  await bucket.delete(key);
  if ("reason" in late) throw new Refusal(late.reason);
  return apiRefusal(late);
}

async function complete(c: Context<AppEnv>, uploadId: string): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = await requireOpenRun(c);
  const parsed = parseUploadComplete((await readSmallJson(c)).value);
  if (!parsed.ok) return apiRefusal(parsed.refusal);
  const shelf = runFilesOf(c.env, runId);
  const known = await shelf.upload(uploadId);
  if (known === null) return apiRefusal(noUpload(uploadId));
  const { upload, parts } = known;
  const partBytes = new Map(parts.map(({ id, bytes }) => [id, bytes]));
  const assembled = assembly(upload, parsed.value, { partBytes, nowS: nowS() });
  if (!assembled.ok) return apiRefusal(assembled.refusal);
  if (assembled.value === null) return c.json(shown(upload, await fileOf(c, runId, upload)));
  const id = freshId("file-");
  const ordered = assembled.value.map((partId) => ({ key: fileKey(runId, partId), bytes: partBytes.get(partId) ?? 0 }));
  const joined = await join(bucket, { upload, completion: parsed.value, key: fileKey(runId, id), parts: ordered });
  if (!joined.ok) return apiRefusal(joined.refusal);
  await joined.staged.commit();
  const { purpose, filename, expiresAfterS } = upload.request;
  const createdAtS = nowS();
  const expiresAtS = expiryOf({ purpose, createdAtS }, expiresAfterS);
  const file: FileRecord = { id, bytes: joined.staged.bytes, createdAtS, expiresAtS, filename, purpose };
  const completed = await runFilesOf(c.env, runId).completeUpload(uploadId, file);
  if (!completed.ok) return apiRefusal(completed.refusal);
  return c.json(shown(completed.value, await fileOf(c, runId, completed.value)));
}

/** Reads the parts in order into the file that they make, which is not committed yet. */
async function join(
  bucket: R2Bucket,
  plan: { upload: Upload; completion: UploadCompletion; key: string; parts: readonly { key: string; bytes: number }[] },
): Promise<{ ok: true; staged: StagedFile } | { ok: false; refusal: ApiRefusal }> {
  const { upload, completion, key, parts } = plan;
  const { bytes: bytesMax, purpose } = upload.request;
  const check = new UploadCheck();
  const openings = parts.map(
    ({ key: part, bytes }) =>
      () =>
        pageSource(bucket, { key: part, sizeBytes: bytes, offset: 0 }),
  );
  const source = watched(chainSources(openings), (bytes) => {
    if (purpose === "batch") check.push(bytes);
  });
  const staged = await stageFile(bucket, source, { key, bytesMax, withMd5: completion.md5 !== null });
  if (!staged.ok) throw new Refusal(staged.reason);
  const wrong = md5Refusal(completion, staged.md5 ?? "") ?? (purpose === "batch" ? check.finish() : null);
  if (wrong === null) return { ok: true, staged };
  await staged.discard();
  return { ok: false, refusal: wrong };
}

/** What a completed upload became; null where that was deleted since. */
async function fileOf(c: Context<AppEnv>, runId: string, { fileId }: Upload): Promise<FileRecord | null> {
  return fileId === null ? null : await runFilesOf(c.env, runId).file(fileId);
}

function shown(upload: Upload, file: FileRecord | null) {
  return uploadDocument(upload, { file: file === null ? null : fileDocument(file), nowS: nowS() });
}
