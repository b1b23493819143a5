/** What is remembered of a slot once it differs from a fresh one, and how attempts add up to a call. */
import type { Amounts } from "../budget/ledger.ts";
import type { Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import type { SlotState } from "./slot.ts";

/** A slot's row. Tokens and cost are sums over its attempts: a call costs what all its attempts cost. */
export type SlotRecord = {
  id: number;
  state: SlotState;
  attempts: number;
  /** While queued: not to be started before. */
  notBeforeMs: number | null;
  latencyMs: number;
  queuedMs: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: number;
  estimated: boolean;
  model: string | null;
  finishReason: string | null;
  text: string | null;
  reason: Reason | null;
};

/** The record of a slot of which nothing has been remembered yet. */
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

/** Adds one ended attempt to a slot's record. The state is the caller's to set. */
export function addAttempt(
  record: SlotRecord,
  ended: { outcome: Outcome; charge: Amounts; estimated: boolean; attempt: number; queuedMs: number },
): void {
  const { outcome, charge } = ended;
  record.attempts = ended.attempt;
  record.latencyMs += outcome.latencyMs;
  if (ended.attempt === 1) record.queuedMs = ended.queuedMs;
  record.promptTokens += charge.prompt_tokens;
  record.completionTokens += charge.completion_tokens;
  record.costNanoUsd += charge.usd;
  record.estimated ||= ended.estimated;
  record.notBeforeMs = null;
  if (outcome.kind === "success") {
    record.model = outcome.model;
    record.finishReason = outcome.finishReason;
    record.text = outcome.text;
    record.reason = null;
  } else {
    record.reason = outcome.reason;
    record.text = outcome.body ?? null;
  }
}
