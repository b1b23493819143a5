/** Which errors of a handler refuse its request. */
import { Refusal, type Reason } from "../errors.ts";
import { OBJECT_OVERLOADED_RETRY_MS } from "../limits.ts";
import { objectFailure } from "../run-client/retry.ts";

/** Of an object that is not a run's: calls to those have a message of their own. */
const OBJECT_OVERLOADED: Reason = {
  reason: "overloaded",
  message: "an object of the gateway has more requests than it can take; retry later",
  retryAfterMs: OBJECT_OVERLOADED_RETRY_MS,
};

/** Why an error refuses the request; null for one that nobody expected. An overloaded object is not called again. */
export function refusedFor(error: Error): Reason | null {
  if (error instanceof Refusal) return error.reason;
  return objectFailure(error) === "overloaded" ? OBJECT_OVERLOADED : null;
}
