/**
 * Parses calls in the form that other systems' clients send. Their servers ignored unknown fields, and Python sends null
 * for a missing value, so unknown fields and nulls are ignored; a known field of a wrong type is refused by its name.
 */
import * as z from "zod";
import { ITEMS_PER_BATCH_MAX } from "../../limits.ts";
import { ONE_FORM_OF_LIST } from "../batch-forms.ts";
import { batchBody, promptCall, type BatchCall } from "../batch.ts";
import type { PlainPrompts } from "../plain-prompts.ts";
import type { CallSettings } from "../call-options.ts";
import { parseCall } from "../call.ts";
import type { Parsed } from "../errors.ts";
import { invalid, zodReason } from "../errors.ts";
import { exactlyOneOf, label } from "../fields.ts";
import type { BatchReading } from "../large-batch.ts";
import { parseQuery, queryBody, type QueryRequest } from "../query.ts";
import { atFirstUse } from "../../at-first-use.ts";

const depthField = atFirstUse(() => ({
  depth: z.int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER).nullable().optional().meta({
    description: "Accepted and ignored. A call does not recurse; to recurse, open a child run",
  }),
}));

/** Python's `model or default`: an empty text is no model. */
const modelField = atFirstUse(() => z.union([label, z.literal(""), z.null()]).optional());

/** As documented: the messages themselves are opaque, and checked where calls are. */
const chatMessage = atFirstUse(() =>
  z.looseObject({
    role: z.string().min(1),
    content: z.union([z.string(), z.array(z.union([z.string(), z.looseObject({})])), z.null()]).optional(),
  }),
);

const promptOrMessages = atFirstUse(() =>
  z
    .union([z.string().min(1), z.array(chatMessage()).min(1)])
    .meta({ description: "Text of one user message, or an array of chat messages" }),
);

/** `POST /llm_query` and its like, as documented: also any field of `/query`; other fields are ignored. */
export const dialectQuery = atFirstUse(() =>
  z
    .looseObject({
      ...orNull(queryBody().shape),
      prompt: promptOrMessages().nullable().optional(),
      model: modelField(),
      ...depthField(),
    })
    .meta({
      id: "DialectQuery",
      ...exactlyOneOf(
        [
          { required: ["prompt"], properties: { prompt: { type: ["string", "array"] } } },
          { required: ["messages"], properties: { messages: { type: "array" } } },
        ],
        { type: "null" },
      ),
    }),
);

/** `POST /llm_query_batched` and its like, as documented: also any field of `/batch` but those that make several calls of one. */
export const dialectBatch = atFirstUse(() =>
  z
    .looseObject({
      ...orNull(batchBody().shape),
      prompts: z.array(promptOrMessages()).max(ITEMS_PER_BATCH_MAX).nullable().optional(),
      model: modelField(),
      ...depthField(),
    })
    .meta({ id: "DialectBatch", ...ONE_FORM_OF_LIST }),
);

/** Every failure in these dialects. */
export const dialectErrorBody = atFirstUse(() => z.object({ error: z.string() }).meta({ id: "DialectError" }));

const envelope = atFirstUse(() => z.looseObject(depthField()));

const QUERY_FIELDS = atFirstUse(() => new Set(Object.keys(queryBody().shape)));
const BATCH_FIELDS = atFirstUse(() => new Set(Object.keys(batchBody().shape)));

/** A call, and whether its request has a `depth`, as all of alexzhang13/rlm's have. */
export type DialectQuery = { call: QueryRequest; hasDepth: boolean };

/** A parsed JSON body as one call. */
export function parseDialectQuery(value: unknown): Parsed<DialectQuery> {
  const known = knownFields(value, QUERY_FIELDS());
  if (!known.ok) return known;
  const { prompt, ...rest } = known.value.fields;
  const hasMessages = rest["messages"] !== undefined;
  if ((prompt === undefined && !hasMessages) || prompt === "") return missing("prompt", "prompt");
  if (Array.isArray(prompt) && hasMessages) return invalid("messages", "give either prompt or messages, not both");
  const native = Array.isArray(prompt) ? { ...rest, messages: prompt } : known.value.fields;
  const call = parseQuery(native, (field) => (Array.isArray(prompt) ? field.replace(/^messages/, "prompt") : field));
  return call.ok ? { ok: true, value: { call: call.value, hasDepth: known.value.hasDepth } } : call;
}

/** How a batch is read: its fields as the gateway knows them, and prompts that may be conversations. */
export const DIALECT_BATCH: BatchReading = { nativeOf: nativeBatch, promptOf: dialectPrompt };

function nativeBatch(value: unknown): Parsed<unknown> {
  const known = knownFields(value, BATCH_FIELDS());
  if (!known.ok) return known;
  const { fields } = known.value;
  if (fields["prompts"] === undefined && fields["items"] === undefined) return missing("prompts", "'prompts' list");
  return { ok: true, value: fields };
}

function dialectPrompt(prompt: unknown, index: number, settings: CallSettings, plain: PlainPrompts): Parsed<BatchCall> {
  if (!Array.isArray(prompt)) return promptCall(prompt, index, settings, plain);
  const place = (field: string): string => field.replace(/^messages/, `prompts[${index}]`);
  const call = parseCall({ messages: prompt }, settings, place);
  return call.ok ? { ok: true, value: { id: null, ...call.value } } : call;
}

function knownFields(
  value: unknown,
  names: ReadonlySet<string>,
): Parsed<{ fields: Record<string, unknown>; hasDepth: boolean }> {
  const read = envelope().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const fields = Object.entries(read.data).filter(([name, field]) => names.has(name) && !isMissing(name, field));
  return { ok: true, value: { fields: Object.fromEntries(fields), hasDepth: read.data.depth != null } };
}

/** Null counts as missing, and so does an empty model: Python's `model or default` does the same. */
function isMissing(name: string, field: unknown): boolean {
  return field === null || (name === "model" && field === "");
}

function missing(param: string, what: string): Parsed<never> {
  return { ok: false, reason: { reason: "invalid_request", message: `missing ${what}`, param } };
}

/** Optional fields, each of which may be null. */
function orNull(shape: z.ZodRawShape): z.ZodRawShape {
  return Object.fromEntries(
    Object.entries(shape).map(([name, field]) => [name, z.union([field, z.null()]).optional()]),
  );
}
