/** Turns a leased call into the HTTP request of one attempt. The only place that puts a provider key on the wire. */
import type { CallBody, Lease } from "../call.ts";
import type { Upstream } from "./config.ts";

/** The HTTP request of one attempt, always a POST. `headers` hold the provider key: never log or return them. */
export type UpstreamRequest = { url: string; headers: Record<string, string>; body: string };

/**
 * Names refused in a call's `params`, each with what it would break. The first block has a field of its own or changes
 * how the answer is framed; the second spends money that the reservation did not count.
 */
export const RESERVED_PARAMS: ReadonlyMap<string, string> = new Map([
  ["model", "The model decides price and permission; name it in the field `model`."],
  ["messages", "The messages decide the prompt reservation; send them in the field `messages`."],
  ["prompt", "The prompt decides the prompt reservation; send it in the field `prompt`."],
  ["system", "The system text counts towards the prompt; send it in the field `system`."],
  ["temperature", "Send it in the field `temperature`; two values would contradict each other."],
  ["max_tokens", "The completion cap is reserved and may be clamped; send it in the field `max_tokens`."],
  ["max_completion_tokens", "The completion cap is reserved and may be clamped; send it as `max_tokens`."],
  ["max_output_tokens", "The completion cap is reserved and may be clamped; send it as `max_tokens`."],
  ["stream", "The gateway reads one whole answer per attempt; a stream would not be understood."],
  ["stream_options", "It only makes sense with a stream, which the gateway does not ask for."],
  ["background", "The upstream would answer before the work is done, so its cost would never be seen."],
  ["deferred", "The upstream would answer before the work is done, so its cost would never be seen."],
  ["compaction", "The upstream would answer with a summary of the messages instead of a text."],
  ["thread", "The upstream would add messages that it holds, which the prompt reservation did not count."],

  ["n", "Each further choice is a further completion beyond the cap; ask several calls instead."],
  ["best_of", "Candidates that are thrown away are billed beyond the cap."],
  ["use_beam_search", "Beams are completions beyond the cap."],
  ["num_beams", "Beams are completions beyond the cap."],
  ["prediction", "Predicted tokens that are rejected are billed as completion beyond the cap."],
  ["service_tier", "Another tier has another price than the one reserved."],
  ["speed", "Another speed has another price than the one reserved."],
  ["inference_geo", "Another region has another price than the one reserved."],
  ["billing_policy", "It decides who pays, which only the operator may."],
  ["context_management", "Summaries that the upstream makes on the way are billed beyond the cap."],
  ["mcp_servers", "Tools and answers of servers would add to the prompt beyond its reservation."],
  ["container", "Containers are billed by time, not per token."],
  ["modalities", "Audio and image output have prices of their own."],
  ["audio", "Audio output has a price of its own."],
  ["web_search_options", "Searches are billed per call, not per token."],
  ["search_parameters", "Searches are billed per source, not per token."],
  ["plugins", "Plugins of a router are billed per use, not per token."],
  ["models", "Fallback models of a router have other prices than the one reserved."],
  ["fallbacks", "Fallback models of a router have other prices than the one reserved."],
  ["route", "A router's routing may pick a model of another price."],
  ["preset", "A router's preset may set the model and the cap."],
  ["provider", "A router's provider choice may have another price than the one reserved."],
]);

/**
 * The non-streaming chat completion request of one attempt. `system` goes first, a `prompt` becomes the user message,
 * the cap goes where the upstream reads it, `params` follow unchanged but for `RESERVED_PARAMS`, which are dropped:
 * the edge refuses them, and a body stored before a name was reserved must not slip past.
 */
export function buildRequest(upstream: Upstream, lease: Lease, body: CallBody): UpstreamRequest {
  return {
    url: `${upstream.baseUrl}/chat/completions`,
    headers: requestHeaders(upstream),
    body: JSON.stringify({
      model: lease.model,
      messages: requestMessages(body),
      ...(lease.capTokens === null ? undefined : { [upstream.capField]: lease.capTokens }),
      ...(body.temperature === undefined ? undefined : { temperature: body.temperature }),
      ...(body.params === undefined ? undefined : unreserved(body.params)),
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

/** The entries of `params` that may be passed on. */
export function unreserved(params: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !RESERVED_PARAMS.has(name)));
}
