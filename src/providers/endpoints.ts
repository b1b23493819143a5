/** The endpoints that are relayed byte for byte: their URLs at an upstream, and the headers of requests and answers. */
import { quoted, type Reason } from "../errors.ts";
import { USABLE_MODEL_CHARS_MAX, USABLE_MODELS_MAX } from "../limits.ts";
import { addressOf } from "./config/address.ts";
import type { Upstream } from "./config/types.ts";
import type { Endpoint } from "../call.ts";
import { keyHeadersOf, kindOf } from "./kinds/table.ts";
import { noAddress } from "./kinds/no-address.ts";
import { withoutOwnSecrets } from "./redact.ts";

/** Headers of the client that are forwarded to an upstream; no others are. */
const CLIENT_HEADERS = ["accept", "openai-beta", "anthropic-version", "anthropic-beta"];

/**
 * The URL of an endpoint at an upstream for a model, or why the upstream has none: protocols are not translated into each other.
 * `below`: a path below the endpoint.
 */
export function endpointUrl(
  upstream: Upstream,
  endpoint: Endpoint,
  model: string,
  below = "",
): { ok: true; url: string } | { ok: false; reason: Reason } {
  const { endpoints, otherEndpoints } = kindOf(upstream);
  const path = endpoints[endpoint];
  if (path === undefined) return refused(otherEndpoints(upstream.name));
  const url = addressOf(upstream, `${path}${below}`, model);
  return url === null ? noAddress(upstream.name) : { ok: true, url };
}

/** Whether an upstream has an endpoint. */
export function hasEndpoint(upstream: Upstream, endpoint: Endpoint): boolean {
  return kindOf(upstream).endpoints[endpoint] !== undefined;
}

/** The gateway's routes of the endpoints. */
const ROUTE_OF: Readonly<Record<Endpoint, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

/** Why a model cannot be called at an endpoint, with the upstreams at which others can. `upstream`: the one that serves it. */
export function missingEndpoint(
  { upstream, endpoint, model }: { upstream: Upstream; endpoint: Endpoint; model: string },
  upstreams: readonly Upstream[],
): Reason {
  const route = ROUTE_OF[endpoint];
  const names = upstreams.filter((each) => hasEndpoint(each, endpoint)).map(({ name }) => name);
  const shown = names.slice(0, USABLE_MODELS_MAX).join(", ");
  const others =
    names.length === 0
      ? `no upstream of this gateway has ${route}`
      : `${route} works at ${shown}: name a model of ${names.length === 1 ? "it" : "one of them"}, such as ${names[0]}/MODEL`;
  const why = kindOf(upstream).otherEndpoints(upstream.name);
  const message = `model: ${quoted(model, USABLE_MODEL_CHARS_MAX)} is served by ${upstream.name}, but ${why}; ${others}. /query and /batch work at every upstream`;
  return { reason: "invalid_request", message, param: "model" };
}

/** The headers of a request to an upstream, with its key: never log or return them. `client` looks up a client's header. */
export function relayHeaders(upstream: Upstream, client: (name: string) => string | undefined): Record<string, string> {
  const headers: Record<string, string> = { "content-type": "application/json", "user-agent": "fanout" };
  for (const name of CLIENT_HEADERS) {
    const value = client(name);
    if (value !== undefined) headers[name] = value;
  }
  return { ...kindOf(upstream).headers, ...headers, ...upstream.headers, ...keyHeadersOf(upstream) };
}

/**
 * Headers of an upstream's answer that clients read, without its key. Its request id is renamed, because the gateway has its own.
 */
export function answerHeaders(answered: Headers, upstream: Upstream): Record<string, string> {
  const headers: Record<string, string> = {};
  // A loop over them costs twice as much: its iterator, and each of its results, are objects of the runtime.
  answered.forEach((value, name) => {
    if (name === "content-type" || RELAYED_HEADERS.test(name)) headers[name] = withoutOwnSecrets(value, upstream);
    else if (name === "x-request-id" || name === "request-id")
      headers["x-upstream-request-id"] = withoutOwnSecrets(value, upstream);
  });
  return headers;
}

const RELAYED_HEADERS = /^(x-ratelimit-|anthropic-ratelimit-|openai-(processing-ms|version|model)$|retry-after(-ms)?$)/;

function refused(message: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_request", message: `model: ${message}`, param: "model" } };
}
