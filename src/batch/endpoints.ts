/** The endpoints that a batch may ask: `url` of its lines and `endpoint` of the batch. */
import type { Endpoint } from "../upstream/json-request.ts";

/** In the order in which OpenAI's messages list them. */
export const BATCH_URLS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] as const;

export type BatchUrl = (typeof BATCH_URLS)[number];

type BatchEndpoint = {
  endpoint: Exclude<Endpoint, "messages">;
  /** As OpenAI's messages name it. */
  title: string;
};

const ENDPOINTS: Readonly<Record<BatchUrl, BatchEndpoint>> = {
  "/v1/chat/completions": { endpoint: "chat", title: "Chat Completions" },
  "/v1/completions": { endpoint: "completions", title: "Completions" },
  "/v1/embeddings": { endpoint: "embeddings", title: "Embeddings" },
  "/v1/responses": { endpoint: "responses", title: "Responses" },
};

/** What is asked at a URL. */
export function batchEndpoint(url: BatchUrl): BatchEndpoint {
  return ENDPOINTS[url];
}
