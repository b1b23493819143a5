/** Turns a leased call into the HTTP request of one attempt. The only place that puts a provider key on the wire. */
import type { CallBody, Lease } from "../../../call.ts";
import { chatResponseFormat } from "../../../text/schema/forms.ts";
import { addressOf } from "../../config/address.ts";
import type { Upstream } from "../../config/types.ts";
import { forwardedParams } from "../forwarded.ts";
import { jsonHeaders } from "../json-headers.ts";
import type { BuiltRequest, UpstreamRequest } from "../kind.ts";
import { noAddress } from "../no-address.ts";

/**
 * The non-streaming chat completion request of one attempt. `system` goes first, a `prompt` becomes the user message,
 * the cap goes into the field that the upstream reads, a schema into `response_format`, and `params` follow unchanged, except for names that have a field of
 * their own, which the edge refuses, and other spellings of the cap: exactly one is sent.
 */
export function buildRequest(upstream: Upstream, lease: Lease, body: CallBody): BuiltRequest {
  const { schema } = body;
  const url = addressOf(upstream, "/chat/completions", lease.model);
  if (url === null) return noAddress(upstream.name);
  const request: UpstreamRequest = {
    url,
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
  return { ok: true, request };
}

/** The header in which most providers take a key. */
export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

function requestMessages(body: CallBody): readonly unknown[] {
  const messages = body.messages ?? [{ role: "user", content: body.prompt ?? "" }];
  return body.system === undefined ? messages : [{ role: "system", content: body.system }, ...messages];
}
