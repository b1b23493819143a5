/** What waits at gates: why a call or a group does, when that is reported as its end, and how much work waits. */
import type { CallFacts } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import type { ClassDemand, WorkClass } from "../../gate/wire.ts";
import { RETRY_AFTER_MAX_MS, STOPPED_FIRST_WAIT_MS, STOPPED_WAIT_MS } from "../../limits.ts";
import { patienceOf, type SingleCall } from "../leases/single-call.ts";
import { factsOf } from "./enqueue.ts";
import type { Group } from "../group/group.ts";
import { headOf, type Bucket } from "../queue/queue.ts";
import { lineOf } from "../gates/route-keys.ts";
import { sendable } from "../gates/sendable.ts";
import { indexOf, slotIdOf } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import type { GateWait, Stop } from "../gates/gate-client.ts";
import { gateTokensOf } from "../leases/tokens.ts";

/** A single call that is queued, by its Worker or as a group of one. */
type QueuedCall = { line: string; upstream: string; deadlineAtMs: number | null; waitsForGate: boolean };

/**
 * Why a single call that waits at its gate ends now; null = it goes on waiting, or does not wait there. Its client gets the
 * error at once when waiting cannot help: the gate lets nothing start before the call's deadline; or the call has none, and
 * the key does not work or would be ready later than the longest Retry-After that is obeyed.
 */
export function endAtGate(
  state: EngineState,
  { line, upstream, deadlineAtMs, waitsForGate }: QueuedCall,
  nowMs: number,
): Reason | null {
  const wait = waitAt(state, line, nowMs);
  if (wait === null) return null;
  const latestMs = deadlineAtMs ?? nowMs + RETRY_AFTER_MAX_MS;
  const isTooLate = wait.readyAtMs !== null && wait.readyAtMs > latestMs;
  const isHopeless = wait.reason === "stopped" && !waitsForGate;
  return isTooLate || isHopeless || nowMs >= latestMs ? gateReason(state, upstream, wait, nowMs) : null;
}

/** A call that its Worker has queued. */
export function queuedCall({ target, position, deadlineMs, queuedAtMs, waitsForGate }: SingleCall): QueuedCall {
  const deadlineAtMs = deadlineMs === null ? null : queuedAtMs + deadlineMs;
  const line = lineOf(target, position);
  return { line, upstream: target.upstream, deadlineAtMs, waitsForGate: waitsForGate === true };
}

/** A queued call that is stored as a group of one; null = the configuration has nowhere to send it. */
export function queuedSingle(state: EngineState, group: Group): QueuedCall | null {
  const { seq, deadlineMs, openedAtMs } = group.header;
  const facts = factsOf(state, group, 0);
  const asked = state.targetOf(group.header, facts);
  if (asked === null) return null;
  const target = sendable(asked, facts);
  const line = lineOf(target, state.tried.get(slotIdOf(seq, 0))?.position);
  const deadlineAtMs = deadlineMs === null ? null : openedAtMs + deadlineMs;
  return { line, upstream: target.upstream, deadlineAtMs, ...patienceOf(deadlineMs) };
}

/**
 * Why a batch with a deadline ends now: none of its calls is in flight, and the rate limits of their keys let none start before the
 * deadline. Null = one may start. A key that does not work may be repaired at any time, and a width grows: nobody knows their time.
 */
export function tooLateReason(state: EngineState, group: Group, nowMs: number): Reason | null {
  const { header, counts, inFlight, mayStart, provider } = group;
  if (header.single !== null || header.deadlineMs === null) return null;
  if (counts.queued === 0 || inFlight > 0 || !mayStart || provider !== null) return null;
  const deadlineAtMs = header.openedAtMs + header.deadlineMs;
  let first: LineWait | null = null;
  for (const line of state.queue.upstreamsOf(header.seq)) {
    const wait = waitAt(state, line, nowMs);
    if (wait === null || !isRate(wait) || (wait.readyAtMs ?? 0) <= deadlineAtMs) return null;
    if (first === null || isSooner(wait, first)) first = wait;
  }
  return first === null ? null : gateReason(state, first.gate, first, nowMs);
}

function isRate({ reason }: GateWait): boolean {
  return reason === "requests_per_minute" || reason === "tokens_per_minute";
}

/** The error of a call that has waited at a gate. It can be repeated later. */
function gateReason({ upstreams }: EngineState, upstream: string, wait: LineWait, nowMs: number): Reason {
  const { gate, reason, readyAtMs } = wait;
  const stop = upstreams.get(gate)?.stop ?? null;
  if (stop !== null) return stoppedReason(upstream, stop);
  const retryAfterMs = readyAtMs === null ? null : Math.max(0, readyAtMs - nowMs);
  const message = `${upstream} is at its limit (${reason}), and nothing can start there before the deadline of the call`;
  return { reason: "upstream_rate_limited", upstream, message, retryAfterMs };
}

/** The error of what has waited for a key that does not work. */
function stoppedReason(upstream: string, { reason: upstreamCode, message }: Stop): Reason {
  const words = message === null ? "" : `: ${message}`;
  const text = `calls to ${upstream} are stopped, because it does not accept the gateway's key${words}`;
  return { reason: "upstream_error", upstream, status: null, message: text, retryable: true, upstreamCode };
}

/** When a batch without a deadline ends because the keys that its slots wait for do not work; null = it need not end. */
export function stoppedEndMs(state: EngineState, group: Group, nowMs: number): { atMs: number; reason: Reason } | null {
  const { header, counts } = group;
  if (header.single !== null || header.deadlineMs !== null || header.background === true) return null;
  if (counts.queued === 0 || group.inFlight > 0) return null;
  if (!state.upstreams.hasStop) return null;
  let end: { atMs: number; reason: Reason } | null = null;
  for (const line of state.queue.upstreamsOf(header.seq)) {
    const wait = waitAt(state, line, nowMs);
    const stop = wait === null ? null : (state.upstreams.get(wait.gate)?.stop ?? null);
    // Slots that wait elsewhere may start.
    if (wait === null || stop === null) return null;
    const waitMs = counts.completed > 0 ? STOPPED_WAIT_MS : STOPPED_FIRST_WAIT_MS;
    const atMs = Math.max(stop.sinceMs, header.openedAtMs) + waitMs;
    if (end === null || atMs > end.atMs) end = { atMs, reason: stoppedReason(wait.gate, stop) };
  }
  return end;
}

/** What the calls of a line wait for: the gate that lets one start first, of those that are not stopped if there are any. */
export type LineWait = GateWait & { gate: string };

/** Why the calls of a line wait; null = a gate lets one start, or the run's own limits alone make them wait. */
export function waitAt({ upstreams, credits, lines }: EngineState, line: string, nowMs: number): LineWait | null {
  let first: LineWait | null = null;
  const known = lines.get(line);
  const model = known?.isOfModel === true ? known.target.model : null;
  for (const gate of lines.gatesOf(line)) {
    const wait = upstreams.waitOf(gate, nowMs, credits.permitsAt(gate), model);
    if (wait === null) return null;
    if (first === null || isSooner(wait, first)) first = { ...wait, gate };
  }
  return first;
}

function isSooner(a: GateWait, b: GateWait): boolean {
  if ((a.reason === "stopped") !== (b.reason === "stopped")) return b.reason === "stopped";
  return (a.readyAtMs ?? Infinity) < (b.readyAtMs ?? Infinity);
}

/** How many slots and calls of the run would start at a gate if they could: the sum of its demand there. */
export function waitingAt(state: EngineState, gate: string): number {
  let waiting = 0;
  for (const { count, gates } of demandingAt(state, gate)) waiting += Math.ceil(count / gates);
  return waiting;
}

/** What of the run would start at a gate if it could. */
export function demandAt(state: EngineState, gate: string): Record<WorkClass, ClassDemand> {
  const none = (): ClassDemand => ({ waiting: 0, tokensPerCall: 0 });
  const demand = { interactive: none(), standard: none(), batch: none() };
  const mean = state.upstreams.get(gate)?.tokensPerCall ?? null;
  for (const { bucket, count, gates } of demandingAt(state, gate)) {
    const ofClass = demand[classOf(state, bucket)];
    // Calls that may pass several gates are a part of the demand at each.
    ofClass.waiting += Math.ceil(count / gates);
    const tokens = mean ?? headTokens(state, bucket);
    ofClass.tokensPerCall = Math.ceil(tokens.all);
    ofClass.inputTokensPerCall = Math.ceil(tokens.input);
  }
  return demand;
}

/** The buckets whose slots would start at a gate if they could, with how many they are and the gates that they may pass. */
function* demandingAt(
  { isPaused, queue, groups, lines }: EngineState,
  gate: string,
): Generator<{ bucket: Bucket; count: number; gates: number }> {
  if (isPaused) return;
  for (const { bucket, count } of queue.ready()) {
    // A call that waits for the budget or a confirmation must not request permits of a gate that other runs share.
    if (groups.get(bucket.groupSeq)?.mayStart === false) continue;
    const gates = lines.gatesOf(bucket.upstream);
    if (gates.includes(gate)) yield { bucket, count, gates: gates.length };
  }
}

/** `/query` and `/v1` are interactive, `/batch` and the dialects standard, background work is batch. */
function classOf({ groups }: EngineState, { groupSeq }: Bucket): WorkClass {
  const header = groups.get(groupSeq)?.header;
  if (groupSeq === 0 || (header !== undefined && header.single !== null)) return "interactive";
  return header?.background === true ? "batch" : "standard";
}

function headTokens(state: EngineState, bucket: Bucket): { all: number; input: number } {
  const id = headOf(bucket);
  const facts = id === undefined ? undefined : headFacts(state, bucket, id);
  return facts === undefined ? { all: 0, input: 0 } : gateTokensOf(facts, facts.maxTokens);
}

function headFacts(state: EngineState, { groupSeq }: Bucket, id: number): CallFacts | undefined {
  if (groupSeq === 0) return state.calls.get(id)?.facts;
  const group = state.groups.get(groupSeq);
  return group === undefined ? undefined : factsOf(state, group, indexOf(id));
}
