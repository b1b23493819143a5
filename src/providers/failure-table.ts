/**
 * What a failed answer means, by its status and by the code in its body: whether its attempt is charged, and whether it is
 * tried again. The one table of both, with the source of every row. Free is only what providers document as unbilled; a
 * doubt is `unknown`, which stays charged at its reservation.
 */
import type { FailureClass } from "../call.ts";

/** How a failed attempt is treated. `retryable`: the same request may succeed later. */
export type Treatment = { class: FailureClass; retryable: boolean };

/** Whether this upstream bills requests that it read and refused, as configured by the operator. */
export type ErrorsCost = "free" | "reservation";

type StatusRule = Treatment & {
  statuses: readonly number[];
  /** The upstream read the request before it refused it: with `errors_cost: "reservation"` such a refusal is charged. */
  billable: boolean;
  source: string;
};

/** Every status that means something of its own; `OTHER` has the rest. */
export const STATUS_RULES: readonly StatusRule[] = [
  {
    statuses: [400, 422],
    ...{ class: "rejected", retryable: false, billable: true },
    source:
      "Gemini API, billing FAQ: a request that fails with a 400 is not charged; OpenAI and Anthropic bill usage only",
  },
  {
    statuses: [401],
    ...{ class: "rejected", retryable: false, billable: false },
    source: "RFC 9110, 15.5.2: the request lacks valid credentials, so there is no account to bill",
  },
  {
    statuses: [402],
    ...{ class: "rejected", retryable: false, billable: false },
    source: "DeepSeek and OpenRouter, error codes: the balance does not cover the request, which is not run",
  },
  {
    statuses: [403],
    ...{ class: "rejected", retryable: false, billable: true },
    source: "OpenAI and Anthropic, error codes: no permission. xAI answers so to content that violates its rules",
  },
  {
    statuses: [404],
    ...{ class: "rejected", retryable: false, billable: false },
    source: "OpenAI and Anthropic, error codes: no such model or route",
  },
  {
    statuses: [405, 415],
    ...{ class: "rejected", retryable: false, billable: false },
    source: "RFC 9110, 15.5.6 and 15.5.16: refused by its method or content type, before the content is read",
  },
  {
    statuses: [409],
    ...{ class: "transient", retryable: true, billable: false },
    source: "OpenAI's SDKs: a lock that could not be taken, tried again",
  },
  {
    statuses: [413],
    ...{ class: "rejected", retryable: false, billable: false },
    source: "Anthropic, errors: refused by its size in front of the API servers",
  },
  {
    statuses: [429],
    ...{ class: "rate_limited", retryable: true, billable: false },
    source: "OpenAI, Azure and Anthropic, rate limits: turned away, not billed",
  },
  {
    statuses: [498],
    ...{ class: "transient", retryable: true, billable: false },
    source: "Groq, error codes: the flex tier is at capacity and the request is not processed",
  },
  {
    statuses: [500, 502, 503],
    ...{ class: "transient", retryable: true, billable: false },
    source: "Gemini API, billing FAQ: a request that fails with a 500 is not charged; OpenAI, error codes: retry",
  },
  {
    statuses: [529],
    ...{ class: "transient", retryable: true, billable: false },
    source: "Anthropic, errors: overloaded, the request was not taken",
  },
  {
    statuses: [521, 525, 526],
    ...{ class: "transient", retryable: true, billable: false },
    source: "Cloudflare, 5xx errors: the origin refused the connection, or TLS with it failed, so it got no request",
  },
  {
    statuses: [408, 504, 520, 522, 523, 524],
    ...{ class: "unknown", retryable: true, billable: true },
    source: "Cloudflare, 5xx errors, and RFC 9110: the proxy stopped waiting; the origin goes on, and bills",
  },
];

type RangeRule = Treatment & { from: number; to: number; billable: boolean; source: string };

/** What all other statuses mean; the first range that contains the status decides. */
export const OTHER: readonly RangeRule[] = [
  {
    ...{ from: 0, to: 399, class: "rejected", retryable: false, billable: false },
    source: "Fetch: a redirect, which is not followed; it may be reported as status 0",
  },
  {
    ...{ from: 400, to: 499, class: "unknown", retryable: false, billable: true },
    source: "in doubt: no provider documents it as unbilled (Groq's 499, the 424 of text-generation-inference)",
  },
  {
    ...{ from: 500, to: Infinity, class: "unknown", retryable: true, billable: true },
    source: "in doubt: proxies report under such statuses what may have reached the origin",
  },
];

/** Codes in the body that override the status: final in any case, and `billed` if tokens were spent nevertheless. */
type CodeRule = { codes: readonly string[]; billed: boolean; source: string };

/** Codes are compared without case and punctuation: the same one is `content_filter` and `ContentFilter`. */
export const CODE_RULES: readonly CodeRule[] = [
  {
    codes: ["content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation", "content_policy"],
    billed: true,
    source: "Azure OpenAI, content filtering: a 400 that the filter causes is charged, prompt and completion",
  },
  {
    codes: ["invalid_prompt", "data_inspection_failed"],
    billed: true,
    source: "in doubt: filters of OpenAI's reasoning models and of Qwen, which look at the prompt, or at the answer",
  },
  {
    codes: ["tool_use_failed", "json_validate_failed", "output_parse_failed"],
    billed: true,
    source: "Groq, error codes: the model generated what could not be used; the error quotes it as failed_generation",
  },
  {
    codes: ["context_length_exceeded", "exceed_context_size_error"],
    billed: false,
    source: "OpenAI and llama.cpp: the prompt does not fit the model, however often it is sent",
  },
];

const BY_STATUS = new Map(STATUS_RULES.flatMap((rule) => rule.statuses.map((status) => [status, rule] as const)));
const BY_CODE = new Map(CODE_RULES.flatMap((rule) => rule.codes.map((code) => [folded(code), rule] as const)));

/** How an answer with this status, and these codes in its error, is treated at an upstream whose errors cost that. */
export function treatmentOf(status: number, codes: readonly string[], errorsCost: ErrorsCost): Treatment {
  const rule = BY_STATUS.get(status) ?? OTHER.find(({ to }) => status <= to);
  if (rule === undefined) throw new Error(`${status} is no status`);
  const coded = rulesOf(codes);
  if (coded.some(({ billed }) => billed)) return { class: "unknown", retryable: false };
  if (rule.billable && errorsCost === "reservation") return { class: "unknown", retryable: rule.retryable };
  if (coded.length > 0) return { class: rule.class === "unknown" ? "unknown" : "rejected", retryable: false };
  return { class: rule.class, retryable: rule.retryable };
}

/** Whether an error with these codes is final, whatever its status. */
export function isFinal(codes: readonly string[]): boolean {
  return rulesOf(codes).length > 0;
}

function rulesOf(codes: readonly string[]): CodeRule[] {
  return codes.map((code) => BY_CODE.get(folded(code))).filter((rule) => rule !== undefined);
}

function folded(code: string): string {
  return code.toLowerCase().replace(/[^a-z0-9]/g, "");
}
