/**
 * Which failures say that the key itself cannot be used, so that other calls with it fail in the same way. The one table of
 * them, with sources. In doubt a failure is its call's own: a stop makes all calls of the key wait.
 */
import type { StopReason } from "../../call.ts";
import type { ErrorWords } from "../formats/response/error.ts";

type StopRule = {
  stop: StopReason;
  statuses: readonly number[];
  /** Codes, or words of the message, of which one must fit; neither = the status is enough. */
  codes?: readonly string[];
  words?: RegExp;
  /** Words by which the failure is the call's own after all. */
  unless?: RegExp;
  source: string;
};

/** The first rule that fits decides. */
export const STOP_RULES: readonly StopRule[] = [
  {
    stop: "insufficient_quota",
    statuses: [400, 402, 403, 429],
    codes: [
      "insufficient_quota",
      "billing_hard_limit_reached",
      "billing_not_active",
      "billing_error",
      "exceeded_current_quota_error",
      "Arrearage",
    ],
    source: "OpenAI, error codes; Anthropic, errors: billing_error; Moonshot; Alibaba Model Studio: Arrearage",
  },
  {
    stop: "insufficient_quota",
    statuses: [400, 403, 429],
    words: /\b(credit balance is too low|used all available credits|out of credits|insufficient balance)\b/i,
    source: "Anthropic: a 400 with invalid_request_error; xAI: a 403; DeepSeek",
  },
  {
    stop: "insufficient_quota",
    statuses: [402],
    // OpenRouter: the rest of the credit pays for a smaller request.
    unless: /\bfewer max_tokens\b|\bcan only afford\b/i,
    source: "DeepSeek and OpenRouter, error codes: the balance is used up",
  },
  {
    stop: "invalid_key",
    statuses: [401],
    source: "RFC 9110, 15.5.2; OpenAI, error codes: invalid authentication or key, or no member of the organization",
  },
  {
    stop: "insufficient_quota",
    statuses: [429],
    words: /\bused up your daily free allocation\b/i,
    source: "Cloudflare Workers AI, errors: 3036, account limited",
  },
  {
    stop: "invalid_key",
    statuses: [400, 403],
    words:
      /\b(api key not valid|incorrect api key provided|security token included in the request|make sure your api key is valid|request signature we calculated)\b/i,
    source:
      "Gemini API: a 400; xAI: a 400; AWS, common errors: UnrecognizedClientException, SignatureDoesNotMatch, a 403",
  },
  {
    stop: "forbidden",
    statuses: [403],
    words: /\b(api key|account|organi[sz]ation|project|credentials?|country|region|suspended|deactivated|disabled)\b/i,
    // A key without a right to one model, or a request that breaks a rule, says nothing about other calls.
    unless: /\b(model|moderation|flagged|content|polic(y|ies)|safety|resource|deployment)\b/i,
    source: "OpenAI, error codes: country or region not supported; OpenRouter: a 403 is moderation's; Anthropic",
  },
];

/** Why a failed answer says that its key cannot be used; null = it does not. */
export function stopOf(status: number, { message, codes }: ErrorWords): StopReason | null {
  return STOP_RULES.find((rule) => fits(rule, status, message, codes))?.stop ?? null;
}

function fits(rule: StopRule, status: number, message: string, codes: readonly string[]): boolean {
  if (!rule.statuses.includes(status) || rule.unless?.test(message) === true) return false;
  const { codes: named, words } = rule;
  if (named === undefined && words === undefined) return true;
  return (words?.test(message) ?? false) || codes.some((code) => named?.includes(code) === true);
}
