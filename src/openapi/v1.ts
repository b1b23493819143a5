/** Routes under the names of OpenAI's and Anthropic's APIs, whose own documents describe their fields. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";
import { asText, guarded, header, idParameter, json } from "./parts.ts";

const opaque = z.looseObject({});

const listed = z.looseObject({ object: z.literal("list"), data: z.array(opaque) });

/** A call whose body and answer pass through byte for byte. */
const passed = (path: string, summary: string, streams: boolean): RouteConfig =>
  guarded({
    method: "post",
    path,
    summary,
    request: {
      body: {
        description: "As the upstream takes it; `model` may name the upstream: `upstream/model`",
        required: true,
        content: { "application/json": { schema: opaque } },
      },
    },
    responses: {
      200: {
        description: "As the upstream answered, with `usage.cost`",
        content: {
          "application/json": { schema: opaque },
          ...(streams ? asText("", "text/event-stream").content : {}),
        },
      },
    },
  });

/** What an upstream, or the gateway, keeps under an id. */
const keptThing = (method: "get" | "post" | "delete", path: string, summary: string): RouteConfig =>
  guarded({ method, path, summary, parameters: [idParameter], responses: { 200: json(opaque, "As it is kept") } });

export const v1: RouteConfig[] = [
  passed("/v1/chat/completions", "OpenAI's chat completions", true),
  passed("/v1/completions", "OpenAI's completions", true),
  passed("/v1/embeddings", "OpenAI's embeddings", false),
  passed("/v1/responses", "OpenAI's responses", true),
  keptThing("get", "/v1/responses/{id}", "A response that its upstream keeps for this run"),
  keptThing("delete", "/v1/responses/{id}", "Has its upstream forget a response"),
  keptThing("post", "/v1/responses/{id}/cancel", "Cancels a response that runs in the background"),
  keptThing("get", "/v1/responses/{id}/input_items", "What a kept response was asked"),
  passed("/v1/messages", "Anthropic's messages", true),
  passed("/v1/messages/count_tokens", "Counts the tokens of a message, for nothing", false),
  guarded({
    method: "get",
    path: "/v1/models",
    summary: "What the run may ask for, as `upstream/model`",
    responses: { 200: json(listed, "The models") },
  }),
  keptThing("get", "/v1/models/{id}", "One model, whose id may hold slashes"),
  guarded({
    method: "post",
    path: "/v1/batches",
    summary: "OpenAI's batches: the calls of an uploaded file",
    parameters: [
      header("idempotency-key", "The same key and body lead to the same batch", {
        maxLength: IDEMPOTENCY_KEY_CHARS_MAX,
      }),
    ],
    request: { body: { required: true, content: { "application/json": { schema: opaque } } } },
    responses: { 200: json(opaque, "The batch") },
  }),
  guarded({
    method: "get",
    path: "/v1/batches",
    summary: "The run's batches, newest first",
    responses: { 200: json(listed, "One page") },
  }),
  keptThing("get", "/v1/batches/{id}", "One batch"),
  keptThing("post", "/v1/batches/{id}/cancel", "Cancels a batch"),
];
