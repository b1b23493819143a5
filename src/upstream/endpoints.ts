/** The endpoints that pass through byte for byte: where an upstream has them, and what goes with a request to it. */
import type { Reason } from "../errors.ts";
import type { Upstream } from "./config.ts";
import type { Endpoint } from "./json-request.ts";

const OPENAI_PATHS: Readonly<Record<Exclude<Endpoint, "messages">, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  embeddings: "/embeddings",
  responses: "/responses",
};

/** Headers of the client's that an upstream reads; all others stay here. */
const CLIENT_HEADERS = ["accept", "openai-beta", "anthropic-version", "anthropic-beta"];

/** Where an endpoint is asked at an upstream, or why it is not there: protocols are not translated into each other. */
export function endpointUrl(
  upstream: Upstream,
  endpoint: Endpoint,
): { ok: true; url: string } | { ok: false; reason: Reason } {
  const { kind, baseUrl, name } = upstream;
  if (endpoint === "messages") {
    if (kind === "openai")
      return refused(`/v1/messages needs an anthropic upstream, and ${name} speaks OpenAI's protocol`);
    return { ok: true, url: `${baseUrl}/v1/messages` };
  }
  if (kind === "anthropic")
    return refused(`${name} is an anthropic upstream; expected the model of another at this endpoint`);
  return { ok: true, url: `${baseUrl}${OPENAI_PATHS[endpoint]}` };
}

/** The headers of a request to an upstream, with its key: never log or return them. `client` looks up the client's. */
export function passHeaders(upstream: Upstream, client: (name: string) => string | undefined): Record<string, string> {
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

/** Headers of an upstream's answer that its clients read. Its own request id goes by another name than the gateway's. */
export function answerHeaders(upstream: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of upstream) {
    if (name === "content-type" || PASSED_ON.test(name)) headers[name] = value;
    else if (name === "x-request-id" || name === "request-id") headers["x-upstream-request-id"] = value;
  }
  return headers;
}

const PASSED_ON = /^(x-ratelimit-|anthropic-ratelimit-|openai-(processing-ms|version|model)$|retry-after(-ms)?$)/;

function refused(message: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_request", message: `model: ${message}`, param: "model" } };
}
