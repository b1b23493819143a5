/** Why an attempt failed, as far as that decides whether its call may be made elsewhere. */
import type { FallbackCause, Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import type { Choice } from "../leases/shard.ts";

/** The cause of a failure; null = the same call would fail elsewhere, too, or may have been answered. */
export function causeOf(failure: Extract<Outcome, { kind: "failure" }>): FallbackCause | null {
  const { class: failureClass, reason, stop } = failure;
  if (stop !== undefined) return "stop";
  if (failureClass === "rate_limited") return "rate_limited";
  if (failureClass === "rejected") return isTooLong(reason) ? "context_length" : null;
  return reason.reason === "upstream_timeout" ? "timeout" : "upstream_error";
}

/**
 * True if calls that failed for this cause are made at the choice. One that names no causes takes all but a prompt that is
 * too long, which is an error of its client until the operator has named a model for it.
 */
export function accepts({ on }: Choice, cause: FallbackCause | null): boolean {
  if (on === null) return cause !== "context_length";
  return cause !== null && on.includes(cause);
}

/** OpenAI, Cerebras and llama.cpp name a code. Others say it in words, with status 400, 413 or 422: those below are in docs/providers.md. */
const LENGTH_CODES: ReadonlySet<string> = new Set(["contextlengthexceeded", "exceedcontextsizeerror"]);
const LENGTH_MESSAGE =
  /\b(prompt|input) is too long\b|\bmaximum (context|prompt) length\b|\binput token count\b.*\bexceeds\b|\blonger than the model's context length\b|\bcontext length of only\b|\bcontext (window|length|size)\b.*\bexceed|\bexceed\w*\b.*\bcontext (window|length|size)\b/i;

function isTooLong(reason: Reason): boolean {
  if (reason.reason !== "upstream_error") return false;
  if (LENGTH_CODES.has(folded(reason.upstreamCode))) return true;
  return (
    (reason.status === 400 || reason.status === 413 || reason.status === 422) && LENGTH_MESSAGE.test(reason.message)
  );
}

function folded(code: string | undefined): string {
  return (code ?? "").toLowerCase().replace(/[^a-z]/g, "");
}
