/**
 * What a run has counted at each gate since its begin, for `GET /metrics`. It is a part of the shards' totals, which are stored
 * anyway: so no count is lost when the object stops, and none costs a row. It is never taken back: gates keep apart what is new in
 * it (src/gate/meters.ts).
 */
import type { Amounts } from "../money/ledger.ts";
import { BATCH_TIER, type Outcome } from "../../call.ts";
import { addAttempt, addSheet, OTHER_MODELS, type MeteredAttempt, type MeterOutcome } from "../../gate/meter.ts";
import type { RunMeter } from "../../gate/meters.ts";
import { METER_MODEL_CHARS_MAX, MODELS_COUNTED_MAX } from "../../limits.ts";
import type { AttemptInFlight, Shard } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";
import type { ShardMeter } from "../measures/totals.ts";

/** Counts an attempt that has ended. */
export function meter(
  state: EngineState,
  shard: Shard,
  lease: AttemptInFlight,
  { outcome, charge }: { outcome: Outcome; charge: Amounts },
): void {
  const { target, attempt, queuedMs } = lease;
  // Lost with the instance that started it: that one may not have reached its gate.
  if (lease.gateTokens === null && outcome.kind === "failure" && outcome.class === "unknown")
    state.upstreams.get(target.gate)?.retire();
  const isOfBatch = lease.tier === BATCH_TIER;
  count(state, shard, target.gate, {
    upstream: target.upstream,
    model: target.model.slice(0, METER_MODEL_CHARS_MAX),
    outcome: outcomeOf(outcome),
    charge: { calls: 1, ...chargeOf(charge) },
    // A provider does not report how long it worked on a call of its batch, and such a call waits for no permit.
    latencyMs: isOfBatch ? null : outcome.latencyMs,
    queuedMs: attempt === 1 && !isOfBatch ? queuedMs : null,
    ...(lease.hedgeOf === undefined ? {} : { isHedge: true as const }),
  });
}

/** Counts what was charged for a lost credit: of which calls, and how many, is not known. */
export function meterLost(state: EngineState, shard: Shard, gate: string, charged: Amounts): void {
  const [upstream = gate] = gate.split("#", 1);
  const charge = { calls: 0, ...chargeOf(charged) };
  count(state, shard, gate, {
    upstream,
    model: OTHER_MODELS,
    outcome: "unknown",
    charge,
    latencyMs: null,
    queuedMs: null,
  });
}

function chargeOf({ usd, prompt_tokens, completion_tokens }: Amounts) {
  return { promptTokens: prompt_tokens, completionTokens: completion_tokens, costNanoUsd: usd };
}

function outcomeOf(outcome: Outcome): MeterOutcome {
  if (outcome.kind === "success") return "success";
  return outcome.class === "transient" ? "failed" : outcome.class;
}

function count(state: EngineState, { totals }: Shard, gateName: string, attempt: MeteredAttempt): void {
  const at = ((totals.metered ??= {})[gateName] ??= { number: 0, sheet: {} });
  addAttempt(at.sheet, attempt, hasName(state, gateName, attempt) ? Infinity : 0);
  at.number += 1;
  const gate = state.upstreams.get(gateName);
  if (gate?.isAnnounced === true) return;
  at.isOwed = true;
  gate?.owes();
}

/**
 * Whether the run counts a model apart at a gate: the first of them only. All shards count the same ones apart, so that what is
 * counted under a name never becomes less.
 */
function hasName(state: EngineState, gate: string, { upstream, model }: MeteredAttempt): boolean {
  const names = state.meterNames.get(gate) ?? namesAt(state, gate);
  state.meterNames.set(gate, names);
  const name = `${upstream}/${model}`;
  if (names.size < MODELS_COUNTED_MAX) names.add(name);
  return names.has(name);
}

function namesAt(state: EngineState, gate: string): Set<string> {
  const names = new Set<string>();
  for (const { sheet } of metersAt(state, gate)) for (const name of Object.keys(sheet)) names.add(name);
  return names;
}

function* metersAt(state: EngineState, gate: string): Generator<ShardMeter> {
  for (const { totals } of state.shards.values()) {
    const metered = totals.metered?.[gate];
    if (metered !== undefined) yield metered;
  }
}

/**
 * All that the run has counted at a gate. Whoever sends it has stored it first: what a restart takes back must not be counted.
 * An idle run notes that it exchanges with the gate before it counts more.
 */
export function meterAt(
  state: EngineState,
  gateName: string,
  run: { id: string; isFinal: boolean },
  nowMs: number,
): RunMeter {
  const sum: RunMeter = { run: run.id, number: 0, sheet: {}, state: "active" };
  for (const { number, sheet } of metersAt(state, gateName)) {
    sum.number += number;
    addSheet(sum.sheet, sheet, Infinity);
  }
  const gate = state.upstreams.get(gateName);
  if (run.isFinal) return { ...sum, state: "ended" };
  const isIdle = state.credits.permitsAt(gateName) === 0 && gate?.mayRetire(nowMs) !== false;
  if (!isIdle) return sum;
  gate?.retire();
  return { ...sum, state: "idle" };
}

/** The gates at which the run has counted something, or may have said that it would. */
export function meteredGates(state: EngineState): string[] {
  const gates = new Set<string>();
  for (const { totals } of state.shards.values()) for (const gate in totals.metered) gates.add(gate);
  for (const [name, { isAnnounced }] of state.upstreams.shared()) if (isAnnounced) gates.add(name);
  return [...gates];
}

/** The gates that do not know that the run has counted something there. */
export function owedGates(state: EngineState): string[] {
  const gates = new Set<string>();
  for (const { totals } of state.shards.values()) {
    if (totals.metered === undefined) continue;
    for (const [gate, { isOwed }] of Object.entries(totals.metered)) if (isOwed === true) gates.add(gate);
  }
  return [...gates];
}

/** A gate has noted that the run may count more there than the gate has. */
export function announced(state: EngineState, gateName: string): void {
  state.upstreams.get(gateName)?.announced();
  for (const metered of metersAt(state, gateName)) delete metered.isOwed;
}
