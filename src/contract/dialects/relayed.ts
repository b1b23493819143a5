/**
 * Bodies of OpenAI's and Anthropic's routes, as documented: the fields of which the gateway refuses values. The upstream's reference
 * has the others, and what the upstream refuses.
 */
import * as z from "zod";
import { CHOICES_MAX, MAX_TOKENS_MAX } from "../../limits.ts";
import { CACHE_MARKS } from "../../providers/formats/request/inner-fields.ts";
import { label } from "../fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

const opaque = atFirstUse(() => z.looseObject({}));
const count = (max: number) => z.int().min(1).max(max).nullable().optional();
const parts = atFirstUse(() => z.array(z.union([z.string(), opaque()])));
const content = atFirstUse(() => z.union([z.string(), parts(), z.null()]).optional());
const cap = atFirstUse(() => count(MAX_TOKENS_MAX));

const named = (fields: z.ZodRawShape) =>
  z.looseObject({
    model: label.nullable().optional(),
    stream: z.boolean().nullable().optional(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullable().optional() }).nullable().optional(),
    ...fields,
  });
const completing = (fields: z.ZodRawShape) =>
  named({
    n: count(CHOICES_MAX),
    best_of: count(CHOICES_MAX),
    tools: z.array(opaque()).nullable().optional(),
    ...Object.fromEntries(Object.keys(CACHE_MARKS).map((name) => [name, opaque().nullable().optional()])),
    ...fields,
  });
const texts = atFirstUse(() => z.union([z.string(), z.array(z.string()).min(1)]));
const conversation = atFirstUse(() =>
  completing({ messages: z.array(z.looseObject({ role: z.string(), content: content() })).min(1) }),
);

/** `POST /v1/chat/completions` */
export const chatBody = atFirstUse(() => conversation().extend({ max_tokens: cap(), max_completion_tokens: cap() }));

/** `POST /v1/messages/count_tokens` */
export const tokenCountBody = atFirstUse(() => conversation().extend({ system: content(), max_tokens: cap() }));

/** `POST /v1/messages` */
export const messagesBody = atFirstUse(() =>
  tokenCountBody().extend({ max_tokens: z.int().min(1).max(MAX_TOKENS_MAX) }),
);

/** `POST /v1/responses` */
export const responsesBody = atFirstUse(() =>
  completing({
    max_output_tokens: cap(),
    instructions: z.string().nullable().optional(),
    input: z.union([z.string(), z.array(opaque()), z.null()]).optional(),
  }),
);

/** `POST /v1/completions` */
export const completionsBody = atFirstUse(() => completing({ max_tokens: cap(), prompt: texts() }));

/** `POST /v1/embeddings` */
export const embeddingsBody = atFirstUse(() => named({ input: texts() }));
