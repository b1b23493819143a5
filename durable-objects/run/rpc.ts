/** What crosses the run object's RPC surface. Plain data: strings, numbers, booleans, null, arrays, objects. */
import type { CallFacts, Lease, Outcome } from "../../src/call.ts";
import type { GroupMetrics, GroupStatus } from "../../src/engine/group.ts";
import type { SlotRecord } from "../../src/engine/record.ts";
import type { Reason } from "../../src/errors.ts";

/** USD left in the run's budget when the reply was made, in nano-USD; null = no limit. */
export type Remaining = { remainingNanoUsd: number | null };

export type Refused = { ok: false; reason: Reason };

// ---- single calls ----

/** A single call that asks for its permit. Asking again with the same `callId` and `attempt` takes up the same place. */
export type AcquireRequest = {
  callId: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  facts: CallFacts;
  /** For a retry: the delay that the last `settle` told. */
  delayMs: number;
  /** Time within which it must have started, ms from now; null = it waits. */
  deadlineMs: number | null;
};

export type AcquireReply =
  | ({ ok: true; lease: Lease; queuedMs: number } & Remaining)
  /** No permit yet: ask again. */
  | { ok: "wait" }
  | (Refused & Remaining);

export type SettleReply = {
  /** False when the attempt was not in flight any more: its lease had expired. */
  known: boolean;
  /** Delay after which the call may be tried again, or null when this was its last attempt. */
  retryInMs: number | null;
  costNanoUsd: number;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  parallelGroupId: string | null;
} & Remaining;

// ---- groups ----

export type OpenGroupRequest = {
  count: number;
  /** Most attempts in flight at once; null = the run's width. */
  concurrency: number | null;
  onError: "continue" | "abort";
  /** Time within which a slot must have started, ms from the opening; null = they wait. */
  deadlineMs: number | null;
  /** Whether each slot may reserve no more than its equal share of what is left when the group opens. */
  split: boolean;
  models: (string | null)[];
  /** The settings that the group's calls share, as JSON. */
  defaultsJson: string;
};

export type OpenGroupReply =
  | ({
      ok: true;
      seq: number;
      id: string;
      effectiveParallel: number;
      /** Lanes to start, by number. */
      lanes: number[];
    } & Remaining)
  | Refused;

/** Where a group stands. `usage` sums all attempts. */
export type GroupView = {
  id: string;
  status: GroupStatus;
  count: number;
  effectiveParallel: number;
  metrics: GroupMetrics;
  usage: { promptTokens: number; completionTokens: number; costNanoUsd: number };
};

/** A slot that has ended, as its answer needs it. */
export type SlotView = Omit<SlotRecord, "id" | "notBeforeMs"> & { index: number };

/** Slots that ended after a reader's cursor. A cursor of another `epoch` starts over: the reader skips what it has. */
export type EndedReply = { slots: SlotView[]; cursor: { epoch: string; position: number }; done: boolean };

// ---- lanes ----

/** One attempt for a lane to make. */
export type Job = {
  groupSeq: number;
  lease: Lease;
  /** The call's body as JSON text. */
  callJson: string;
};

export type Settlement = { attemptId: string; outcome: Outcome };

export type ClaimReply = {
  jobs: Job[];
  /** Shared settings of the groups that `jobs` belong to, as JSON text by group. */
  defaults: Record<number, string>;
  /** Whether a lane with room should ask again, and wait: slots are queued that may become free to start. */
  ask: boolean;
  /** How long the lane should wait for further answers before it settles the first, ms: the wider the run, the longer. */
  lingerMs: number;
};
