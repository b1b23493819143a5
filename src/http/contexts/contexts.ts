/** `/contexts`: store a text once, so that many calls of the run can refer to it; list, look at and delete what is stored. */
import type { Context } from "hono";
import { fileKey, runFilesOf } from "../../objects/address.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, mediaType, readJsonBytes } from "../../contract/body.ts";
import { contextDocument, parseContext, parseContextsQuery, parseName } from "../../contract/contexts/contexts.ts";
import { noContext } from "../../contexts/resolve.ts";
import { Refusal } from "../../errors.ts";
import { pageSource } from "../../files/r2-read.ts";
import { streamSource } from "../../files/source.ts";
import { CONTEXT_JSON_BYTES_MAX } from "../../limits.ts";
import { bodyRoom } from "../body-bound.ts";
import { bucketOf, requireOpenRun } from "../file-access.ts";
import type { Handlers } from "../handler.ts";
import { bytesSource, storeContext, type NewText } from "./store-context.ts";

export const contextHandlers = {
  "POST /contexts": create,
  "GET /contexts": list,
  "GET /contexts/:id": async (c) => {
    const id = c.req.param("id");
    const found = await runFilesOf(c.env, requireRun(c)).context(id);
    if (found === null) throw new Refusal(noContext(id));
    return c.json(contextDocument(found.record));
  },
  "DELETE /contexts/:id": async (c) => {
    const id = c.req.param("id");
    const isDeleted = await runFilesOf(c.env, requireRun(c)).deleteContext(id);
    if (!isDeleted) throw new Refusal(noContext(id));
    return c.json({ id, object: "context", deleted: true });
  },
} satisfies Partial<Handlers>;

async function create(c: Context<AppEnv>): Promise<Response> {
  const runId = await requireOpenRun(c);
  const text = mediaType(c.req.raw) === "text/plain" ? plainText(c) : await textOfJson(c, runId);
  const { record, isNew } = await storeContext(text, { objects: c.env, runId, nowMs: Date.now() });
  return c.json(contextDocument(record), isNew ? 201 : 200);
}

/** A body that is the text itself is read as it arrives. */
function plainText(c: Context<AppEnv>): NewText {
  const name = parseName(c.req.query("name"));
  if (!name.ok) throw new Refusal(name.reason);
  const { body } = c.req.raw;
  const broken = "the connection broke before the whole text had arrived";
  const source = body === null ? bytesSource(new Uint8Array()) : streamSource(body, broken);
  return { source, name: name.value, param: null };
}

async function textOfJson(c: Context<AppEnv>, runId: string): Promise<NewText> {
  const room = { ...bodyRoom(c), bytesMax: CONTEXT_JSON_BYTES_MAX };
  const bytes = await readJsonBytes(c.req.raw, room);
  if (!bytes.ok) throw new Refusal(bytes.reason);
  const body = jsonOf(bytes.value);
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = parseContext(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const { value } = parsed;
  const { name } = value;
  if ("text" in value) return { source: bytesSource(new TextEncoder().encode(value.text)), name, param: "text" };
  const bucket = bucketOf(c);
  const file = await runFilesOf(c.env, runId).file(value.fileId);
  if (file === null) throw new Refusal({ reason: "not_found", what: `file ${value.fileId}` });
  const source = pageSource(bucket, { key: fileKey(runId, file.id), sizeBytes: file.bytes, offset: 0 });
  return { source, name, param: "file_id" };
}

async function list(c: Context<AppEnv>): Promise<Response> {
  const query = parseContextsQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { limit, after } = query.value;
  const found = await runFilesOf(c.env, requireRun(c)).contexts(query.value);
  if (found === null) throw new Refusal(noContext(after ?? ""));
  const data = found.slice(0, limit).map(contextDocument);
  return c.json({ object: "list", data, has_more: found.length > limit });
}
