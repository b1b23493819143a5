/** A call of a run as the page knows it from the log. */

export type CallState = "running" | "waiting" | "completed" | "failed" | "cancelled";

/** `outcome` null = it is in flight. */
export type Attempt = { number: number; startMs: number; endMs: number | null; outcome: string | null; target: string };

export type Call = {
  /** Index in its group; null for a single call. */
  index: number | null;
  /** Id of a single call. */
  callId: string | null;
  /** Of a graph, once its outline is known: the id of its task. */
  task: string | null;
  group: string | null;
  queuedMs: number;
  endMs: number | null;
  /** The time of its attempts that have ended, together; and its time in the queue before the first one, ms. */
  latencyMs: number;
  firstQueuedMs: number;
  state: CallState;
  attempts: Attempt[];
  model: string | null;
  code: string | null;
  message: string | null;
  costUsd: number;
  /** It ended with a recorded answer, without an attempt. */
  replayed: boolean;
};

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
