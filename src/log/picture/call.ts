/** A call of a run, as far as the events of its log say. */

export type CallState = "running" | "waiting" | "completed" | "failed" | "cancelled";

/** `outcome` null = it is in flight. `target`: its upstream and its model. */
export type Attempt = {
  number: number;
  startMs: number;
  endMs: number | null;
  outcome: string | null;
  model: string;
  target: string;
  reservedNanoUsd: number;
};

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
  /** The attempt that it waits for, and when that is due; null = none is planned. */
  retry: { attempt: number; dueMs: number } | null;
  model: string | null;
  code: string | null;
  message: string | null;
  costUsd: number;
  /** It ended with a recorded answer, without an attempt. */
  replayed: boolean;
  /** Its labels as people see them: `step 3/20`. */
  labels: readonly string[];
};
