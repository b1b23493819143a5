/**
 * What a run has counted and its gates do not know yet. It is a part of the shards' totals, which are stored anyway: so no
 * count is lost when the object stops, and none costs a row.
 */
import type { Amounts } from "../money/ledger.ts";
import { BATCH_TIER, type Outcome } from "../../call.ts";
import { addAttempt, addSheet, isEmpty, type MeterOutcome, type MeterSheet } from "../../gate/meter.ts";
import { METER_MODEL_CHARS_MAX, METERED_MODELS_MAX, MODELS_COUNTED_MAX } from "../../limits.ts";
import type { AttemptInFlight, Shard } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";

/** Counts an attempt that has ended. */
export function meter({ totals }: Shard, lease: AttemptInFlight, outcome: Outcome, charge: Amounts): void {
  const { target, attempt, queuedMs } = lease;
  const isOfBatch = lease.tier === BATCH_TIER;
  const sheet = ((totals.meters ??= {})[target.gate] ??= {});
  const { usd: costNanoUsd, prompt_tokens: promptTokens, completion_tokens: completionTokens } = charge;
  const metered = {
    upstream: target.upstream,
    model: target.model.slice(0, METER_MODEL_CHARS_MAX),
    outcome: outcomeOf(outcome),
    charge: { calls: 1, promptTokens, completionTokens, costNanoUsd },
    // A provider does not report how long it worked on a call of its batch, and such a call waits for no permit.
    latencyMs: isOfBatch ? null : outcome.latencyMs,
    queuedMs: attempt === 1 && !isOfBatch ? queuedMs : null,
    ...(lease.hedgeOf === undefined ? {} : { isHedge: true as const }),
  };
  addAttempt(sheet, metered, MODELS_COUNTED_MAX);
}

function outcomeOf(outcome: Outcome): MeterOutcome {
  if (outcome.kind === "success") return "success";
  return outcome.class === "transient" ? "failed" : outcome.class;
}

/** What was counted at a gate since the last call; null = nothing. Rows have it until they are written again. */
export function takeSheet(state: EngineState, gate: string): MeterSheet | null {
  const taken: MeterSheet = {};
  for (const { totals } of state.shards.values()) {
    const sheet = totals.meters?.[gate];
    if (sheet === undefined) continue;
    addSheet(taken, sheet, METERED_MODELS_MAX);
    delete totals.meters?.[gate];
    if (isEmpty(totals.meters ?? {})) delete totals.meters;
  }
  return isEmpty(taken) ? null : taken;
}

/** Whether anything was counted that no gate knows. */
export function hasSheets(state: EngineState): boolean {
  for (const { totals } of state.shards.values()) if (totals.meters !== undefined) return true;
  return false;
}

/** What was counted at all gates since the last call, by gate; empty = nothing. */
export function takeSheets(state: EngineState): Record<string, MeterSheet> {
  const gates = new Set<string>();
  for (const { totals } of state.shards.values()) for (const gate in totals.meters) gates.add(gate);
  const sheets: Record<string, MeterSheet> = {};
  for (const gate of gates) {
    const sheet = takeSheet(state, gate);
    if (sheet !== null) sheets[gate] = sheet;
  }
  return sheets;
}
