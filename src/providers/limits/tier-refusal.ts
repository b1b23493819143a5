/**
 * Whether an upstream refused a request only for the service tier that the gateway asked for. All such refusals are free:
 * - OpenAI's flex answers 429 "Resource Unavailable" when it has no capacity, and does not charge for it
 *   (developers.openai.com/api/docs/guides/flex-processing). A 429 of the key's own limits is another matter: its code is
 *   `rate_limit_exceeded`.
 * - Groq's flex answers 498 `capacity_exceeded` (console.groq.com/docs/flex-processing).
 * - A model that is not sold in the tier is a 400 `invalid_request_error` (Azure OpenAI, flex processing).
 */
import type { Classification } from "../../call.ts";

/** Words for capacity that is not there, in codes and messages, which differ in case and punctuation. */
const NO_CAPACITY = /resources?[\W_]*unavailable|capacity/i;
const NAMES_TIER = /service[\W_]*tier|\bflex\b/i;

/** The classification of an answer to a request for a tier: marked if the tier alone was refused. */
export function withTierRefusal(status: number, classification: Classification): Classification {
  if (classification.kind !== "failure" || classification.stop !== undefined) return classification;
  if (classification.class === "unknown" || !refusesTier(status, classification.reason)) return classification;
  // It says nothing about the key, so it must not slow down other calls.
  return { ...classification, class: "rejected", retryAfterMs: null, refusesTier: true };
}

type Reason = Extract<Classification, { kind: "failure" }>["reason"];

function refusesTier(status: number, reason: Reason): boolean {
  if (reason.reason !== "upstream_error" && reason.reason !== "upstream_rate_limited") return false;
  const { upstreamCode = "", message } = reason;
  if (status === 498) return true;
  if (status === 429) return upstreamCode !== "rate_limit_exceeded" && NO_CAPACITY.test(`${upstreamCode} ${message}`);
  return (status === 400 || status === 422) && NAMES_TIER.test(message);
}
