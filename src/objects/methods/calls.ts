/** Single calls and tool calls: their requests for a permit, and what their attempts ended as. */
import type { Amounts } from "../../run/money/ledger.ts";
import type { CallFacts, CallRules, Lease, Outcome } from "../../call.ts";
import type { Aged } from "../../run/leases/age.ts";
import type { InstanceLabel } from "../../run/leases/concurrency-window.ts";
import type { Position } from "../../run/leases/shard.ts";
import type { TimesOfCall } from "../../run/measures/totals.ts";
import type { Tool } from "../../tools/tool.ts";
import type { Reason } from "../../errors.ts";
import type { Recorded, RecordedCall } from "./replay.ts";
import type { Refused, Remaining, Sampled } from "./types.ts";

/**
 * A single call's request for its permit. A second request with the same `callId` and `attempt` keeps the position of the
 * first. `deadlineMs` counts from now. By its age, a retry keeps the position of its first attempt.
 */
export type AcquireRequest = CallRules &
  Aged & {
    callId: string;
    /** Number of the attempt, from 1. */
    attempt: number;
    facts: CallFacts;
    /** For a retry: the delay that the last `settle` returned. */
    delayMs: number;
    /** For a retry: how long the attempts before have taken together, and the first one was queued; absent = it is not known. */
    earlier?: TimesOfCall;
    /** For a retry: what the last `settle` returned as `uncounted`; absent = 0. */
    uncounted?: number;
    /** For a retry: what the call has tried of its choices, as the last `settle` returned it; absent = nothing. */
    position?: Position;
    /** Whether a key that does not work, or a rate limit, makes the call wait rather than fail; absent = they fail it. */
    waitsForGate?: boolean;
    /** Whether a 429 of a key whose width is limited uses up no attempt while the call is young; absent = it uses up one. */
    waitsForWidth?: boolean;
    /** For a retry: the parallel group that the last `settle` returned. */
    parallelGroupId: string | null;
    /** The call's place in the windows of an instance that holds credit; absent = the run's own windows hold. */
    label?: InstanceLabel;
    /** The epoch of the program that makes it, in a run that records; absent = its answer is not recorded. */
    epoch?: string;
  };

/** A permit. With it the Worker knows what its call costs, without a reply to its settlement. */
export type Permit = {
  lease: Lease;
  queuedMs: number;
  /** What is reserved for the attempt. */
  reserved: Amounts;
  /** The parallel group that the call belongs to by now; null = it is alone in its coalescing window so far. */
  parallelGroupId: string | null;
  /** When its coalescing window opened, epoch ms: names the window before it has an id. Null = it is not known any more. */
  windowOpenedAtMs: number | null;
  /** The key under which its answer is to be recorded; absent = it is not. */
  recordKey?: string;
};

export type AcquireReply =
  | ({ ok: true } & Permit & Remaining)
  /** No permit yet: send the request once more. */
  | { ok: "wait" }
  /** An equal call has ended, and this call shares its outcome. */
  | ({ ok: "shared"; outcome: Outcome; parallelGroupId: string | null } & Remaining)
  /** The call has a recorded answer, at no cost. */
  | ({ ok: "replayed"; answer: Recorded } & Remaining)
  | (Refused & Remaining);

/** An answer that its upstream stores for later requests, by the upstream's id of it. */
export type StoredAnswer = {
  id: string;
  /** The gate of the upstream, since another of its keys may not see the answer. */
  upstream: string;
};

/** What a single call's attempt ended as, and where its answer is stored, if its upstream stores it. */
export type SingleSettlement = {
  attemptId: string;
  outcome: Outcome;
  stored: StoredAnswer | null;
  /** Under what its answer is recorded; absent = it is not. */
  recorded?: RecordedCall;
} & Sampled;

export type SettleReply = {
  /** False when the attempt was not in flight any more: it was settled before, or the run has ended it. */
  known: boolean;
  /**
   * Set if the run has ended the attempt by itself, because its lease expired or it was given up: why. The other fields are those
   * of that end. Absent when `known` is false: the run does not remember what the attempt was charged.
   */
  endedAs?: Reason;
  /** Delay after which the call may be retried, or null when this was its last attempt. */
  retryInMs: number | null;
  /** For the retry of a call that has choices: what it has tried. */
  position?: Position;
  /** How many of the call's attempts so far do not count towards the most attempts of a call; absent = none. */
  uncounted?: number;
  costNanoUsd: number;
  promptTokens: number;
  completionTokens: number;
  estimated: boolean;
  /** Set when the answer was cut by the budget. */
  cappedBy?: "budget";
  parallelGroupId: string | null;
} & Remaining;

export type ToolCallName = { callId: string; tool: string };

/**
 * A request for the permit of a tool call. `waitedMs`: for how long its Worker has waited before, ms; absent = it does not wait at sockets, and
 * its request is pending until the decision.
 */
export type ToolCallRequest = ToolCallName & { waitedMs?: number };

/** The permit of a tool call, with the tool to call; or why it gets none. `wait`: send the request once more. */
export type AcquireToolReply = ({ ok: true; tool: Tool } & Remaining) | { ok: "wait" } | (Refused & Remaining);
