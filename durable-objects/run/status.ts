/** Which statuses end a run, and what its calls are told then. */
import type { Reason } from "../../src/errors.ts";
import type { EndStatus, RunStatus } from "../../src/objects/methods/runs.ts";

/** Whether a run of this status takes no more calls. */
export function hasEnded(status: RunStatus): status is EndStatus {
  return status === "closed" || status === "cancelled" || status === "expired";
}

/** The error of a call that the end of its run ends. */
export function endReason(status: EndStatus): Reason {
  if (status === "expired") return { reason: "invalid_api_key", message: "the run has expired; open another" };
  return { reason: "cancelled", message: `the run was ${status}` };
}
