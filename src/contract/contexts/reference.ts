/** How a call refers to a context, and how a batch maps over one. */
import * as z from "zod";
import type { ContextReference, Split } from "../../contexts/types.ts";
import { CHUNK_CHARS_DEFAULT, CHUNK_CHARS_MAX, CONTEXT_BYTES_MAX, ITEMS_PER_BATCH_MAX } from "../../limits.ts";
import { ABSENT } from "../fields.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

const contextId = atFirstUse(() =>
  z.string().regex(/^ctx_[0-9a-f]{32}$/, "expected the id of a context, as POST /contexts returns it"),
);
const position = z.int().min(0).max(CONTEXT_BYTES_MAX);

const splitFields = atFirstUse(() => ({
  by: z.enum(["chars", "lines", "paragraphs", "markdown"]).optional().meta({
    description:
      "Where a chunk ends: after so many characters (default), after a line, before a paragraph, or before a heading of Markdown, where one is within `size`",
  }),
  size: z
    .int()
    .min(1)
    .max(CHUNK_CHARS_MAX)
    .optional()
    .meta({
      description: `Most characters of a chunk, whatever \`by\` is; default ${CHUNK_CHARS_DEFAULT}`,
    }),
  overlap: z.int().min(0).max(CHUNK_CHARS_MAX).optional().meta({
    description: "Characters at the end of a chunk that the next one repeats, at most; default 0, less than `size`",
  }),
}));

export const split = strictFields(splitFields())
  .refine(({ size = CHUNK_CHARS_DEFAULT, overlap = 0 }) => overlap < size, {
    message: "expected less than size",
    path: ["overlap"],
  })
  .meta({ id: "Split", description: "How the text is cut for `chunk`" });

/** The split that a request names. */
function splitOf({ by = "chars", size = CHUNK_CHARS_DEFAULT, overlap = 0 }: z.infer<typeof split> = {}): Split {
  return { by, size, overlap };
}

const partOfContext = atFirstUse(() =>
  strictFields({
    id: contextId(),
    from: position.optional().meta({ description: "First character, counted from 0; default 0" }),
    to: position.optional().meta({ description: "The character behind the last; default: the end of the text" }),
    chunk: z
      .int()
      .min(0)
      .max(ITEMS_PER_BATCH_MAX)
      .optional()
      .meta({ description: "The chunk of this number, counted from 0, instead of a range" }),
    split: split.optional(),
    as: z
      .enum(["prompt", "system"])
      .optional()
      .meta({ description: "Where the text is inserted: before the prompt (default), or in the system message" }),
  })
    .refine(({ chunk, from, to }) => chunk === undefined || (from === undefined && to === undefined), {
      message: "expected either chunk, or from and to",
      path: ["chunk"],
    })
    .refine(({ chunk, split }) => chunk !== undefined || split === undefined, {
      message: "expected chunk beside it",
      path: ["split"],
    })
    .meta({
      id: "ContextPart",
      oneOf: [
        { required: ["chunk"], properties: { from: ABSENT, to: ABSENT } },
        { properties: { chunk: ABSENT, split: ABSENT } },
      ],
    }),
);

/** The field `context` of a call. */
export const contextField = atFirstUse(() =>
  z.union([contextId(), partOfContext()], {
    error: ({ input }) =>
      typeof input === "string" || typeof input !== "object" || input === null
        ? "expected the id of a context, as POST /contexts returns it, or an object with it"
        : undefined,
  }),
);

/** The reference that a value of the field is. */
export function referenceOf(value: z.infer<ReturnType<typeof contextField>>): ContextReference {
  if (typeof value === "string") return { id: value, place: "prompt" };
  const { id, from, to, chunk, as: place = "prompt" } = value;
  if (chunk !== undefined) return { id, chunk: { number: chunk, split: splitOf(value.split) }, place };
  if (from === undefined && to === undefined) return { id, place };
  return { id, range: { from: from ?? 0, to: to ?? null }, place };
}

/** The field `over` of a batch. */
export const overField = atFirstUse(() =>
  strictFields({ context: contextId(), split: split.optional() }).meta({
    id: "Over",
    description: "One call for each chunk of a context: `prompt` with the chunk in place of `{{chunk}}`",
  }),
);

/** A batch with one call for each chunk of a context. */
export type Over = { id: string; split: Split };

export function overOf({ context, split }: z.infer<ReturnType<typeof overField>>): Over {
  return { id: context, split: splitOf(split) };
}
