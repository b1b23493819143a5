/** Routes of OpenAI's and Anthropic's APIs. The providers' references describe their fields. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";
import { asText, guarded, header, idParameter, json } from "./parts.ts";

const opaque = z.looseObject({});

const listed = z.looseObject({ object: z.literal("list"), data: z.array(opaque) });

/** A call whose body and answer are relayed byte for byte. */
const passed = (path: string, summary: string, streams: boolean): RouteConfig =>
  guarded({
    method: "post",
    path,
    summary,
    request: {
      body: {
        description: "As the upstream expects it. `model` may name the upstream: `upstream/model`",
        required: true,
        content: { "application/json": { schema: opaque } },
      },
    },
    responses: {
      200: {
        description:
          "The upstream's answer, with `usage.cost` added. A stream whose events are not changed has its cost in a comment behind them: `: fanout cost=0.000123`",
        content: {
          "application/json": { schema: opaque },
          ...(streams ? asText("", "text/event-stream").content : {}),
        },
      },
    },
  });

/** An object that an upstream, or the gateway, stores under an id. */
const keptThing = (method: "get" | "post" | "delete", path: string, summary: string): RouteConfig =>
  guarded({ method, path, summary, parameters: [idParameter], responses: { 200: json(opaque, "The object") } });

export const v1: RouteConfig[] = [
  passed("/v1/chat/completions", "OpenAI's chat completions", true),
  passed("/v1/completions", "OpenAI's completions", true),
  passed("/v1/embeddings", "OpenAI's embeddings", false),
  passed("/v1/responses", "OpenAI's responses", true),
  keptThing("get", "/v1/responses/{id}", "Returns a response that its upstream stores for this run"),
  keptThing("delete", "/v1/responses/{id}", "Deletes a response at its upstream"),
  keptThing("post", "/v1/responses/{id}/cancel", "Cancels a response that is running in the background"),
  keptThing("get", "/v1/responses/{id}/input_items", "Lists the input items of a stored response"),
  passed("/v1/messages", "Anthropic's messages", true),
  passed("/v1/messages/count_tokens", "Counts the tokens of a message, free of charge", false),
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
      }),
    ],
    request: { body: { required: true, content: { "application/json": { schema: opaque } } } },
    responses: { 200: json(opaque, "The batch") },
  }),
  guarded({
    method: "get",
    path: "/v1/batches",
    summary: "Lists the run's batches, newest first",
    responses: { 200: json(listed, "One page") },
  }),
  keptThing("get", "/v1/batches/{id}", "Describes a batch"),
  keptThing("post", "/v1/batches/{id}/cancel", "Cancels a batch"),
];
