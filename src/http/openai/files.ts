/** `/v1/files`: upload a file, list those of the run, look at one, read its content, delete it. */
import type { Context } from "hono";
import { fileKey, runFilesOf } from "../../objects/address.ts";
import { requireRun } from "../auth/middleware.ts";
import { expiryOf } from "../../batch/expires-after.ts";
import {
  deletedDocument,
  fileDocument,
  fileName,
  noFile,
  parseFileForm,
  sizeRefusal,
  type FileForm,
  type FileRecord,
} from "../../batch/files.ts";
import { listPage, noSuchCursor, parseFilesQuery } from "../../batch/pages.ts";
import { missing, refusal, refused, type Checked } from "../../batch/refusal.ts";
import { UploadCheck } from "../../batch/upload-check.ts";
import type { AppEnv } from "../context.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { answerContent } from "../../files/r2-read.ts";
import { FILE_BYTES_MAX } from "../../limits.ts";
import { apiRefusal, bucketOf, freshId, nowS, requireOpenRun, requireRoom } from "../file-access.ts";
import { stageForm, type StagedForm } from "./file-form.ts";
import type { Handlers } from "../handler.ts";

export const fileHandlers = {
  "POST /v1/files": create,
  "GET /v1/files": list,
  "GET /v1/files/:id": async (c) => {
    bucketOf(c);
    const id = c.req.param("id");
    const file = await runFilesOf(c.env, requireRun(c)).file(id);
    return file === null ? apiRefusal(noFile(id)) : c.json(fileDocument(file));
  },
  "DELETE /v1/files/:id": async (c) => {
    bucketOf(c);
    const id = c.req.param("id");
    const isDeleted = await runFilesOf(c.env, requireRun(c)).deleteFile(id);
    return isDeleted ? c.json(deletedDocument(id)) : apiRefusal(noFile(id));
  },
  "GET /v1/files/:id/content": (c) => content(c, c.req.param("id")),
} satisfies Partial<Handlers>;

async function create(c: Context<AppEnv>): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = await requireOpenRun(c);
  await requireRoom(c, runId);
  const id = freshId("file-");
  const key = fileKey(runId, id);
  const check = new UploadCheck();
  const see = (bytes: Uint8Array) => check.push(bytes);
  const { fields, file: staged } = await stageForm(c.req.raw, bucket, {
    name: "file",
    key,
    bytesMax: FILE_BYTES_MAX,
    see,
  });
  const form = formOf({ fields, file: staged }, check);
  if (!form.ok || staged === null) {
    await staged?.discard();
    return apiRefusal(form.ok ? refusal(missing("file")) : form.refusal);
  }
  await staged.commit();
  const { purpose, expiresAfterS } = form.value;
  const createdAtS = nowS();
  const expiresAtS = expiryOf({ purpose, createdAtS }, expiresAfterS);
  const filename = fileName(staged.filename ?? undefined);
  const file: FileRecord = { id, bytes: staged.bytes, createdAtS, expiresAtS, filename, purpose };
  const full: Reason | null = await runFilesOf(c.env, runId).addFile(file);
  if (full !== null) {
    await bucket.delete(key);
    throw new Refusal(full);
  }
  return c.json(fileDocument(file));
}

/** The form's fields about its file, or why the file does not fit them. */
function formOf({ fields, file }: StagedForm, check: UploadCheck): Checked<FileForm> {
  if (file === null) return refused(missing("file"));
  const form = parseFileForm(fields);
  if (!form.ok) return form;
  const { purpose } = form.value;
  const reason = sizeRefusal(file.bytes, purpose) ?? (purpose === "batch" ? check.finish() : null);
  return reason === null ? form : { ok: false, refusal: reason };
}

async function list(c: Context<AppEnv>): Promise<Response> {
  bucketOf(c);
  const query = parseFilesQuery(c.req.query());
  if (!query.ok) return apiRefusal(query.refusal);
  const files = await runFilesOf(c.env, requireRun(c)).files(query.value);
  if (files === null) return apiRefusal(refusal(noSuchCursor(query.value.after ?? "")));
  return c.json(listPage(files.map(fileDocument), query.value.limit));
}

async function content(c: Context<AppEnv>, id: string): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = requireRun(c);
  const file = await runFilesOf(c.env, runId).file(id);
  if (file === null) return apiRefusal(noFile(id));
  const { method } = c.req;
  const [range, ifRange] = [c.req.header("range") ?? null, c.req.header("if-range") ?? null];
  const answer = await answerContent(bucket, fileKey(runId, id), { method, range, ifRange });
  if (answer.kind === "missing") return apiRefusal(noFile(id));
  if (answer.kind === "unsatisfiable") {
    const message = `The range is outside the file, which has ${file.bytes} bytes.`;
    const { error } = refusal({ message, param: "range", code: "range_not_satisfiable" });
    return Response.json({ error }, { status: 416, headers: { ...answer.headers, "x-should-retry": "false" } });
  }
  const disposition = `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`;
  const headers = { ...answer.headers, "content-disposition": disposition };
  return new Response(answer.body, { status: answer.status, headers });
}
