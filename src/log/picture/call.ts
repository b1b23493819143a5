/** A call of a run, as far as the events of its log say. */
import type { CallStep } from "../../call.ts";

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
  /** At which step of its program it is made; null = its client does not say. */
  atStep: string | null;
};

/** A step as it is shown: `3/20`, or `3` where nobody has said how many there are; null = it is not known. */
export function stepText({ step, steps }: { [Name in keyof CallStep]?: number | null | undefined }): string | null {
  if (step == null) return null;
  return steps == null ? `${step}` : `${step}/${steps}`;
}
