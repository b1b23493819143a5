/**
 * What of a call decides its answer, as one text: the same for equal calls, and different for different ones. Its hash, with
 * the route that the call is sent to, is the key under which the answer is recorded. Times, order and priority are no part of it.
 */
import type { CallBody, DispatchOptions, Endpoint } from "../call.ts";
import { canonicalJson } from "../text/schema/canonical.ts";
import { recordedOptions } from "./compared.ts";

/**
 * The content of a native call: everything that is written into its upstream request, and the options that decide its answer, such as the
 * cap that its client requests. A prompt is one user message, so both forms of a call are equal. The order of names does not matter.
 */
export function callContent(
  body: CallBody,
  options: Pick<DispatchOptions, "maxTokens"> & Partial<DispatchOptions>,
): string {
  const { prompt, context, ...rest } = body;
  const messages = prompt === undefined ? rest.messages : [{ role: "user", content: prompt }];
  const content: Record<string, unknown> = { ...rest, messages, ...recordedOptions(options) };
  // The id says what the text is; where it is stored says nothing.
  if (context !== undefined) content["context"] = { ...context, object: undefined };
  const present = Object.entries(content).filter(([, value]) => value !== undefined);
  return canonicalJson(["call", Object.fromEntries(present)]);
}

/** A relayed request, but for its body. `headers`: those of the client's that change the answer. */
export type RelayedContent = { endpoint: Endpoint; query: string; headers: readonly (readonly [string, string])[] };

/**
 * The content of a relayed request: its very bytes, because a parsed body has lost the digits of large numbers. The head is
 * JSON and so has no line break, which therefore separates it from the body.
 */
export function relayedContent({ endpoint, query, headers }: RelayedContent, body: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(`${JSON.stringify(["relayed", endpoint, query, headers])}\n`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
}

/** The key of a recorded answer. `route`: the route, or the upstream and model, that the call resolves to. */
export function recordKey(route: string, contentHash: string): string {
  return `${route} ${contentHash}`;
}
