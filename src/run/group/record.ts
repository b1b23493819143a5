/** The stored record of a slot that is no longer fresh, and how its attempts add up. */
import { addTold } from "../measures/told-tokens.ts";
import type { Samples } from "../answers/samples.ts";
import type { Amounts } from "../money/ledger.ts";
import type { AnswerParts, AskedCall, Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import type { Position } from "../leases/shard.ts";
import type { SlotState } from "../queue/slot.ts";

/** A slot's row. Tokens and cost are sums over its attempts: a call costs what all its attempts cost. */
export type SlotRecord = {
  id: number;
  state: SlotState;
  attempts: number;
  /** Earliest start of a queued slot's next attempt. */
  notBeforeMs: number | null;
  latencyMs: number;
  queuedMs: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: number;
  estimated: boolean;
  model: string | null;
  finishReason: string | null;
  /** Set if the gateway cut the answer short. */
  cappedBy?: "budget";
  text: string | null;
  /** What its answer has beside the text; absent = nothing. */
  parts?: AnswerParts;
  reason: Reason | null;
  /** Name of the upstream that answered, of a call that asked for a route. */
  upstream?: string;
  /** Of a call with a schema: what the checks of its answers have found; absent = none has arrived. */
  checks?: SlotChecks;
  /** Of a call that may be more than one answer: how far it is; absent = it had none, or its first one did. */
  course?: Course;
  /**
   * Of a completed slot of a run that records: the key of its answer. `of`: the recorded answer that it ended with, instead of an
   * attempt.
   */
  replay?: { key: string; of?: string };
  /** What its answer saved because it came from its provider's batch, against the standard tier; absent = it did not. */
  savedNanoUsd?: number;
  /** Prompt tokens that the provider's cache had; absent = none, or it did not say. */
  cacheHitTokens?: number;
  /** Completion tokens that were reasoning; absent = none, or the provider did not say. */
  reasoningTokens?: number;
  /** What a queued slot that has choices has tried; in memory only. */
  position?: Position;
};

/** How far a call is that goes to several models, or is made several times (../continuations). */
export type Course = {
  /** Attempts of the models or samples that have ended, and what they cost. */
  base: number;
  baseCostNanoUsd: number;
  /** The model that the call has come to, after its first. */
  model?: string;
  /** The models that it was sent to before; once it has ended, all of them. */
  steps?: readonly Step[];
  samples?: Samples;
  /** The best answer among the samples so far. */
  kept?: KeptAnswer;
  /** Of a call whose model may use tools: what it has done so far; absent = no answer has come. */
  toolUse?: UsedTools;
};

/** Answers of a call whose model may use tools, and the calls of tools by their names: over all of its models and samples. */
export type UsedTools = { turns: number; calls: Readonly<Record<string, number>>; talk?: Talk };

/** The conversation of a call whose model has used tools and has not answered yet. */
export type Talk = {
  /** Answers in it. */
  turns: number;
  /** Attempts of the slot when the last of them, or the last results, had come. */
  base: number;
  /** What follows the messages of the call, as JSON texts. */
  messages: readonly string[];
  /** Their bytes, as tokenizers read them. */
  bytes: number;
  /** The calls of the last answer, while their results are missing. */
  pending?: readonly AskedCall[];
  /** Times that the executor of these calls was lost. */
  lost?: number;
  /** The last answer; its message is in `messages`, `at` this place. The slot ends with it if the budget pays for no further one. */
  last: Pick<SlotRecord, "text" | "model" | "finishReason"> & { at: number };
};

/** A model that a call was sent to, and why it went on, or how it ended. */
export type Step = { model: string; outcome: string; attempts: number; costNanoUsd: number };

/** The fields of a record that are those of its answer. */
export type KeptAnswer = Pick<
  SlotRecord,
  "text" | "parts" | "model" | "finishReason" | "cappedBy" | "upstream" | "checks"
>;

/** What the checks of a slot's answers have found. */
export type SlotChecks = {
  /** Times that another answer was requested. */
  repairs: number;
  /** Why the last answer does not fit; null = it does. */
  violation: string | null;
  /** Bytes that the request for another answer adds to the prompt; absent = the answer fits. */
  repairBytes?: number;
};

/** The record of a slot that has none yet. */
export function freshRecord(id: number): SlotRecord {
  return {
    id,
    state: "queued",
    attempts: 0,
    notBeforeMs: null,
    latencyMs: 0,
    queuedMs: 0,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0,
    estimated: false,
    model: null,
    finishReason: null,
    text: null,
    reason: null,
  };
}

/**
 * True if an unfinished slot has an answer that ended at a learned cap and is requested again. The record keeps it: it
 * is paid for, and if the budget ends before a whole answer arrives, the slot ends with it.
 */
export function hasShortAnswer(record: SlotRecord | undefined): record is SlotRecord & { text: string } {
  return record !== undefined && record.model !== null && record.text !== null;
}

/** True if an unfinished slot has an answer that does not fit its schema, and is asked again for one that does. */
export function hasInvalidAnswer(
  record: SlotRecord | undefined,
): record is SlotRecord & { text: string; checks: SlotChecks & { violation: string } } {
  return record !== undefined && record.model === null && record.text !== null && record.checks?.violation != null;
}

/** The text of a record, and what it has beside it. */
export function answerIn({ text, parts }: SlotRecord): Pick<SlotRecord, "text" | "parts"> {
  return parts === undefined ? { text } : { text, parts };
}

/** Writes a text and what it has beside it into a record. */
export function setAnswer(record: SlotRecord, { text, parts }: Pick<SlotRecord, "text" | "parts">): void {
  record.text = text;
  if (parts === undefined) delete record.parts;
  else record.parts = parts;
}

/** The record without the answer that a slot had before it ended in another way. */
export function withoutAnswer(record: SlotRecord): SlotRecord {
  const { parts: _, ...rest } = record;
  if (hasInvalidAnswer(record)) return { ...rest, text: null };
  return record.model === null ? record : { ...rest, model: null, finishReason: null, text: null };
}

type EndedAttempt = { charge: Amounts; estimated: boolean; attempt: number; queuedMs: number };

/** Adds an attempt that ended beside another one of its slot: the answer is the other's. `latencyMs`: the time that it adds. */
export function addBeside(record: SlotRecord, ended: EndedAttempt & { latencyMs: number }): void {
  const { charge, attempt } = ended;
  record.attempts = Math.max(record.attempts, attempt);
  record.latencyMs += ended.latencyMs;
  if (attempt === 1) record.queuedMs = ended.queuedMs;
  record.promptTokens += charge.prompt_tokens;
  record.completionTokens += charge.completion_tokens;
  record.costNanoUsd += charge.usd;
  record.estimated ||= ended.estimated;
  // What is not new of the tokens was in a cache.
  const cacheHitTokens = charge.prompt_tokens + charge.completion_tokens - charge.new_tokens;
  addTold(record, { cacheHitTokens, reasoningTokens: 0 });
}

/** Adds an ended attempt to a slot's record. The caller sets the state. */
export function addAttempt(record: SlotRecord, ended: EndedAttempt & { outcome: Outcome }): void {
  const { outcome } = ended;
  addBeside(record, { ...ended, latencyMs: outcome.latencyMs });
  record.notBeforeMs = null;
  if (outcome.kind === "success") {
    record.model = outcome.model;
    record.finishReason = outcome.finishReason;
    if (outcome.cappedBy !== undefined) record.cappedBy = outcome.cappedBy;
    addTold(record, { cacheHitTokens: 0, reasoningTokens: outcome.usage?.reasoningTokens ?? 0 });
    setAnswer(record, outcome);
    record.reason = null;
  } else {
    record.reason = outcome.reason;
    setAnswer(record, { text: outcome.body ?? null });
  }
}
