/** Turns a leased call into the HTTP request of one attempt. The only place that puts a provider key on the wire. */
import type { CallBody, Lease } from "../../../call.ts";
import { chatResponseFormat } from "../../../text/schema/forms.ts";
import type { Upstream } from "../../config/types.ts";
import { forwardedParams } from "../forwarded.ts";
import { jsonHeaders } from "../json-headers.ts";
import type { UpstreamRequest } from "../kind.ts";

/**
 * The non-streaming chat completion request of one attempt. `system` goes first, a `prompt` becomes the user message,
 * the cap goes into the field that the upstream reads, a schema into `response_format`, and `params` follow unchanged, except for names that have a field of
 * their own, which the edge refuses, and other spellings of the cap: exactly one is sent.
 */
export function buildRequest(upstream: Upstream, lease: Lease, body: CallBody): UpstreamRequest {
  const { schema } = body;
  return {
    url: `${upstream.baseUrl}/chat/completions`,
    headers: jsonHeaders(upstream, { headers: {}, keyHeaders: bearer }),
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

/** The header in which most providers take a key. */
export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

function requestMessages(body: CallBody): readonly unknown[] {
  const messages = body.messages ?? [{ role: "user", content: body.prompt ?? "" }];
  return body.system === undefined ? messages : [{ role: "system", content: body.system }, ...messages];
}
