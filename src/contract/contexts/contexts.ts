/** `/contexts`: texts that a run stores once, so that many of its calls can refer to them. */
import * as z from "zod";
import type { ContextRecord } from "../../contexts/types.ts";
import { CONTEXTS_PAGE_DEFAULT, CONTEXTS_PAGE_MAX } from "../../limits.ts";
import { invalid, zodReason, type Parsed } from "../errors.ts";
import { exactlyOneOf, label, queryInt } from "../fields.ts";
import { strictFields } from "../strict-fields.ts";
import { textFault } from "../text.ts";
import { atFirstUse } from "../../at-first-use.ts";

export const contextBody = atFirstUse(() =>
  strictFields({
    text: z
      .string()
      .optional()
      .meta({ minLength: 1, description: "The text. Exactly one of `text` and `file_id` is required" }),
    file_id: z.string().max(100).optional().meta({ description: "A file of this run, which must be text in UTF-8" }),
    name: label.optional(),
  }).meta({ id: "NewContext", ...exactlyOneOf([["text"], ["file_id"]]) }),
);

/** Where the text of a new context is. */
export type NewContext = { name: string | null } & ({ text: string } | { fileId: string });

/** The body of `POST /contexts`, or why it is refused. */
export function parseContext(value: unknown): Parsed<NewContext> {
  const read = contextBody().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { text, file_id: fileId, name = null } = read.data;
  if (text !== undefined && fileId !== undefined) return invalid("file_id", "give either text or file_id, not both");
  if (fileId !== undefined) return { ok: true, value: { name, fileId } };
  if (text === undefined) return invalid("text", "is missing; expected text (a text) or file_id (the id of a file)");
  const fault = textFault(text);
  return fault === null ? { ok: true, value: { name, text } } : invalid("text", fault);
}

/** The name in the query of a text that is sent as it is. */
export function parseName(value: string | undefined): Parsed<string | null> {
  if (value === undefined) return { ok: true, value: null };
  const read = label.safeParse(value);
  return read.success
    ? { ok: true, value: read.data }
    : invalid("name", read.error.issues[0]?.message ?? "expected a name");
}

const pageQuery = atFirstUse(() =>
  z.object({
    limit: queryInt.pipe(z.int().min(1).max(CONTEXTS_PAGE_MAX)).optional(),
    after: z.string().max(100).optional(),
  }),
);

/** A page of the list: newest first, behind the context `after`. */
export type ContextsQuery = { limit: number; after: string | null };

export function parseContextsQuery(query: Record<string, string>): Parsed<ContextsQuery> {
  const read = pageQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { limit = CONTEXTS_PAGE_DEFAULT, after = null } = read.data;
  return { ok: true, value: { limit, after } };
}

export const contextReply = atFirstUse(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("context"),
      name: z.string().nullable(),
      chars: z.int().meta({ description: "Unicode code points, by which ranges count" }),
      bytes: z.int().meta({ description: "Bytes in UTF-8" }),
      tokens_max: z.int().meta({ description: "Upper bound of its tokens" }),
      created_at: z.iso.datetime(),
    })
    .meta({ id: "Context" }),
);
export type ContextReply = z.infer<ReturnType<typeof contextReply>>;

export const contextsReply = atFirstUse(() =>
  z
    .object({ object: z.literal("list"), data: z.array(contextReply()), has_more: z.boolean() })
    .meta({ id: "Contexts" }),
);

export const contextDeleted = atFirstUse(() =>
  z.object({ id: z.string(), object: z.literal("context"), deleted: z.literal(true) }).meta({ id: "ContextDeleted" }),
);

export function contextDocument({ id, name, chars, bytes, tokensMax, createdAtMs }: ContextRecord): ContextReply {
  const createdAt = new Date(createdAtMs).toISOString();
  return { id, object: "context", name, chars, bytes, tokens_max: tokensMax, created_at: createdAt };
}
