/** Routes of OpenAI's and Anthropic's APIs. The providers' references describe their fields. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import * as z from "zod";
import { batchCreateBody } from "../batch/create.ts";
import { anthropicErrorBody, errorBody, relayedErrorBody } from "../contract/errors.ts";
import {
  chatBody,
  completionsBody,
  embeddingsBody,
  messagesBody,
  responsesBody,
  tokenCountBody,
} from "../contract/dialects/relayed.ts";
import { BATCHES_PAGE_MAX, IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";
import {
  answerHeaders,
  eventStream,
  guarded,
  header,
  idParameter,
  json,
  jsonBody,
  traceHeader,
  traceHeaders,
  whole,
} from "./parts.ts";

const opaque = z.looseObject({});

const listed = z.looseObject({ object: z.literal("list"), data: z.array(opaque) });

/** `own`: the form of the gateway's own errors on the route. */
const relaying = (own: z.ZodType, route: Omit<RouteConfig, "security">): RouteConfig => {
  const described = guarded(route);
  const failed = json(z.union([own, relayedErrorBody]), "The gateway's refusal, or the upstream's own error");
  return { ...described, responses: { ...described.responses, default: failed } };
};

/** A call whose body and answer are relayed byte for byte. */
const passed = (
  path: string,
  summary: string,
  { body, streams = false, own = errorBody }: { body: z.ZodType; streams?: boolean; own?: z.ZodType },
): RouteConfig =>
  relaying(own, {
    method: "post",
    path,
    summary,
    parameters: traceHeaders,
    request: {
      body: {
        description: "As the upstream expects it. `model` may name the upstream: `upstream/model`",
        required: true,
        content: { "application/json": { schema: body } },
      },
    },
    responses: {
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
  });

/** An object that an upstream, or the gateway, stores under an id. */
const keptThing = (method: "get" | "post" | "delete", path: string, summary: string): RouteConfig =>
  guarded({ method, path, summary, parameters: [idParameter], responses: { 200: json(opaque, "The object") } });

/** An object that an upstream stores: its answers are relayed, too. */
const upstreamThing = (method: "get" | "post" | "delete", path: string, summary: string): RouteConfig =>
  relaying(errorBody, {
    method,
    path,
    summary,
    parameters: [idParameter],
    responses: { 200: json(opaque, "The object") },
  });

export const v1: RouteConfig[] = [
  passed("/v1/chat/completions", "OpenAI's chat completions", { body: chatBody, streams: true }),
  passed("/v1/completions", "OpenAI's completions", { body: completionsBody, streams: true }),
  passed("/v1/embeddings", "OpenAI's embeddings", { body: embeddingsBody }),
  passed("/v1/responses", "OpenAI's responses", { body: responsesBody, streams: true }),
  upstreamThing("get", "/v1/responses/{id}", "Returns a response that its upstream stores for this run"),
  upstreamThing("delete", "/v1/responses/{id}", "Deletes a response at its upstream"),
  upstreamThing("post", "/v1/responses/{id}/cancel", "Cancels a response that is running in the background"),
  upstreamThing("get", "/v1/responses/{id}/input_items", "Lists the input items of a stored response"),
  passed("/v1/messages", "Anthropic's messages", { body: messagesBody, streams: true, own: anthropicErrorBody }),
  passed("/v1/messages/count_tokens", "Counts the tokens of a message, free of charge", {
    body: tokenCountBody,
    own: anthropicErrorBody,
  }),
  guarded({
    method: "get",
    path: "/v1/models",
    summary: "Lists the models that the run may use, as `upstream/model`",
    responses: { 200: json(listed, "The models") },
  }),
  keptThing("get", "/v1/models/{id}", "Describes a model; its id may contain slashes"),
  guarded({
    method: "post",
    path: "/v1/batches",
    summary: "Creates a batch: the calls of an uploaded file",
    parameters: [
      header("idempotency-key", "A repeated request with the same key and body returns the same batch", {
        maxLength: IDEMPOTENCY_KEY_CHARS_MAX,
        pattern: "^[!-~]+$",
      }),
    ],
    request: jsonBody(batchCreateBody),
    responses: { 200: json(opaque, "The batch") },
  }),
  guarded({
    method: "get",
    path: "/v1/batches",
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
    responses: { 200: json(listed, "One page") },
  }),
  keptThing("get", "/v1/batches/{id}", "Describes a batch"),
  keptThing("post", "/v1/batches/{id}/cancel", "Cancels a batch"),
];
