/** Groups and their slots, and the jobs that lanes make of them. */
import type { InFlightRule } from "../../contract/cancel-groups.ts";
import type { CallBody, CallFacts, CallRules, Lease, Notify, Outcome, ToolRound } from "../../call.ts";
import type { Dimension, Reason } from "../../errors.ts";
import type { CallLabels } from "../../labels.ts";
import type { ErrorStyle, OnExhausted } from "../../contract/fields.ts";
import type { AggregateSpec } from "../../run/answers/aggregate.ts";
import type { Tier } from "../../run/answers/tiers.ts";
import type { Amounts } from "../../run/money/ledger.ts";
import type { GroupMetrics, GroupStatus, GroupUsage, HeldQuote, Saved } from "../../run/group/group.ts";
import type { SlotRecord } from "../../run/group/record.ts";
import type { Aged } from "../../run/leases/age.ts";
import type { SlotState } from "../../run/queue/slot.ts";
import type { RequestedRules } from "../../run/rules/table.ts";
import type { Waiting, WaitingFor } from "../../run/steps/waiting-for.ts";
import type { PatchOperation } from "../../run/graph/patch.ts";
import type { PlanPart } from "../../run/graph/plan/append.ts";
import type { PlanFault } from "../../run/graph/types.ts";
import type { TaskSource } from "../../run/graph/read-task.ts";
import type { Repair } from "../../text/schema/repair.ts";
import type { TraceContext } from "../../trace-context.ts";
import type { Permit } from "./calls.ts";
import type { IdempotencyKey, Refused, Remaining, Sampled } from "./types.ts";

/** Pages of a batch that are about to be stored, if it is to be refused when it can never fit. */
export type FloorRequest = {
  /** The least that its earlier pages cost. */
  floor: Amounts;
  models: (string | null)[];
  /** The facts of the pages' calls, a page each. */
  facts: string[];
  /** Of the batch. */
  idempotencyKey: string | null;
};

/** The floor with these pages, or why the batch can never fit. */
export type FloorReply = { ok: true; floor: Amounts } | Refused;

/** A batch of many calls before its pages are made: what a run needs to know of it to say whether it may open, and can be paid for. */
export type PricedRequest = Pick<OpenGroupRequest, "count" | "onBudget" | "onExhausted" | "single" | "models"> & {
  /** The facts of its calls, each kind once, with their number. */
  kinds: string[];
  /** Of the batch. */
  idempotencyKey: string | null;
};

/** `ageMs` and `sentAtMs` are those of a single call. */
export type OpenGroupRequest = CallRules &
  RequestedRules &
  Aged & {
    /** Identifies this request: a repeated request finds the group that the first one opened. */
    openKey: string;
    idempotencyKey: IdempotencyKey | null;
    count: number;
    /** A single call, stored as a group of one so that it outlives its client. */
    single: boolean;
    /** Whether its slots start only when nothing else of the run could. */
    background: boolean;
    /** False: the group is cancelled when no client follows it any more. */
    detach: boolean;
    errorStyle: ErrorStyle | null;
    /** Whether its calls carry custom ids, or labels. */
    hasCustomIds: boolean;
    /** Most attempts in flight at once; null = the run's width. */
    concurrency: number | null;
    /** `refuse`: the group is refused if the budget can never cover all its slots. */
    onBudget: "refuse" | "partial";
    /** Whether each slot may reserve no more than its equal share of what is left when the group opens. */
    split: boolean;
    /** Its calls go through batches of their provider, if it sells them; it has a deadline then. Absent = all are sent live. */
    viaBatches?: true;
    models: (string | null)[];
    /** The settings that the group's calls share, as JSON. */
    defaultsJson: string;
    /** Objects in R2 that hold bodies of its calls; absent = all are in its pages. */
    bodyObjects?: number;
    /** What these objects have together, bytes; absent = nothing. */
    bodyBytes?: number;
    /** The batch of the Batch API whose lines it has: its object is notified of the group's progress. */
    batchId?: string;
    /** What its answers are combined to when it has ended; absent = nothing. */
    aggregate?: AggregateSpec;
    /** The epoch of the program that opens it, in a run that records; absent = its answers are not recorded. */
    replay?: { epoch: string };
    /** What its slots do when the budget is used up; absent = the run decides. */
    onExhausted?: OnExhausted;
    /** Set for calls that the gateway makes itself to answer a request: they are not held for a confirmation. */
    isConfirmed?: true;
    /** Where in a trace its client opens it; absent = in none. */
    trace?: TraceContext;
    /** What of it the operator's webhook is notified of; absent = what its run says. */
    notify?: Notify;
    /** Of a single call: its labels; absent = it has none. */
    step?: CallLabels;
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
      /** The client's trace that its spans are in; absent = the run's own. */
      traceId?: string;
      /** Lanes to start, by number. */
      lanes: number[];
      /** Set if the group awaits its confirmation. */
      isHeld?: true;
      /** The first claim of the Worker that opened the group; null if it does not execute it. */
      claim: ClaimReply | null;
      /** Of a single call: the coalescing window that it has joined; absent = none, or it is not known any more. */
      window?: Pick<Permit, "parallelGroupId" | "windowOpenedAtMs">;
    } & Remaining)
  | Refused;

/** A group's present state. `usage` sums all attempts. */
export type GroupView = {
  id: string;
  status: GroupStatus;
  count: number;
  counts: Record<SlotState, number>;
  openedAtMs: number;
  endedAtMs: number | null;
  errorStyle: ErrorStyle;
  /** Unlike `id` only for a single call: the parallel group that it belongs to. */
  parallelGroupId: string | null;
  effectiveParallel: number;
  remainingNanoUsd: number | null;
  /** The client's trace that its spans are in; absent = the run's own. */
  traceId?: string;
  metrics: GroupMetrics;
  usage: GroupUsage;
  /**
   * Of a group with an early stop. `saved` null = it was not met so far; `hasCancelled`: it has stopped the group; `judges`: the
   * groups of the calls of its judge, absent = none decides.
   */
  stop?: { shadow: boolean; saved: Saved | null; hasCancelled: boolean; judges?: readonly string[] };
  /** Of a graph with early calls: what they have come to; `inFlight`: those that have not ended. Absent = it makes none. */
  speculation?: { started: number; used: number; inFlight: number; spentNanoUsd: number; wastedNanoUsd: number };
  /** What its answer combines its results to; absent = nothing. */
  aggregate?: AggregateSpec;
  /**
   * Set if its slots depend on each other. `count` is then the number of those that exist, as far as it is known; their
   * indexes are below `slots`, with gaps. `version`: of the graph; absent = 1.
   */
  graph?: { slots: number; version?: number };
  /** What its queued slots wait for; absent = none is queued. */
  waitsFor?: Waiting[];
  /** Calls of the run that come before its first queued slot that could start now. Absent = it has none. */
  queuedAhead?: number;
  /** Of a group with tiers: the failed slots, by tier; of many, the first. */
  tierFailures?: TierFailure[];
  /** Slots that ended with recorded answers; absent = it replays none. */
  replayed?: number;
  /** Set while it awaits its confirmation: what it would cost. */
  held?: HeldQuote;
  /** Of a group with `atLeast` that has ended: the slots that did not complete; of many, the first. */
  missing?: number[];
  /** Set while it waits for a higher limit of its run. */
  paused?: { dimension: Dimension; sinceMs: number };
};

/** Groups to cancel, by the Idempotency-Keys of their requests and by their ids. */
export type CancelGroupsRequest = { keys: string[]; ids: string[]; inFlight: InFlightRule };

/** How these groups are by now. `running`: the names of those that have calls in flight; `unknown`: names of no group. */
export type CancelGroupsReply = {
  ids: string[];
  running: string[];
  counts: Record<SlotState, number>;
  costNanoUsd: number;
  unknown: string[];
};

/** A failed slot of a group with tiers; `id` is the client's custom id. */
export type TierFailure = { index: number; id: string | null; tier: Tier; reason: Reason };

/** A slot as its answer needs it; `id` is the client's custom id. */
export type SlotView = Omit<SlotRecord, "id" | "notBeforeMs" | "position" | "replay"> & {
  index: number;
  /** Set if it ended with a recorded answer. */
  replayed?: true;
  id: string | null;
  /** Set if it is queued; absent also if it shares the answer of an equal call in flight. */
  waitingFor?: WaitingFor;
};

/** Slots that ended after a reader's cursor. A cursor of another `epoch` starts over: the reader skips what it has. */
export type EndedReply = { slots: SlotView[]; cursor: { epoch: number; position: number }; done: boolean };

/** One attempt for an executor to make. */
export type Job = {
  groupSeq: number;
  lease: Lease;
  /** The call's body as JSON text. */
  callJson: string;
  /** The answer that does not fit the call's schema, if the attempt requests another one. */
  repair?: Repair;
  /** The tools to call for a model, instead of a model. Absent = a model is called. */
  round?: ToolRound;
  /** Messages that follow those of the call, as JSON texts; absent = none. */
  added?: readonly string[];
};

export type Settlement = { attemptId: string; outcome: Outcome } & Sampled;

export type ClaimReply = {
  jobs: Job[];
  /** The run object's instance that grants them: no executor takes jobs of an instance that has been replaced. */
  epoch: number;
  /** Shared settings of the groups that `jobs` belong to, as JSON text by group. */
  defaults: Record<number, string>;
  /** Whether an executor with room should claim once more, and wait: slots are queued that may become free to start. */
  claimMore: boolean;
  /** How long the lane should wait for further answers before it settles the first, ms: the wider the run, the longer. */
  batchingDelayMs: number;
  /** Set if the executor is to wait at its socket. */
  atSocket?: true;
  /** For the Worker of a group; absent where nothing was looked up, as at the end of a long wait. */
  group?: OwnGroup;
};

/** What the Worker of a group says of itself with each claim. */
export type WorkerState = {
  /** How many attempts it can hold at once, if it has been full while slots waited; null = it needs no lanes. */
  covers: number | null;
  /** Whether the reply names the lanes to start: once when it needs lanes, and when it leaves. */
  asksForLanes: boolean;
  /** True once it claims nothing any more, because its client has left. */
  leaves: boolean;
  /** Every attempt that it has, after a reply may have been lost: others of its leases are lost; null = as before. */
  holds: string[] | null;
  /** Attempts that it cannot bring to their end. */
  gaveUp: string[];
  /** It shows slots as they end and knows those up to here: the reply has all that ended since. Absent = it does not. */
  after?: EndedReply["cursor"];
};

/** What the reply to the Worker of a group says of it. */
export type OwnGroup = {
  /** Slots that its settlements have ended; with `after`, those that ended since, in their order, whichever executor has ended them. */
  ended: EndedSlot[];
  /** With `after`: how far `ended` goes. Absent if `after` is of another instance: then it must be read from the start. */
  upTo?: { cursor: EndedReply["cursor"]; hasMore: boolean };
  /** Set if nothing but the end of the group waits for what it ends: it may gather answers for a while before it settles them. */
  awaitsEnd?: true;
  /** Attempts that were given up: it must stop them. */
  aborted: string[];
  /** Lanes to start, by number, if it asked for them. */
  lanes: number[];
  /** The group, once it has ended; else null. */
  view: GroupView | null;
};

/** A slot that has ended; without `text` and `parts` if its Worker has them. The client's id is known to the Worker. */
export type EndedSlot = Omit<SlotView, "id" | "text"> & { text?: string | null };

/**
 * A change of a graph that runs, made for the version that its client has seen. `key` identifies the request: repeated, it is
 * answered and not applied twice, until the next change.
 */
export type ChangeGraphRequest = {
  seq: number;
  key: string;
  version: number;
  operations: readonly ChangeOperation[];
};

/** `task` has its call beside what the graph reads of it. */
export type ChangeOperation =
  | (Extract<PatchOperation, { op: "add_task" }> & { task: CalledTask })
  | (Extract<PatchOperation, { op: "update_task" }> & { task: CalledTask })
  | Extract<PatchOperation, { op: "remove_task" | "add_dependency" | "remove_dependency" }>;

export type CalledTask = TaskSource & { call: { body: CallBody; facts: CallFacts } };

/** `lanes`: those to start, by number. */
export type ChangeGraphReply = ({ ok: true; version: number; lanes: number[] } & Remaining) | Refused;

/** The next part of a plan that runs while it is written. Repeated, it is answered and not applied twice. */
export type AppendPlanRequest = { seq: number; part: PlanPart<{ line: number; task: CalledTask }> };

/**
 * `isOpen`: whether more of the plan is wanted; its graph may have been cancelled. `faults`: the lines of the part that could
 * not be added. `lanes`: those to start, by number.
 */
export type AppendPlanReply = { isOpen: boolean; faults: readonly PlanFault[]; lanes: number[] };

/** Which group is opened once more, and by which request: a repeated one finds the group that the first has opened. */
export type RetryRequest = {
  seq: number;
  openKey: string;
  idempotencyKey: IdempotencyKey | null;
  /** Where in a trace its client sends it; absent = in none. */
  trace?: TraceContext;
};
