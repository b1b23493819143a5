/**
 * What an upstream's answer means for its attempt: success, or a failure with the class that decides whether it is
 * charged and tried again. Pure: status, headers and body in, part of an outcome out. A doubt is `unknown`, which stays
 * charged, never `transient`, which is free.
 */
import type { FailureClass, Usage } from "../call.ts";
import type { Reason } from "../errors.ts";
import { NAME_CHARS_MAX, RESPONSE_BYTES_MAX } from "../limits.ts";
import { type AnswerError, errorIn, errorText } from "./answer-error.ts";
import { readAnthropicMessage } from "./anthropic-answer.ts";
import type { BodyText } from "./body.ts";
import { readCompletion } from "./completion-answer.ts";
import type { Upstream } from "./config.ts";
import { shownMessage, withoutOwnSecrets } from "./redact.ts";
import { readRetryAfterMs } from "./retry-after.ts";

/**
 * An answer as far as it came. `body` is null when the connection broke before its end. The headers are read only for a
 * failure: reading them is a noticeable part of a success's time on Workers. `nowMs` is the time that a date in them is
 * compared with.
 */
export type Answer = { status: number; headers: Headers; nowMs: number; body: BodyText | null };

/** An outcome without its latency. */
export type Verdict =
  | { kind: "success"; text: string; model: string; finishReason: string | null; usage: Usage | null }
  | { kind: "failure"; class: FailureClass; reason: Reason; retryAfterMs: number | null; body?: string };

/** Classifies an answer whose status line arrived; `model` stands in where the answer names none. */
export function classify(upstream: Upstream, model: string, answer: Answer): Verdict {
  const { status, body } = answer;
  if (status < 200 || status > 299) return classifyStatus(upstream, answer);
  if (body === null) return truncated(upstream, "broke off its answer");
  if (!body.ok) return unreadable(upstream, status, body.why);
  let json: unknown;
  try {
    json = JSON.parse(body.text);
  } catch {
    return notJson(upstream, answer, body.text);
  }
  const error = errorIn(json);
  if (error !== null) return classifyErrorIn200(upstream, answer, error);
  return readAnswer(upstream, model, status, json);
}

/** A failure that names no retry hint. */
export function failed(failureClass: FailureClass, reason: Reason): Verdict {
  return { kind: "failure", class: failureClass, reason, retryAfterMs: null };
}

function classifyStatus(upstream: Upstream, answer: Answer): Verdict {
  const { status, body } = answer;
  // Fetch may report a redirect that it did not follow as status 0.
  if (status === 0 || (status >= 300 && status < 400)) {
    const message = `${upstream.name} answered with a redirect, which is not followed: check its base_url`;
    return failed("rejected", upstreamError(upstream, status === 0 ? null : status, message, false));
  }
  const words = shownMessage(errorText(body?.ok === true ? body.text : ""), upstream);
  const said = words === "" ? "" : `: ${words}`;
  if (status === 401 || status === 403) {
    const message = `${upstream.name} refused the gateway's credentials (status ${status})${said}`;
    return failed("rejected", upstreamError(upstream, status, message, false));
  }
  return byStatus(upstream, status, `${upstream.name} answered ${status}${said}`, answer);
}

/** 409 is tried again because OpenAI uses it for a lock it could not take, and both its SDKs do the same. */
function byStatus(upstream: Upstream, status: number, message: string, { headers, nowMs }: Answer): Verdict {
  const retryAfterMs = readRetryAfterMs(headers, nowMs);
  if (status === 429) {
    const reason: Reason = { reason: "upstream_rate_limited", upstream: upstream.name, message, retryAfterMs };
    return { kind: "failure", class: "rate_limited", reason, retryAfterMs };
  }
  if (status === 408 || status === 409 || status >= 500) {
    const reason = upstreamError(upstream, status, message, true);
    return { kind: "failure", class: "transient", reason, retryAfterMs };
  }
  return failed("rejected", upstreamError(upstream, status, message, false));
}

/**
 * Routers report errors inside a 200. Those that come with a part of an answer or with usage struck after generation
 * had begun, so they may have been billed.
 */
function classifyErrorIn200(upstream: Upstream, answer: Answer, error: AnswerError): Verdict {
  const message = `${upstream.name} answered ${answer.status} with an error: ${shownMessage(error.message, upstream)}`;
  if (error.afterStart) return failed("unknown", upstreamError(upstream, error.status ?? answer.status, message, true));
  if (error.status === null) return failed("rejected", upstreamError(upstream, answer.status, message, false));
  return byStatus(upstream, error.status, message, answer);
}

function readAnswer(upstream: Upstream, model: string, status: number, json: unknown): Verdict {
  const read = upstream.kind === "anthropic" ? readAnthropicMessage(json) : readCompletion(json);
  if (!read.ok) {
    const message = `${upstream.name} answered ${status} ${read.fault}`;
    return failed("unknown", upstreamError(upstream, status, message, true));
  }
  return {
    kind: "success",
    text: withoutOwnSecrets(read.text, upstream),
    model: shortName(read.model, upstream) ?? model,
    finishReason: shortName(read.finishReason, upstream),
    usage: read.usage,
  };
}

function shortName(value: unknown, upstream: Upstream): string | null {
  if (typeof value !== "string" || value === "") return null;
  return withoutOwnSecrets(value, upstream).slice(0, NAME_CHARS_MAX).toWellFormed();
}

function notJson(upstream: Upstream, { status, headers }: Answer, text: string): Verdict {
  const start = text.trimStart().slice(0, 1);
  if (start === "") return truncated(upstream, "sent an empty answer");
  if (start === "{" || start === "[") return truncated(upstream, "sent JSON that breaks off or is malformed");
  const what = start === "<" ? "an HTML or XML page" : "a body that is not JSON";
  const contentType = headers.get("content-type");
  const type = contentType === null ? "" : ` (content-type ${shownMessage(contentType, upstream)})`;
  const message = `${upstream.name} answered ${status} with ${what}${type}: check its base_url`;
  return failed("unknown", upstreamError(upstream, status, message, true));
}

function unreadable(upstream: Upstream, status: number, why: "too_large" | "not_utf8"): Verdict {
  const message =
    why === "too_large"
      ? `${upstream.name} answered ${status} with more than ${RESPONSE_BYTES_MAX} bytes`
      : `${upstream.name} answered ${status} with bytes that are not UTF-8`;
  return failed("unknown", upstreamError(upstream, status, message, why === "not_utf8"));
}

function truncated(upstream: Upstream, what: string): Verdict {
  return failed("unknown", {
    reason: "upstream_truncated",
    upstream: upstream.name,
    message: `${upstream.name} ${what}`,
  });
}

function upstreamError(upstream: Upstream, status: number | null, message: string, retryable: boolean): Reason {
  return { reason: "upstream_error", upstream: upstream.name, status, message, retryable };
}
