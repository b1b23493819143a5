/** How the page names a call, and how long it was queued. */
import type { Call } from "../../src/log/picture/call.ts";

/** How a call is named on the page. */
export function nameOf({ index, callId, task }: Pick<Call, "index" | "callId" | "task">): string {
  if (task !== null) return task;
  return index === null ? (callId ?? "call") : `call ${index}`;
}

/** Milliseconds for which a call was in the queue, before its first attempt and between its attempts. */
export function queueMsOf(call: Call, nowMs: number): number {
  const endMs = call.endMs ?? nowMs;
  const runMs = call.attempts.reduce((sum, attempt) => sum + (attempt.endMs ?? endMs) - attempt.startMs, 0);
  return Math.max(0, endMs - call.queuedMs - runMs);
}
