/** Whether a run may store more requests of clients. What it has accepted is always stored: answers, its own log. */
import type { Reason } from "../../../src/errors.ts";
import { RUN_STORED_BYTES_MAX } from "../../../src/limits.ts";

/** Why the run takes nothing more; null if it does. Waiting does not help: rows stay until the run is deleted. */
export function roomReason(storedBytes: number): Reason | null {
  if (storedBytes < RUN_STORED_BYTES_MAX) return null;
  const what = "what this run stores (calls, answers and log)";
  return { reason: "payload_too_large", what, bytesMax: RUN_STORED_BYTES_MAX, param: null };
}
