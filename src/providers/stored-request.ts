/**
 * Raw requests: whole bodies of an endpoint that are stored and sent later, such as the lines of a Batch file. They are
 * sent as their client wrote them, except for model and cap, and their answers are stored as the upstream wrote them,
 * except for the cost.
 */
import type { CallBody, Classification, Lease, Usage } from "../call.ts";
import { chargeOf } from "../run/money/estimate.ts";
import { usdOf } from "../run/money/money.ts";
import { UPSTREAM_ERROR_CHARS_MAX } from "../limits.ts";
import { classify, type HttpAnswer } from "./classify.ts";
import type { Upstream } from "./config/types.ts";
import { endpointUrl, relayHeaders } from "./endpoints.ts";
import type { BuiltRequest } from "./kinds/kind.ts";
import { readJsonAnswer } from "./formats/response/read.ts";
import { readRequest } from "./formats/request/read.ts";
import { rewriteRequest } from "./formats/request/rewrite.ts";
import { fillCost } from "./formats/usage/cost.ts";
import { redacted, withoutOwnSecrets } from "./redact.ts";
import { priceOf } from "./config/registry.ts";

type Raw = NonNullable<CallBody["raw"]>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The HTTP request of one attempt at a raw request; a stream is refused. */
export function buildRawRequest(upstream: Upstream, lease: Lease, { endpoint, json }: Raw): BuiltRequest {
  const target = endpointUrl(upstream, endpoint, lease.model);
  if (!target.ok) return target;
  const bytes = encoder.encode(json);
  const facts = readRequest(endpoint, bytes);
  if (!facts.ok) return facts;
  if (facts.value.stream) {
    return { ok: false, reason: { reason: "invalid_request", message: "stream: expected false", param: "stream" } };
  }
  const { model, capTokens: cap } = lease;
  const sent = rewriteRequest(bytes, facts.value, { model, cap, capField: upstream.capField, includeUsage: false });
  const headers = { accept: "application/json", ...relayHeaders(upstream, () => undefined) };
  return { ok: true, request: { url: target.url, headers, body: decoder.decode(sent) } };
}

/**
 * Classifies the answer to a raw request: a success is the whole body, a failure has the upstream's own error body. `billed`: the
 * usage as it is charged, if that is not what the answer says; absent = it is.
 */
export function classifyRaw(
  upstream: Upstream,
  lease: Pick<Lease, "model" | "priced">,
  { endpoint }: Pick<Raw, "endpoint">,
  answer: HttpAnswer,
  billed: (usage: Usage) => Usage = (usage) => usage,
): Classification {
  const { status, body } = answer;
  if (status >= 200 && status <= 299 && body?.ok === true) {
    const bytes = encoder.encode(body.text);
    const read = readJsonAnswer(endpoint, bytes);
    const { hasError, usage: reported, model, finishReason } = read;
    if (read.ok && !hasError) {
      const usage = reported === null ? null : billed(reported);
      const price = priceOf(upstream, lease.model);
      const named = usage === null || usage.costNanoUsd !== null;
      const priced = named ? bytes : fillCost(bytes, read.object, usdOf(chargeOf(usage, price, lease.priced).usd));
      const text = withoutOwnSecrets(decoder.decode(priced), upstream);
      return { kind: "success", text, model: model ?? lease.model, finishReason, usage };
    }
  }
  const classification = classify(upstream, lease.model, answer);
  if (classification.kind === "success" || body?.ok !== true || status === 401 || status === 403) return classification;
  return { ...classification, body: redacted(body.text.slice(0, UPSTREAM_ERROR_CHARS_MAX), upstream) };
}
