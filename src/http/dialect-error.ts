/** Failures as the clients of other systems read them: `{"error": "message"}`, and the statuses that they know. */
import { Refusal, toWire, type Reason, type WireError } from "../errors.ts";

/** What a call that failed is answered with: 200, or a status. */
export type FailedCalls = "ok" | "status";

/** The body of an error. */
export function dialectError({ message }: Pick<WireError, "message">): { error: string } {
  return { error: message };
}

/** Answers a failed call in its dialect; what is wrong with the request itself leaves as the refusal that it is. */
export async function tellFailedCall(failedCalls: FailedCalls, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof Refusal) || !isFailedCall(error.reason)) throw error;
    const { status, error: wire, headers } = toWire(error.reason, error.spent);
    const shownStatus = failedCalls === "ok" ? 200 : (STATUSES.get(status) ?? status);
    return Response.json(dialectError(wire), { status: shownStatus, headers });
  }
}

/** The one timeout and the one server error that the servers of these clients have. */
const STATUSES: ReadonlyMap<number, number> = new Map([
  [502, 500],
  [504, 408],
]);

/** Whether a reason concerns a call that failed, rather than its request. */
function isFailedCall({ reason }: Reason): boolean {
  switch (reason) {
    case "budget_exhausted":
    case "in_flight_budget_exhausted":
    case "cancelled":
    case "deadline_exceeded":
    case "depth_exceeded":
    case "infeasible":
    case "model_not_allowed":
    case "model_not_found":
    case "newer_storage":
    case "overloaded":
    case "schema_violation":
    case "storage_full":
    case "unpriced_model":
    case "upstream_error":
    case "upstream_rate_limited":
    case "upstream_timeout":
    case "upstream_truncated":
      return true;
    default:
      return false;
  }
}
