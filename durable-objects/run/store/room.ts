/** Whether a run may store more requests of clients. What it has accepted is always stored: answers, its own log. */
import type { Reason } from "../../../src/errors.ts";
import { RUN_STORED_BYTES_MAX } from "../../../src/limits.ts";

/**
 * Why the run takes nothing more; null if it does. Waiting does not help: what is stored stays until its run is deleted.
 * @param moreBytes What is to be stored, as far as that is known.
 */
export function roomReason({ freeBytes }: { readonly freeBytes: number }, moreBytes = 0): Reason | null {
  if (freeBytes > 0 && moreBytes <= freeBytes) return null;
  const what = "what this run and the runs of its tree store (calls, answers, logs, files, contexts)";
  return { reason: "payload_too_large", what, bytesMax: RUN_STORED_BYTES_MAX, param: null };
}
