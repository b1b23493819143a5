/**
 * Classifies an upstream's answer: success, or a failure with the class that decides whether it is charged and retried.
 * Pure: status, headers and body in, part of an outcome out. A doubt is `unknown`, which stays charged, never `transient`,
 * which is free.
 */
import type { AnswerParts, Classification, FailureClass, Included, StopReason } from "../call.ts";
import type { Reason } from "../errors.ts";
import { NAME_CHARS_MAX, RESPONSE_BYTES_MAX } from "../limits.ts";
import type { AnswerError, ErrorWords } from "./formats/response/error.ts";
import type { BodyText } from "./read-body.ts";
import type { AnswerRead } from "./formats/response/chat.ts";
import type { Upstream } from "./config/types.ts";
import type { Treatment } from "./failure-table.ts";
import { kindOf } from "./kinds/table.ts";
import { shownCode, shownMessage, withoutOwnSecrets } from "./redact.ts";
import { readRetryAfterMs } from "./retry-after.ts";

/**
 * An answer as far as it arrived. `body` is null if the connection broke before its end. The headers are read only for a
 * failure: reading them is a noticeable part of a success's time on Workers. `nowMs` is the time that a date in them is
 * compared with.
 */
export type HttpAnswer = { status: number; headers: Headers; nowMs: number; body: BodyText | null };

/**
 * Classifies an answer whose status line arrived; `model` is used if the answer names none. `include`: what the call asks for of
 * the answer beside its text.
 */
export function classify(
  upstream: Upstream,
  model: string,
  answer: HttpAnswer,
  include: readonly Included[] = [],
): Classification {
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
  const { readAnswer, failures } = kindOf(upstream);
  const error = failures.errorIn(json);
  if (error !== null) return classifyErrorIn200(upstream, answer, error);
  const read = readAnswer(json);
  return read.ok ? delivered(upstream, model, read, read.partsIn(body.text, include)) : unread(upstream, status, read);
}

/** A failure of an attempt that the upstream did not answer, or whose cost is unknown. */
export function failed(failureClass: FailureClass, reason: Reason): Extract<Classification, { kind: "failure" }> {
  return { kind: "failure", class: failureClass, reason, answered: false, retryAfterMs: null };
}

function classifyStatus(upstream: Upstream, answer: HttpAnswer): Classification {
  const { status, body } = answer;
  // Fetch may report a redirect that it did not follow as status 0.
  if (status === 0 || (status >= 300 && status < 400)) {
    const message = `${upstream.name} answered with a redirect, which is not followed: check its base_url`;
    const reason = upstreamError(upstream, status === 0 ? null : status, message, { retryable: false });
    return answered("rejected", reason);
  }
  const { failures } = kindOf(upstream);
  const words = failures.wordsOf(body?.ok === true ? body.text : "");
  const shown = shownMessage(words.message, upstream);
  const quote = shown === "" ? "" : `: ${shown}`;
  const treatment = isUnread400(answer)
    ? ({ class: "unknown", retryable: false } as const)
    : failures.treatmentOf(status, words.codes, upstream.errorsCost);
  const what =
    status === 401 || status === 403
      ? `refused the gateway's credentials (status ${status})${quote}`
      : `answered ${status}${quote}`;
  const stop = failures.stopOf(status, words);
  return byStatus(
    upstream,
    { status, message: `${upstream.name} ${what}`, codes: words.codes, treatment, stop },
    answer,
  );
}

/** A 400 may be a content filter's, which is billed; only its body can show that it is not. */
function isUnread400({ status, body }: HttpAnswer): boolean {
  return status === 400 && body?.ok !== true;
}

type Failed = ErrorWords & { status: number; treatment: Treatment; stop: StopReason | null };

function byStatus(upstream: Upstream, failure: Failed, { headers, nowMs }: HttpAnswer): Classification {
  const { status, message, codes, treatment, stop } = failure;
  const { class: failureClass, retryable } = treatment;
  // A failure that is final has no time at which to come again.
  const retryAfterMs = retryable ? readRetryAfterMs(headers, nowMs) : null;
  // An attempt that may have been billed is no sign that nothing is done for this key.
  const stops = stop === null || failureClass === "unknown" ? {} : { stop };
  const base = { kind: "failure", class: failureClass, answered: true, retryAfterMs, ...stops } as const;
  const reason = upstreamError(upstream, status, message, { retryable, codes });
  if (failureClass !== "rate_limited") return { ...base, reason };
  const named = namedCode(upstream, codes);
  return {
    ...base,
    reason: { reason: "upstream_rate_limited", upstream: upstream.name, message, retryAfterMs, ...named },
  };
}

/**
 * Routers report errors inside a 200. Those that come with a part of an answer or with usage struck after generation
 * had begun, so they may have been billed; so may one that names no status.
 */
function classifyErrorIn200(upstream: Upstream, answer: HttpAnswer, error: AnswerError): Classification {
  const { codes } = error;
  const status = error.status ?? answer.status;
  const message = `${upstream.name} answered ${answer.status} with an error: ${shownMessage(error.message, upstream)}`;
  const stop = error.status === null || error.afterStart ? null : kindOf(upstream).failures.stopOf(error.status, error);
  return byStatus(upstream, { status, message, codes, treatment: treatmentIn200(upstream, error), stop }, answer);
}

function treatmentIn200(upstream: Upstream, { status, codes, afterStart }: AnswerError): Treatment {
  const { treatmentOf, isFinal } = kindOf(upstream).failures;
  const named = status === null ? null : treatmentOf(status, codes, upstream.errorsCost);
  if (named !== null && !afterStart) return named;
  return { class: "unknown", retryable: afterStart && (named?.retryable ?? !isFinal(codes)) };
}

function unread(upstream: Upstream, status: number, { fault }: { fault: string }): Classification {
  const message = `${upstream.name} answered ${status} ${fault}`;
  return answered("unknown", upstreamError(upstream, status, message, { retryable: true }));
}

function delivered(
  upstream: Upstream,
  model: string,
  read: Extract<AnswerRead, { ok: true }>,
  parts: AnswerParts | undefined,
): Classification {
  return {
    kind: "success",
    text: withoutOwnSecrets(read.text, upstream),
    ...(parts !== undefined && { parts: cleanParts(parts, upstream) }),
    model: shortName(read.model, upstream) ?? model,
    finishReason: shortName(read.finishReason, upstream),
    ...(read.refused === undefined ? {} : { refused: read.refused }),
    usage: read.usage,
  };
}

function cleanParts({ message, logprobs }: AnswerParts, upstream: Upstream): AnswerParts {
  return {
    ...(message !== undefined && { message: withoutOwnSecrets(message, upstream) }),
    ...(logprobs !== undefined && { logprobs: withoutOwnSecrets(logprobs, upstream) }),
  };
}

function shortName(value: unknown, upstream: Upstream): string | null {
  if (typeof value !== "string" || value === "") return null;
  return withoutOwnSecrets(value, upstream).slice(0, NAME_CHARS_MAX).toWellFormed();
}

function notJson(upstream: Upstream, { status, headers }: HttpAnswer, text: string): Classification {
  const start = text.trimStart().slice(0, 1);
  if (start === "") return truncated(upstream, "sent an empty answer");
  if (start === "{" || start === "[") return truncated(upstream, "sent JSON that breaks off or is malformed");
  const what = start === "<" ? "an HTML or XML page" : "a body that is not JSON";
  const contentType = headers.get("content-type");
  const type = contentType === null ? "" : ` (content-type ${shownMessage(contentType, upstream)})`;
  const message = `${upstream.name} answered ${status} with ${what}${type}: check its base_url`;
  return answered("unknown", upstreamError(upstream, status, message, { retryable: true }));
}

function unreadable(upstream: Upstream, status: number, why: "too_large" | "not_utf8"): Classification {
  const message =
    why === "too_large"
      ? `${upstream.name} answered ${status} with more than ${RESPONSE_BYTES_MAX} bytes`
      : `${upstream.name} answered ${status} with bytes that are not UTF-8`;
  return answered("unknown", upstreamError(upstream, status, message, { retryable: why === "not_utf8" }));
}

function truncated(upstream: Upstream, what: string): Classification {
  return answered("unknown", {
    reason: "upstream_truncated",
    upstream: upstream.name,
    message: `${upstream.name} ${what}`,
  });
}

function answered(failureClass: FailureClass, reason: Reason): Classification {
  return { kind: "failure", class: failureClass, reason, answered: true, retryAfterMs: null };
}

function upstreamError(
  upstream: Upstream,
  status: number | null,
  message: string,
  { retryable, codes = [] }: { retryable: boolean; codes?: readonly string[] },
): Reason {
  const { name } = upstream;
  return { reason: "upstream_error", upstream: name, status, message, retryable, ...namedCode(upstream, codes) };
}

/** The code by which the upstream names its error, if it does. */
function namedCode(upstream: Upstream, [code]: readonly string[]): { upstreamCode?: string } {
  const upstreamCode = code === undefined ? "" : shownCode(code, upstream);
  return upstreamCode === "" ? {} : { upstreamCode };
}
