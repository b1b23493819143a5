/** What crosses the run object's RPC surface. Plain data: strings, numbers, booleans, null, arrays, objects. */
import type { CallFacts, Lease, Outcome } from "../../src/call.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { GroupMetrics, GroupStatus } from "../../src/engine/group.ts";
import type { SlotRecord } from "../../src/engine/record.ts";
import type { SlotState } from "../../src/engine/slot.ts";
import type { Reason } from "../../src/errors.ts";
import type { ModelRules } from "../../src/upstream/target.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { StoredDocument } from "./document.ts";
import type { LogRow } from "./log-rows.ts";

/** USD left in the run's budget when the reply was made, in nano-USD; null = no limit. */
export type Remaining = { remainingNanoUsd: number | null };

export type Refused = { ok: false; reason: Reason };

/** A client's Idempotency-Key, and the hash of what it asks for under it: its path and its body. */
export type Named = { key: string; hash: string };

// ---- child runs ----

/** `replayed`: the key has opened this child before. */
export type OpenChildReply = { ok: true; document: StoredDocument; replayed: boolean } | Refused;

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
  onLost: "retry" | "fail";
  /** For a retry: the parallel group that the last `settle` told. */
  parallelGroupId: string | null;
};

export type AcquireReply =
  | ({ ok: true; lease: Lease; queuedMs: number } & Remaining)
  /** No permit yet: ask again. */
  | { ok: "wait" }
  /** An equal call has ended, and its outcome is this one's. */
  | ({ ok: "shared"; outcome: Outcome; parallelGroupId: string | null } & Remaining)
  | (Refused & Remaining);

/** An answer that its upstream keeps for later requests, by the upstream's name for it. */
export type KeptAnswer = { id: string; upstream: string };

/** What a single call's attempt ended as, and where its answer is kept, if its upstream keeps it. */
export type SingleSettlement = { attemptId: string; outcome: Outcome; kept: KeptAnswer | null };

export type ModelRulesReply = { ok: true; rules: ModelRules } | Refused;

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
  /** Names this request: opening a group again under the same name finds the first. */
  openKey: string;
  named: Named | null;
  count: number;
  /** A single call, stored as a group of one so that it outlives its client. */
  single: boolean;
  /** Whether its slots start only when nothing else of the run could. */
  background: boolean;
  onLost: "retry" | "fail";
  /** False: it is cancelled when nobody follows it any more. */
  detach: boolean;
  errorStyle: ErrorStyle | null;
  /** Whether its calls have names of the client's. */
  namesCalls: boolean;
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
      count: number;
      errorStyle: ErrorStyle;
      /** True when the Idempotency-Key had opened the group before. */
      replayed: boolean;
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
  counts: Record<SlotState, number>;
  openedAtMs: number;
  endedAtMs: number | null;
  errorStyle: ErrorStyle;
  /** Unlike `id` only for a single call: the parallel group that it came in. */
  parallelGroupId: string | null;
  effectiveParallel: number;
  remainingNanoUsd: number | null;
  metrics: GroupMetrics;
  usage: { promptTokens: number; completionTokens: number; costNanoUsd: number };
};

/** A slot as its answer needs it; `id` is the client's own name for it. */
export type SlotView = Omit<SlotRecord, "id" | "notBeforeMs"> & { index: number; id: string | null };

// ---- tools ----

/** The permit of a tool call, with what is called; or why it has none. */
export type AcquireToolReply = ({ ok: true; tool: Tool } & Remaining) | (Refused & Remaining);

// ---- the log ----

/** A client's own event: its facts as a JSON object in text, and the parallel group that it names. */
export type ClientEvent = { json: string; parallelGroupId: string | null };

/** Stored events after a reader's place; `run` holds what every line repeats. */
export type LogPage = {
  rows: LogRow[];
  run: { id: string; parentId: string | null; depth: number };
  /** Nothing will be added any more: the run has ended, and so has all that it had in flight. */
  final: boolean;
};

/** Slots that ended after a reader's cursor. A cursor of another `epoch` starts over: the reader skips what it has. */
export type EndedReply = { slots: SlotView[]; cursor: { epoch: number; position: number }; done: boolean };

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
  /** The run object's instance that lends them: a lane does not take jobs of one that has been replaced. */
  epoch: number;
  /** Shared settings of the groups that `jobs` belong to, as JSON text by group. */
  defaults: Record<number, string>;
  /** Whether a lane with room should ask again, and wait: slots are queued that may become free to start. */
  ask: boolean;
  /** How long the lane should wait for further answers before it settles the first, ms: the wider the run, the longer. */
  lingerMs: number;
};
