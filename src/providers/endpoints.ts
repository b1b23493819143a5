/** The endpoints that are relayed byte for byte: their URLs at an upstream, and the headers of requests and answers. */
import type { Reason } from "../errors.ts";
import type { Upstream } from "./config/types.ts";
import type { Endpoint } from "../call.ts";
import { withoutOwnSecrets } from "./redact.ts";

const OPENAI_PATHS: Readonly<Record<Exclude<Endpoint, "messages">, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  embeddings: "/embeddings",
  responses: "/responses",
};

/** Headers of the client that are forwarded to an upstream; no others are. */
const CLIENT_HEADERS = ["accept", "openai-beta", "anthropic-version", "anthropic-beta"];

/** The URL of an endpoint at an upstream, or why the upstream has none: protocols are not translated into each other. */
export function endpointUrl(
  upstream: Upstream,
  endpoint: Endpoint,
): { ok: true; url: string } | { ok: false; reason: Reason } {
  const { kind, baseUrl, name } = upstream;
  if (kind === "pull") return refused(`${name} is served by pull workers; use /query or /batch`);
  if (endpoint === "messages") {
    if (kind === "openai")
      return refused(`/v1/messages needs an upstream that speaks Anthropic's protocol; ${name} speaks OpenAI's`);
    return { ok: true, url: `${baseUrl}/v1/messages` };
  }
  if (kind === "anthropic")
    return refused(`${name} speaks Anthropic's protocol; use a model of another upstream, or /v1/messages`);
  return { ok: true, url: `${baseUrl}${OPENAI_PATHS[endpoint]}` };
}

/** The headers of a request to an upstream, with its key: never log or return them. `client` looks up a client's header. */
export function relayHeaders(upstream: Upstream, client: (name: string) => string | undefined): Record<string, string> {
  const headers: Record<string, string> = { "content-type": "application/json", "user-agent": "fanout" };
  for (const name of CLIENT_HEADERS) {
    const value = client(name);
    if (value !== undefined) headers[name] = value;
  }
  Object.assign(headers, upstream.headers);
  if (upstream.kind === "anthropic") {
    headers["anthropic-version"] ??= "2023-06-01";
    if (upstream.apiKey !== null) headers["x-api-key"] = upstream.apiKey;
  } else if (upstream.apiKey !== null) headers["authorization"] = `Bearer ${upstream.apiKey}`;
  return headers;
}

/**
 * Headers of an upstream's answer that clients read, without its key. Its request id is renamed, because the gateway has its own.
 */
export function answerHeaders(answered: Headers, upstream: Upstream): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of answered) {
    if (name === "content-type" || RELAYED_HEADERS.test(name)) headers[name] = withoutOwnSecrets(value, upstream);
    else if (name === "x-request-id" || name === "request-id")
      headers["x-upstream-request-id"] = withoutOwnSecrets(value, upstream);
  }
  return headers;
}

const RELAYED_HEADERS = /^(x-ratelimit-|anthropic-ratelimit-|openai-(processing-ms|version|model)$|retry-after(-ms)?$)/;

function refused(message: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_request", message: `model: ${message}`, param: "model" } };
}
