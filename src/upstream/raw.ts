/**
 * Raw requests: whole bodies of an endpoint that are stored and sent later, such as the lines of a Batch file. They are
 * sent as their client wrote them, but for model and cap, and their answers are kept as the upstream wrote them, but for
 * the cost.
 */
import type { CallBody, Lease } from "../call.ts";
import { chargeOf } from "../budget/estimate.ts";
import { usdOf } from "../budget/money.ts";
import { UPSTREAM_ERROR_CHARS_MAX } from "../limits.ts";
import type { BuiltRequest } from "./anthropic-request.ts";
import { classify, type Answer, type Verdict } from "./classify.ts";
import type { Upstream } from "./config.ts";
import { endpointUrl, passHeaders } from "./endpoints.ts";
import { readJsonAnswer } from "./json-answer.ts";
import { readRequest } from "./json-request.ts";
import { fillCost, rewriteRequest } from "./json-rewrite.ts";
import { redacted, withoutOwnSecrets } from "./redact.ts";
import { priceOf } from "./registry.ts";

type Raw = NonNullable<CallBody["raw"]>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The HTTP request of one attempt at a raw request; a stream would not be understood. */
export function buildRawRequest(upstream: Upstream, lease: Lease, { endpoint, json }: Raw): BuiltRequest {
  const target = endpointUrl(upstream, endpoint);
  if (!target.ok) return target;
  const bytes = encoder.encode(json);
  const facts = readRequest(endpoint, bytes);
  if (!facts.ok) return facts;
  if (facts.value.stream) {
    return { ok: false, reason: { reason: "invalid_request", message: "stream: expected false", param: "stream" } };
  }
  const { model, capTokens: cap } = lease;
  const sent = rewriteRequest(bytes, facts.value, { model, cap, capField: upstream.capField, includeUsage: false });
  const headers = { accept: "application/json", ...passHeaders(upstream, () => undefined) };
  return { ok: true, request: { url: target.url, headers, body: decoder.decode(sent) } };
}

/** Classifies the answer to a raw request: a success is the whole body, a failure keeps the upstream's own words. */
export function classifyRaw(upstream: Upstream, lease: Lease, { endpoint }: Raw, answer: Answer): Verdict {
  const { status, body } = answer;
  if (status >= 200 && status <= 299 && body?.ok === true) {
    const bytes = encoder.encode(body.text);
    const { ok, hasError, usage, model, finishReason } = readJsonAnswer(endpoint, bytes);
    if (ok && !hasError) {
      const price = priceOf(upstream, lease.model);
      const named = usage === null || usage.costNanoUsd !== null;
      const priced = named ? bytes : fillCost(bytes, usdOf(chargeOf(usage, price).usd));
      const text = withoutOwnSecrets(decoder.decode(priced), upstream);
      return { kind: "success", text, model: model ?? lease.model, finishReason, usage };
    }
  }
  const verdict = classify(upstream, lease.model, answer);
  if (verdict.kind === "success" || body?.ok !== true || status === 401 || status === 403) return verdict;
  return { ...verdict, body: redacted(body.text.slice(0, UPSTREAM_ERROR_CHARS_MAX), upstream) };
}
