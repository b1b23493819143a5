/** The answer to a pass-through call whose attempts are spent: the upstream's own error, in its own words. */
import { Refusal, retryHeaders, toWire } from "../errors.ts";
import type { Upstream } from "../upstream/config.ts";
import { answerHeaders } from "../upstream/endpoints.ts";
import type { Passed } from "../upstream/pass-job.ts";
import { redacted } from "../upstream/redact.ts";
import { anthropicError } from "./anthropic-error.ts";

/** Throws where the failure is not the upstream's to tell: what it says of the gateway's key is not the client's. */
export function relayedError(
  { outcome, answer }: Extract<Passed, { kind: "failed" }>,
  upstream: Upstream | null,
): Response {
  if (outcome.kind === "success") throw new Error("an attempt that succeeded has no error to relay");
  const isOwn = answer !== null && answer.status >= 400 && answer.status !== 401 && answer.status !== 403;
  if (!isOwn || upstream === null) throw new Refusal(outcome.reason);
  const wire = toWire(outcome.reason);
  // Retry hints are those that the gateway gives for the same failure: an upstream's may be missing, or a date.
  const isBusy = answer.status === 429 || answer.status === 503;
  const hint = isBusy ? retryHeaders(outcome.retryAfterMs) : {};
  const init = { status: answer.status, headers: { ...answerHeaders(answer.headers), ...wire.headers, ...hint } };
  if (answer.text !== "") return new Response(redacted(answer.text, upstream), init);
  // The status is all that the upstream said: clients find the words for it where they look for them.
  const headers = { ...init.headers, "content-type": "application/json" };
  const { error } = wire;
  return Response.json(upstream.kind === "anthropic" ? anthropicError(answer.status, error) : { error }, {
    ...init,
    headers,
  });
}
