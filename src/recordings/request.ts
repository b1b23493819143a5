/** The request of a call as a tape knows it, and the text by which equal requests are found. */
import type { CallBody, Endpoint } from "../call.ts";
import { CASSETTE_CUT_CHARS, CASSETTE_REQUEST_CHARS_MAX } from "../limits.ts";
import { canonicalJson } from "../text/schema/canonical.ts";
import type { KeptRequest, TapedRequest } from "./types.ts";

/**
 * The request of a native call. A prompt is one user message, so both forms are equal.
 * @param maxTokens The cap that its client requests: what the budget makes of it differs from run to run.
 */
export function callRequest(
  { prompt, context, raw, include: _include, ...rest }: CallBody,
  model: string,
  maxTokens: number | null,
): TapedRequest {
  if (raw !== undefined) return relayedRequest({ endpoint: raw.endpoint, model, json: raw.json });
  const messages = prompt === undefined ? rest.messages : [{ role: "user", content: prompt }];
  const body: Record<string, unknown> = { ...rest, messages };
  if (maxTokens !== null) body["max_tokens"] = maxTokens;
  // Its id says what the text is; where it is stored says nothing.
  if (context !== undefined) body["context"] = present({ ...context, object: undefined });
  return { endpoint: "call", model, body: present(body) };
}

/** The request of a body that its client wrote, for a model of the upstream. */
export function relayedRequest(sent: {
  endpoint: Endpoint;
  model: string;
  json: string;
  headers?: Readonly<Record<string, string>>;
  query?: string;
}): TapedRequest {
  const { endpoint, model, json, headers = {}, query = "" } = sent;
  const { model: _named, ...body } = exactJson(json);
  return {
    endpoint,
    model,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(query === "" ? {} : { query }),
    body,
  };
}

/** A JSON object whose numbers that JavaScript cannot hold are texts of their digits, so that they stay different. */
function exactJson(json: string): Record<string, unknown> {
  if (!/\d{16}/.test(json)) return JSON.parse(json);
  return JSON.parse(json, (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && !isExact(value, context.source)
      ? { $number: context.source }
      : value,
  );
}

function isExact(value: number, source: string): boolean {
  return Number.isSafeInteger(value) || String(value) === source;
}

function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The same text for equal requests, whatever the order of their names. Its SHA-256 is the key of the request. */
export function requestText(request: TapedRequest): string {
  return canonicalJson(request);
}

/** The request as it is kept: of a very long one only the beginning is shown later. */
export function keptRequest(request: TapedRequest, text: string, key: string): KeptRequest {
  if (text.length <= CASSETTE_REQUEST_CHARS_MAX) return { request };
  return { cut: { model: request.model, text: text.slice(0, CASSETTE_CUT_CHARS).toWellFormed(), key } };
}
