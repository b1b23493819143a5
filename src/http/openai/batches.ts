/** `/v1/batches`: create a batch, look at it, list those of the run, cancel one. */
import type { Context } from "hono";
import { batchOf, newBatchId, runFilesOf } from "../../objects/address.ts";
import { requireRun } from "../auth/middleware.ts";
import { parseBatchCreate } from "../../batch/create.ts";
import { batchDocument, noBatch, type BatchDocument } from "../../batch/document.ts";
import { isMessageBatch } from "../../batch/messages/document.ts";
import type { Batch } from "../../batch/lifecycle.ts";
import { listPage, noSuchCursor, parseBatchesQuery } from "../../batch/pages.ts";
import { refusal } from "../../batch/refusal.ts";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../../errors.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { apiRefusal, bucketOf, readSmallJson, requireOpenRun } from "../file-access.ts";
import { namedOf } from "../native/idempotency.ts";
import type { Handlers } from "../handler.ts";

export const batchApiHandlers = {
  "POST /v1/batches": create,
  "GET /v1/batches": list,
  "GET /v1/batches/:id": async (c) => {
    const id = c.req.param("id");
    const runId = requireRun(c);
    const batch = await batchOf(c.env, runId, id).read(runId);
    return isOfThisApi(batch) ? c.json(batchDocument(batch)) : apiRefusal(noBatch(id));
  },
  "POST /v1/batches/:id/cancel": async (c) => {
    const id = c.req.param("id");
    const runId = requireRun(c);
    const batch = batchOf(c.env, runId, id);
    if (!isOfThisApi(await batch.read(runId))) return apiRefusal(noBatch(id));
    const cancelled = await batch.stop(runId);
    if (cancelled === null) return apiRefusal(noBatch(id));
    return cancelled.ok ? c.json(batchDocument(cancelled.value)) : apiRefusal(cancelled.refusal);
  },
} satisfies Partial<Handlers>;

async function create(c: Context<AppEnv>): Promise<Response> {
  bucketOf(c);
  const { bytes, value } = await readSmallJson(c);
  const parsed = parseBatchCreate(value);
  if (!parsed.ok) return apiRefusal(parsed.refusal);
  const runId = await requireOpenRun(c);
  const named = await namedOf(c, bytes);
  // The same key gives the same id and so the same object, which compares the requests.
  const id = named === null ? newBatchId(c.env) : `batch_${await idOfKey(runId, named.key)}`;
  // Listed first: a batch that is not on the list would run unseen.
  await runFilesOf(c.env, runId).addBatch(id, parsed.value.inputFileId);
  const requestHash = named?.hash ?? "";
  const created = await batchOf(c.env, runId, id).open({ id, runId, request: parsed.value, requestHash });
  if (created === null) throw new Refusal({ reason: "idempotency_conflict" });
  if (created.replayed) c.header("idempotent-replayed", "true");
  return c.json(batchDocument(created.batch));
}

/** A batch of Anthropic's API is none of this one. */
function isOfThisApi(batch: Batch | null): batch is Batch {
  return batch !== null && !isMessageBatch(batch);
}

/** The digits of the id of the batch that is created with this key. */
export async function idOfKey(runId: string, key: string): Promise<string> {
  return (await sha256Hex(new TextEncoder().encode(`${runId} ${key}`))).slice(0, 32);
}

async function list(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const query = parseBatchesQuery(c.req.query());
  if (!query.ok) return apiRefusal(query.refusal);
  const ids = await runFilesOf(c.env, runId).batches({ ...query.value, prefix: "batch_" });
  if (ids === null) return apiRefusal(refusal(noSuchCursor(query.value.after ?? "")));
  const { limit } = query.value;
  const batches = await Promise.all(ids.slice(0, limit).map((id) => batchOf(c.env, runId, id).read(runId)));
  const known: BatchDocument[] = [];
  // A batch that is on the list but was not created: its creation failed, and its client got an error.
  for (const batch of batches) if (isOfThisApi(batch)) known.push(batchDocument(batch));
  return c.json({ ...listPage(known, limit), has_more: ids.length > limit });
}
