/** The endpoints of batches: the `url` of their lines and the `endpoint` of the batch. */
import type { Endpoint } from "../call.ts";

/** In the order of OpenAI's messages. */
export const BATCH_URLS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] as const;

export type BatchUrl = (typeof BATCH_URLS)[number];

/** The `url` of the lines that the gateway writes for Anthropic's Message Batches. Clients name no such line. */
export const MESSAGES_URL = "/v1/messages";

/** The `url` of any line. */
export type LineUrl = BatchUrl | typeof MESSAGES_URL;

type BatchEndpoint = {
  endpoint: Endpoint;
  /** The name in OpenAI's messages. */
  title: string;
};

const ENDPOINTS: Readonly<Record<LineUrl, BatchEndpoint>> = {
  "/v1/chat/completions": { endpoint: "chat", title: "Chat Completions" },
  "/v1/completions": { endpoint: "completions", title: "Completions" },
  "/v1/embeddings": { endpoint: "embeddings", title: "Embeddings" },
  "/v1/responses": { endpoint: "responses", title: "Responses" },
  "/v1/messages": { endpoint: "messages", title: "Messages" },
};

const LINE_URLS: Readonly<Record<Endpoint, LineUrl>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
  responses: "/v1/responses",
  messages: MESSAGES_URL,
};

/** The URL of an endpoint. */
export function batchUrl(endpoint: Endpoint): LineUrl {
  return LINE_URLS[endpoint];
}

/** The endpoint of a URL. */
export function batchEndpoint(url: LineUrl): BatchEndpoint {
  return ENDPOINTS[url];
}
