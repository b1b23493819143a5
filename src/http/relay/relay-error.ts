/**
 * The answer to a relayed call whose attempts are spent: the upstream's own error, in its own words. One that is not JSON, such as a
 * proxy's page, gets the form of the client's API, for its client parses it.
 */
import { Refusal, retryHeaders, toWire, type Spent } from "../../errors.ts";
import type { RelayFailure } from "../../executors/attempt.ts";
import { tryParse } from "../../text/json/parse.ts";
import { kindOf } from "../../providers/kinds/table.ts";
import { redacted } from "../../providers/redact.ts";
import { anthropicError } from "../anthropic-error.ts";

/** Throws if the failure is not the upstream's to report: its words about the gateway's key are not for the client. */
export function relayedError({ outcome, answer, upstream }: RelayFailure, spent: Spent | null): Response {
  if (outcome.kind === "success") throw new Error("an attempt that succeeded has no error to relay");
  const isOwn = answer !== null && answer.status >= 400 && answer.status !== 401 && answer.status !== 403;
  if (!isOwn || upstream === null) throw new Refusal(outcome.reason, spent);
  const wire = toWire(outcome.reason, spent);
  // Retry hints are those that the gateway gives for the same failure: an upstream's may be missing, or a date.
  const isBusy = answer.status === 429 || answer.status === 503;
  const hint = isBusy ? retryHeaders(outcome.retryAfterMs) : {};
  const init = { status: answer.status, headers: { ...answer.headers, ...wire.headers, ...hint } };
  if (tryParse(answer.text) !== undefined) return new Response(redacted(answer.text, upstream), init);
  // A status only, or the page of a proxy in between: the message goes where clients look for it.
  const headers = { ...init.headers, "content-type": "application/json" };
  const { error } = wire;
  return Response.json(kindOf(upstream).protocol === "anthropic" ? anthropicError(answer.status, error) : { error }, {
    ...init,
    headers,
  });
}
