/** Routes of OpenAI's and Anthropic's APIs. The providers' references describe their fields. */
import * as z from "zod";
import { batchCreateBody } from "../../batch/create.ts";
import {
  BATCH_BODY_BYTES_MAX,
  BATCHES_PAGE_MAX,
  BODY_BYTES_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  MESSAGE_BATCH_PAGE_MAX,
  NAME_CHARS_MAX,
} from "../../limits.ts";
import {
  chatBody,
  completionsBody,
  embeddingsBody,
  messagesBody,
  responsesBody,
  tokenCountBody,
} from "../dialects/relayed.ts";
import { messageBatchBody } from "../message-batch.ts";
import { anthropicErrorBody, errorBody, relayedErrorBody } from "../errors.ts";
import {
  answerHeaders,
  asText,
  eventStream,
  header,
  idParameter,
  json,
  jsonBody,
  traceHeader,
  traceHeaders,
  whole,
} from "./parts.ts";
import { CLIENTS, family, type Shown } from "./record.ts";
import { atFirstUse } from "../../at-first-use.ts";

const opaque = z.looseObject({});

const listed = atFirstUse(() => z.looseObject({ object: z.literal("list"), data: z.array(opaque) }));

/** `own`: the form of the gateway's own errors on a route that also relays the upstream's. */
const relayed = (own: () => z.ZodType) =>
  json(() => z.union([own(), relayedErrorBody()]), "The gateway's refusal, or the upstream's own error");

/** A call whose body and answer are relayed byte for byte. */
const passed = (
  summary: string,
  { body, streams = false, own = errorBody }: { body: Shown; streams?: boolean; own?: () => z.ZodType },
) => ({
  auth: CLIENTS,
  guide: "docs/v1.md" as const,
  summary,
  parameters: traceHeaders,
  bound: BODY_BYTES_MAX,
  request: {
    body: {
      description: "As the upstream expects it. `model` may name the upstream: `upstream/model`",
      required: true,
      content: { "application/json": { schema: body } },
    },
  },
  replies: {
    200: {
      description:
        "The upstream's answer, with `usage.cost` added. A stream whose events are not changed has its cost in a comment behind them: `: fanout cost=0.000123`",
      headers: answerHeaders(traceHeader),
      content: {
        "application/json": { schema: opaque },
        ...(streams ? eventStream("JSON as the upstream sent it; `[DONE]` at the end of OpenAI's streams") : {}),
      },
    },
  },
  errors: relayed(own),
});

/** An object that an upstream, or the gateway, stores under an id. */
const keptThing = (summary: string) => ({
  auth: CLIENTS,
  summary,
  parameters: [idParameter],
  replies: { 200: json(opaque, "The object") },
});

/** An object that an upstream stores: its answers are relayed, too. */
const upstreamThing = (summary: string) => ({
  ...keptThing(summary),
  guide: "docs/v1.md" as const,
  errors: relayed(errorBody),
});

const sameBatch = header("idempotency-key", "A repeated request with the same key and body returns the same batch", {
  maxLength: IDEMPOTENCY_KEY_CHARS_MAX,
  pattern: "^[!-~]+$",
});

const time = z.string().nullable();
const messageBatchObject = atFirstUse(() =>
  z.looseObject({
    id: z.string(),
    type: z.literal("message_batch"),
    processing_status: z.enum(["in_progress", "canceling", "ended"]),
    request_counts: z.record(z.enum(["processing", "succeeded", "errored", "canceled", "expired"]), z.int()),
    created_at: z.string(),
    expires_at: z.string(),
    ended_at: time,
    cancel_initiated_at: time,
    archived_at: time,
    results_url: z.string().nullable(),
  }),
);
const messageBatchPage = atFirstUse(() =>
  z.looseObject({
    data: z.array(messageBatchObject()),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  }),
);
const messageBatchDeleted = atFirstUse(() =>
  z.looseObject({ id: z.string(), type: z.literal("message_batch_deleted") }),
);

/** A route of message batches. */
const messageBatch = (summary: string, reply: Shown) => ({
  auth: CLIENTS,
  guide: "docs/message-batches.md" as const,
  summary,
  replies: { 200: json(reply, "As Anthropic documents it") },
  errors: json(anthropicErrorBody, "The request was refused; `error.code` has the reason"),
});

export const v1 = family("OpenAI and Anthropic", {
  "POST /v1/chat/completions": passed("OpenAI's chat completions", { body: chatBody, streams: true }),
  "POST /v1/completions": passed("OpenAI's completions", { body: completionsBody, streams: true }),
  "POST /v1/embeddings": passed("OpenAI's embeddings", { body: embeddingsBody }),
  "POST /v1/responses": passed("OpenAI's responses", { body: responsesBody, streams: true }),
  "GET /v1/responses/:id": upstreamThing("Returns a response that its upstream stores for this run"),
  "DELETE /v1/responses/:id": upstreamThing("Deletes a response at its upstream"),
  "POST /v1/responses/:id/cancel": {
    ...upstreamThing("Cancels a response that is running in the background"),
    opensNothing: true,
  },
  "GET /v1/responses/:id/input_items": upstreamThing("Lists the input items of a stored response"),
  "POST /v1/messages": passed("Anthropic's messages", { body: messagesBody, streams: true, own: anthropicErrorBody }),
  "POST /v1/messages/count_tokens": {
    ...passed("Counts the tokens of a message, free of charge", { body: tokenCountBody, own: anthropicErrorBody }),
    opensNothing: true,
  },
  "POST /v1/messages/batches": {
    ...messageBatch("Creates a message batch", messageBatchObject),
    parameters: [sameBatch],
    bound: BODY_BYTES_MAX,
    request: jsonBody(messageBatchBody),
  },
  "GET /v1/messages/batches": {
    ...messageBatch("Lists the run's message batches, newest first", messageBatchPage),
    parameters: [
      whole("limit", `Batches per page; a page has at most ${BATCHES_PAGE_MAX}`, {
        minimum: 1,
        maximum: MESSAGE_BATCH_PAGE_MAX,
      }),
      ...["after_id", "before_id"].map((name) => ({
        name,
        in: "query" as const,
        required: false,
        description: `Returns the page just ${name === "after_id" ? "after" : "before"} the batch with this id`,
        schema: { type: "string" as const, minLength: 1, maxLength: NAME_CHARS_MAX },
      })),
    ],
  },
  "GET /v1/messages/batches/:id": {
    ...messageBatch("Describes a message batch", messageBatchObject),
    parameters: [idParameter],
  },
  "GET /v1/messages/batches/:id/results": {
    ...messageBatch("Returns the results of a message batch that has ended, one a line", messageBatchObject),
    parameters: [idParameter],
    replies: { 200: asText("JSON Lines", "application/x-jsonl") },
  },
  "POST /v1/messages/batches/:id/cancel": {
    ...messageBatch("Cancels a message batch", messageBatchObject),
    parameters: [idParameter],
    opensNothing: true,
  },
  "DELETE /v1/messages/batches/:id": {
    ...messageBatch("Deletes a message batch that has ended, with its results", messageBatchDeleted),
    parameters: [idParameter],
  },
  "GET /v1/models": {
    auth: CLIENTS,
    guide: "docs/v1.md",
    summary: "Lists the models that the run may use, as `upstream/model`",
    replies: { 200: json(listed, "The models") },
  },
  "GET /v1/models/:id": {
    ...keptThing("Describes a model; its id may contain slashes"),
    guide: "docs/v1.md",
    where: { id: ".+" },
  },
  "POST /v1/batches": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Creates a batch: the calls of an uploaded file",
    parameters: [sameBatch],
    bound: BATCH_BODY_BYTES_MAX,
    request: jsonBody(batchCreateBody),
    replies: { 200: json(opaque, "The batch") },
  },
  "GET /v1/batches": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Lists the run's batches, newest first",
    parameters: [
      whole("limit", "Batches per page", { minimum: 1, maximum: BATCHES_PAGE_MAX }),
      {
        name: "after",
        in: "query",
        required: false,
        description: "Last id of the previous page",
        schema: { type: "string" },
      },
    ],
    replies: { 200: json(listed, "One page") },
  },
  "GET /v1/batches/:id": { ...keptThing("Describes a batch"), guide: "docs/batch-api.md" },
  "POST /v1/batches/:id/cancel": {
    ...keptThing("Cancels a batch"),
    guide: "docs/batch-api.md",
    opensNothing: true,
  },
});
