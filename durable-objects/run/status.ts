/** Which statuses end a run. */
import type { EndStatus, RunStatus } from "../../src/objects/methods/runs.ts";

/** Whether a run of this status takes no more calls. */
export function hasEnded(status: RunStatus): status is EndStatus {
  return status === "closed" || status === "cancelled" || status === "expired";
}
