/** `/v1/batches`: create a batch, look at it, list those of the run, cancel one. */
import type { Context, Hono } from "hono";
import { batchOf, runOf, shelfOf } from "../../durable-objects/address.ts";
import { requireRun } from "../auth/middleware.ts";
import { parseBatchCreate } from "../batch/create.ts";
import { noBatch, type BatchDocument } from "../batch/document.ts";
import { listPage, noSuchCursor, parseBatchesQuery } from "../batch/pages.ts";
import { refusal, type ApiRefusal } from "../batch/refusal.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, readJsonBytes } from "../contract/body.ts";
import { Refusal } from "../errors.ts";
import { BATCH_BODY_BYTES_MAX } from "../limits.ts";
import { sha256Hex } from "./dedupe.ts";
import { namedOf } from "./idempotency.ts";
import type { Protection } from "./under-run.ts";

export function mountBatches(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/v1/batches", ...protect, create);
  app.get("/v1/batches", ...protect, list);
  app.get("/v1/batches/:id", ...protect, async (c) => {
    const id = c.req.param("id");
    const document = await batchOf(c.env, requireRun(c), id).document();
    return document === null ? apiRefusal(noBatch(id)) : c.json(document);
  });
  app.post("/v1/batches/:id/cancel", ...protect, async (c) => {
    const id = c.req.param("id");
    const cancelled = await batchOf(c.env, requireRun(c), id).cancel();
    if (cancelled === null) return apiRefusal(noBatch(id));
    return cancelled.ok ? c.json(cancelled.value) : apiRefusal(cancelled.refusal);
  });
}

/** The answer to a request refused in OpenAI's own words. Asking again does not help, and 409 would be asked again. */
export function apiRefusal({ status, error }: ApiRefusal): Response {
  return Response.json({ error }, { status, headers: { "x-should-retry": "false" } });
}

async function create(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  if (c.env.FILES === undefined) throw noFiles();
  const bytes = await readJsonBytes(c.req.raw, BATCH_BODY_BYTES_MAX);
  if (!bytes.ok) throw new Refusal(bytes.reason);
  const body = jsonOf(bytes.value);
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = parseBatchCreate(body.value);
  if (!parsed.ok) return apiRefusal(parsed.refusal);
  // A run that has ended takes no batch.
  const rules = await runOf(c.env, runId).modelRules();
  if (!rules.ok) throw new Refusal(rules.reason);
  const named = await namedOf(c, bytes.value);
  // The same key leads to the same id, so to the same object: it knows what it was asked for.
  const suffix = named === null ? crypto.randomUUID().replaceAll("-", "") : await idOfKey(runId, named.key);
  const id = `batch_${suffix}`;
  // On the list first: a batch that is not on it would run unseen.
  await shelfOf(c.env, runId).addBatch(id);
  const requestHash = named?.hash ?? "";
  const document = await batchOf(c.env, runId, id).create({ id, runId, request: parsed.value, requestHash });
  if (document === null) throw new Refusal({ reason: "idempotency_conflict" });
  return c.json(document);
}

async function idOfKey(runId: string, key: string): Promise<string> {
  return (await sha256Hex(new TextEncoder().encode(`${runId} ${key}`))).slice(0, 32);
}

async function list(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const query = parseBatchesQuery(c.req.query());
  if (!query.ok) return apiRefusal(query.refusal);
  const ids = await shelfOf(c.env, runId).batches(query.value);
  if (ids === null) return apiRefusal(refusal(noSuchCursor(query.value.after ?? "")));
  const documents = await Promise.all(ids.map((id) => batchOf(c.env, runId, id).document()));
  const known: BatchDocument[] = [];
  for (const document of documents) if (document !== null) known.push(document);
  return c.json(listPage(known, query.value.limit));
}

/** Files need somewhere to lie. */
export function noFiles(): Refusal {
  const message = "this gateway has no R2 bucket bound as FILES, so it takes no files and no batches";
  return new Refusal({ reason: "misconfigured", variable: "FILES", message });
}
