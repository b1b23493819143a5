/** Turns a leased call into the HTTP request of one attempt. The only place that puts a provider key on the wire. */
import type { CallBody, Lease } from "../call.ts";
import { OWN_PARAMS } from "./formats/request/own-params.ts";
import { CAP_SPELLINGS } from "./formats/request/request-fields.ts";
import { chatResponseFormat } from "../text/schema/forms.ts";
import type { Upstream } from "./config/types.ts";
import type { UpstreamRequest } from "./exchange.ts";

/**
 * The non-streaming chat completion request of one attempt. `system` goes first, a `prompt` becomes the user message,
 * the cap goes into the field that the upstream reads, a schema into `response_format`, and `params` follow unchanged, except for names that have a field of
 * their own, which the edge refuses, and other spellings of the cap: exactly one is sent.
 */
export function buildRequest(upstream: Upstream, lease: Lease, body: CallBody): UpstreamRequest {
  const { schema } = body;
  return {
    url: `${upstream.baseUrl}/chat/completions`,
    headers: requestHeaders(upstream),
    body: JSON.stringify({
      model: lease.model,
      messages: requestMessages(body),
      ...(lease.capTokens === null ? undefined : { [upstream.capField]: lease.capTokens }),
      ...(body.temperature === undefined ? undefined : { temperature: body.temperature }),
      ...(lease.tier === undefined ? undefined : { service_tier: lease.tier }),
      ...(body.params === undefined ? undefined : forwardedParams(body.params)),
      ...(schema === undefined ? undefined : { response_format: chatResponseFormat(schema) }),
    }),
  };
}

function requestHeaders(upstream: Upstream): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "application/json",
    "user-agent": "fanout",
    ...upstream.headers,
  };
  if (upstream.apiKey !== null) headers["authorization"] = `Bearer ${upstream.apiKey}`;
  return headers;
}

function requestMessages(body: CallBody): readonly unknown[] {
  const messages = body.messages ?? [{ role: "user", content: body.prompt ?? "" }];
  return body.system === undefined ? messages : [{ role: "system", content: body.system }, ...messages];
}

/** The entries of `params` that are forwarded. */
export function forwardedParams(params: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !OWN_PARAMS.has(name) && !CAPS.has(name)));
}

const CAPS: ReadonlySet<string> = new Set(CAP_SPELLINGS);
