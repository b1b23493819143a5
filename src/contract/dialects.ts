/**
 * Calls as other systems' clients send them, read as the gateway's own. Their servers ignored what they did not know, and
 * Python sends null for what it leaves out, so unknown fields and nulls are passed over; a known field of a wrong type is
 * refused by its name.
 */
import { z } from "@hono/zod-openapi";
import { batchBody, promptCall, type BatchCall } from "./batch.ts";
import { parseCall, type CallSettings } from "./call.ts";
import type { Parsed } from "./errors.ts";
import { zodReason } from "./errors.ts";
import type { BatchReading } from "./large-batch.ts";
import { parseQuery, queryBody, type QueryRequest } from "./query.ts";

const said = {
  depth: z.int().nullable().optional().openapi({
    description: "How deep the caller is. A call is plain at any depth: recursion is the caller's own, in a child run",
  }),
};

const promptOrMessages = z
  .union([z.string(), z.array(z.looseObject({}))])
  .openapi({ description: "A text, or chat messages" });

/** `POST /llm_query` and its like, as documented: any field of `/query` besides; what else there is means nothing. */
export const dialectQuery = z
  .looseObject({ prompt: promptOrMessages, model: z.string().nullable().optional(), ...said })
  .openapi("DialectQuery");

/** `POST /llm_query_batched` and its like, as documented: any field of `/batch` besides. */
export const dialectBatch = z
  .looseObject({ prompts: z.array(promptOrMessages), model: z.string().nullable().optional(), ...said })
  .openapi("DialectBatch");

/** Every failure in these dialects. */
export const dialectErrorBody = z.object({ error: z.string() }).openapi("DialectError");

const envelope = z.looseObject(said);

const QUERY_FIELDS = new Set(Object.keys(queryBody.shape));
const BATCH_FIELDS = new Set(Object.keys(batchBody.shape));

/** A call, and whether its request says how deep it is, as all of alexzhang13/rlm's do. */
export type DialectQuery = { call: QueryRequest; saysDepth: boolean };

/** A parsed JSON body as one call. */
export function parseDialectQuery(value: unknown): Parsed<DialectQuery> {
  const known = knownFields(value, QUERY_FIELDS);
  if (!known.ok) return known;
  const { prompt, ...rest } = known.value.fields;
  if ((prompt === undefined && rest["messages"] === undefined) || prompt === "") return missing("prompt", "prompt");
  const native = Array.isArray(prompt) ? { ...rest, messages: prompt } : known.value.fields;
  const call = parseQuery(native, (field) => (Array.isArray(prompt) ? field.replace(/^messages/, "prompt") : field));
  return call.ok ? { ok: true, value: { call: call.value, saysDepth: known.value.saysDepth } } : call;
}

/** How a batch is read: its fields as the gateway knows them, and prompts that may be conversations. */
export const DIALECT_BATCH: BatchReading = { nativeOf: nativeBatch, promptOf: dialectPrompt };

function nativeBatch(value: unknown): Parsed<unknown> {
  const known = knownFields(value, BATCH_FIELDS);
  if (!known.ok) return known;
  const { fields } = known.value;
  if (fields["prompts"] === undefined && fields["items"] === undefined) return missing("prompts", "'prompts' list");
  return { ok: true, value: fields };
}

function dialectPrompt(prompt: unknown, index: number, settings: CallSettings): Parsed<BatchCall> {
  if (!Array.isArray(prompt)) return promptCall(prompt, index, settings);
  const place = (field: string): string => field.replace(/^messages/, `prompts[${index}]`);
  const call = parseCall({ messages: prompt }, settings, place);
  return call.ok ? { ok: true, value: { id: null, ...call.value } } : call;
}

function knownFields(
  value: unknown,
  names: ReadonlySet<string>,
): Parsed<{ fields: Record<string, unknown>; saysDepth: boolean }> {
  const read = envelope.safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const fields = Object.entries(read.data).filter(([name, field]) => names.has(name) && !isLeftOut(name, field));
  return { ok: true, value: { fields: Object.fromEntries(fields), saysDepth: read.data.depth != null } };
}

/** Null says nothing, and an empty model is what `model or default` makes of it. */
function isLeftOut(name: string, field: unknown): boolean {
  return field === null || (name === "model" && field === "");
}

function missing(param: string, what: string): Parsed<never> {
  return { ok: false, reason: { reason: "invalid_request", message: `missing ${what}`, param } };
}
