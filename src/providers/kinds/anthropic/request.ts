/** Turns a leased call into the HTTP request of one attempt at an upstream that speaks Anthropic's Messages API. */
import type { CallBody, Lease } from "../../../call.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../limits.ts";
import { isRecord } from "../../../text/json/record.ts";
import { conversationOf } from "../../formats/anthropic/conversation.ts";
import { translatedTools } from "../../formats/anthropic/tools.ts";
import { messagesOutputFormat } from "../../../text/schema/forms.ts";
import { addressOf } from "../../config/address.ts";
import type { Upstream } from "../../config/types.ts";
import { forwardedParams } from "../forwarded.ts";
import { jsonHeaders } from "../json-headers.ts";
import type { BuiltRequest, UpstreamRequest } from "../kind.ts";
import { noAddress } from "../no-address.ts";

/** Version of the API that is spoken here; a configured header of that name wins. */
export const VERSION_HEADERS = { "anthropic-version": "2023-06-01" } as const;

/** The header that carries a key. */
export function keyHeaders(key: string): Record<string, string> {
  return { "x-api-key": key };
}

/**
 * The non-streaming request of one attempt. The API demands a completion cap: without one in the lease it is
 * `COMPLETION_TOKENS_DEFAULT`. `params` follow unchanged, except for tools in the chat form, which are translated, and for names with a field of their own. What the API cannot express is
 * refused with the field's name, never dropped.
 */
export function buildAnthropicRequest(upstream: Upstream, lease: Lease, body: CallBody): BuiltRequest {
  const conversation = conversationOf(body);
  if (!conversation.ok) return conversation;
  const { system, messages } = conversation;
  const translated = translatedTools(forwardedParams(body.params ?? {}));
  if (!translated.ok) return translated;
  const fields = JSON.stringify({
    model: lease.model,
    max_tokens: lease.capTokens ?? COMPLETION_TOKENS_DEFAULT,
    ...(system === null ? undefined : { system }),
    ...(body.temperature === undefined ? undefined : { temperature: body.temperature }),
    ...translated.params,
    ...outputConfig(body),
  });
  const url = addressOf(upstream, "/v1/messages", lease.model);
  if (url === null) return noAddress(upstream.name);
  const request: UpstreamRequest = {
    url,
    headers: jsonHeaders(upstream, { headers: VERSION_HEADERS, keyHeaders }),
    body: `${fields.slice(0, -1)},"messages":[${messages.join(",")}]}`,
  };
  return { ok: true, request };
}

/** The field for a schema, with what `params` has in it beside the format. */
function outputConfig({ schema, params }: CallBody): { output_config: object } | undefined {
  const format = schema === undefined ? null : messagesOutputFormat(schema);
  if (format === null) return undefined;
  const sent = params?.["output_config"];
  return { output_config: isRecord(sent) ? { ...sent, format } : { format } };
}
