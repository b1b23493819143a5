/** Anthropic's Message Batches: create a batch of requests, look at it, list those of the run, read its results, cancel it, delete it. */
import type { Context } from "hono";
import { isFinal, type Batch } from "../batch/lifecycle.ts";
import { MESSAGES_URL } from "../batch/endpoints.ts";
import type { BatchRequest } from "../batch/create.ts";
import { isMessageBatch, messageBatchDocument, type MessageBatchDocument } from "../batch/messages/document.ts";
import { readJsonBytes } from "../contract/body.ts";
import {
  inputLine,
  messageBatchReading,
  parseMessageBatchesQuery,
  type MessageRequest,
} from "../contract/message-batch.ts";
import { Refusal, type Reason } from "../errors.ts";
import { answerContent } from "../files/r2-read.ts";
import { stageFile } from "../files/r2-upload.ts";
import type { ByteSource } from "../files/source.ts";
import { BATCH_FILE_BYTES_MAX, MESSAGE_BATCH_RESULTS_S, NAME_CHARS_MAX } from "../limits.ts";
import { batchOf, fileKey, newBatchId, runFilesOf } from "../objects/address.ts";
import { hasEndpoint } from "../providers/endpoints.ts";
import { inSlices, pause } from "../text/bytes/slices.ts";
import { requireRun } from "./auth/middleware.ts";
import { bodyRoom } from "./body-bound.ts";
import type { AppEnv } from "./context.ts";
import { bucketOf, freshId, nowS, requireOpenRun, requireRoom } from "./file-access.ts";
import type { Handlers } from "./handler.ts";
import { namedOf } from "./native/idempotency.ts";
import { idOfKey } from "./openai/batches.ts";

export const messageBatchHandlers = {
  "POST /v1/messages/batches": create,
  "GET /v1/messages/batches": list,
  "GET /v1/messages/batches/:id": async (c) => {
    const batch = await requireBatch(c, requireRun(c), c.req.param("id"));
    return c.json(shown(c, batch));
  },
  "GET /v1/messages/batches/:id/results": (c) => results(c, c.req.param("id")),
  "POST /v1/messages/batches/:id/cancel": async (c) => {
    const id = c.req.param("id");
    const runId = requireRun(c);
    if (isFinal(await requireBatch(c, runId, id))) throw badRequest(`batch ${id} has ended, so it cannot be canceled`);
    const stopped = await batchOf(c.env, runId, id).stop(runId);
    if (stopped === null) throw notFound(id);
    if (!stopped.ok) throw badRequest(`batch ${id} has ended, so it cannot be canceled`);
    return c.json(shown(c, stopped.value));
  },
  "DELETE /v1/messages/batches/:id": (c) => remove(c, c.req.param("id")),
} satisfies Partial<Handlers>;

async function create(c: Context<AppEnv>): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = await requireOpenRun(c);
  await requireRoom(c, runId);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const read = await inSlices(messageBatchReading(body.value), pause);
  if (!read.ok) throw new Refusal(read.reason);
  const { requests } = read.value;
  const named = await namedOf(c, body.value);
  // The same key gives the same id and so the same object, which compares the requests.
  const id = named === null ? newBatchId(c.env, "msgbatch_") : `msgbatch_${await idOfKey(runId, named.key)}`;
  const input = await storeInput(c, bucket, { runId, id, requests });
  const request: BatchRequest = {
    inputFileId: input.fileId,
    url: MESSAGES_URL,
    metadata: null,
    outputExpiresAfterS: MESSAGE_BATCH_RESULTS_S,
    strict: false,
    input: { bytes: input.bytes, requests: requests.length },
    // A batch that its provider would not take is fed to the run a few requests at a time.
    ...(!read.value.isLive && sellsBatches(c) ? { viaProvider: true } : {}),
  };
  const opened = await batchOf(c.env, runId, id).open({ id, runId, request, requestHash: named?.hash ?? "" });
  if (opened === null) throw new Refusal({ reason: "idempotency_conflict" });
  if (opened.replayed) c.header("idempotent-replayed", "true");
  return c.json(shown(c, opened.batch));
}

/** Whether an upstream has batches of messages. Requests that go to another one, or have no price there, are sent live at once. */
function sellsBatches(c: Context<AppEnv>): boolean {
  const { upstreams } = c.get("config");
  return upstreams.some((each) => each.batch !== undefined && hasEndpoint(each, "messages"));
}

type Input = { runId: string; id: string; requests: readonly MessageRequest[] };

/** Stores the requests as the input of their batch: a file that no client sees, and that goes with the batch's end. */
async function storeInput(c: Context<AppEnv>, bucket: R2Bucket, { runId, id, requests }: Input) {
  const fileId = freshId("file-");
  const key = fileKey(runId, fileId);
  const staged = await stageFile(bucket, linesOf(requests), {
    key,
    bytesMax: BATCH_FILE_BYTES_MAX,
    param: "requests",
    contentType: "application/jsonl",
  });
  if (!staged.ok) throw new Refusal(staged.reason);
  await staged.commit();
  const { bytes } = staged;
  const files = runFilesOf(c.env, runId);
  // The batch first: the content of an expired file stays for as long as its batch may read it.
  await files.addBatch(id, fileId);
  const file = { id: fileId, bytes, createdAtS: nowS(), expiresAtS: 0, filename: id, purpose: "batch" } as const;
  const full: Reason | null = await files.addFile(file);
  if (full !== null) {
    await bucket.delete(key);
    throw new Refusal(full);
  }
  return { fileId, bytes };
}

function linesOf(requests: readonly MessageRequest[]): ByteSource {
  const rest = requests.values();
  return {
    read: async () => {
      const next = rest.next();
      return next.done === true ? { kind: "end" } : { kind: "bytes", bytes: inputLine(next.value) };
    },
  };
}

async function list(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const query = parseMessageBatchesQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { limit, before } = query.value;
  const ids = await runFilesOf(c.env, runId).batches({ ...query.value, prefix: "msgbatch_" });
  if (ids === null) throw badRequest("after_id or before_id names no batch of this run");
  // What is more than a page is at its far end: the newest of those before the cursor.
  const page = before === null ? ids.slice(0, limit) : ids.slice(-limit);
  const batches = await Promise.all(page.map((id) => batchOf(c.env, runId, id).read(runId)));
  const data: MessageBatchDocument[] = [];
  // One that is on the list but was not created: its creation failed, and its client got an error.
  for (const batch of batches) if (batch !== null) data.push(shown(c, batch));
  const [firstId, lastId] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return c.json({ data, has_more: ids.length > limit, first_id: firstId, last_id: lastId });
}

async function results(c: Context<AppEnv>, id: string): Promise<Response> {
  const bucket = bucketOf(c);
  const runId = requireRun(c);
  const batch = await requireBatch(c, runId, id);
  if (!isFinal(batch)) throw badRequest(`batch ${id} has not ended, so it has no results yet`);
  const fileId = batch.outputFileId;
  const file = fileId === null ? null : await runFilesOf(c.env, runId).file(fileId);
  if (file === null) throw notFound(`${id} with results`);
  const answer = await answerContent(bucket, fileKey(runId, file.id), {
    method: c.req.method,
    range: null,
    ifRange: null,
  });
  if (answer.kind !== "content") throw notFound(`${id} with results`);
  return new Response(answer.body, { headers: { ...answer.headers, "content-type": "application/x-jsonl" } });
}

async function remove(c: Context<AppEnv>, id: string): Promise<Response> {
  const runId = requireRun(c);
  const batch = await requireBatch(c, runId, id);
  if (!isFinal(batch)) throw badRequest(`batch ${id} has not ended; cancel it before you delete it`);
  const files = runFilesOf(c.env, runId);
  if (batch.outputFileId !== null) await files.deleteFile(batch.outputFileId);
  await files.dropBatch(id);
  // The last, because the request finds nothing more to delete after it.
  await batchOf(c.env, runId, id).destroy();
  return c.json({ id, type: "message_batch_deleted" });
}

async function requireBatch(c: Context<AppEnv>, runId: string, id: string): Promise<Batch> {
  const batch = await batchOf(c.env, runId, id).read(runId);
  if (batch === null || !isMessageBatch(batch)) throw notFound(id);
  return batch;
}

function shown(c: Context<AppEnv>, batch: Batch): MessageBatchDocument {
  return messageBatchDocument(batch, { origin: new URL(c.req.url).origin, nowS: nowS() });
}

function notFound(id: string): Refusal {
  return new Refusal({ reason: "not_found", what: `message batch ${id.slice(0, NAME_CHARS_MAX)}` });
}

function badRequest(message: string): Refusal {
  return new Refusal({ reason: "invalid_request", message, param: null });
}
