/** Why an attempt failed, as far as that decides whether its call may be made elsewhere. */
import type { Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";

/** `stop`: the key is not accepted, or nothing is left to spend with it: no call with the key succeeds for now. */
export type Cause = "rate_limited" | "stop" | "other";

/** The cause of a failure. */
export function causeOf({ class: failureClass, reason }: Extract<Outcome, { kind: "failure" }>): Cause {
  if (failureClass !== "unknown" && isStop(reason)) return "stop";
  return failureClass === "rate_limited" ? "rate_limited" : "other";
}

/**
 * Codes that speak of the key or its account, without case and punctuation. OpenAI: `insufficient_quota` (a 429),
 * `billing_hard_limit_reached` (a 400), `billing_not_active`, `account_deactivated`. Anthropic: `authentication_error`,
 * `billing_error`, `permission_error`.
 */
const STOP_CODES: ReadonlySet<string> = new Set([
  "insufficientquota",
  "billinghardlimitreached",
  "billingnotactive",
  "accountdeactivated",
  "invalidapikey",
  "authenticationerror",
  "billingerror",
  "permissionerror",
]);

/** Anthropic reports exhausted credit as a 400 of type `invalid_request_error`, by these words. */
const CREDIT_MESSAGE = /credit balance is too low/i;

/** A 403 without such a code is about the content of the request at some providers: it is no stop. */
function isStop(reason: Reason): boolean {
  if (reason.reason !== "upstream_error" && reason.reason !== "upstream_rate_limited") return false;
  if (reason.reason === "upstream_error" && (reason.status === 401 || reason.status === 402)) return true;
  const code = (reason.upstreamCode ?? "").toLowerCase().replace(/[^a-z]/g, "");
  return STOP_CODES.has(code) || CREDIT_MESSAGE.test(reason.message);
}
