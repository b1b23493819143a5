/** A run's exchanges with its gates: which are due, what they report, and what follows from the replies. */
import type { GateGrant, GateReport, RateSample } from "../../gate/wire.ts";
import { GATE_SLEEP_DEADLINE_MS } from "../../limits.ts";
import type { EngineState } from "../state.ts";
import type { GateClient } from "../gates/gate-client.ts";
import { announced } from "./metered.ts";
import { demandAt, waitingAt } from "./waiting.ts";

/** Who reports: the run, and the instance of its object. */
export type Reporter = Pick<GateReport, "run" | "instance" | "weight">;

/** An exchange to make now. */
export type DueExchange = { gate: string; report: GateReport };

/** The exchanges that are due. Each must be followed by `granted` or `unreached`. */
export function dueExchanges(state: EngineState, who: Reporter, nowMs: number): DueExchange[] {
  const due: DueExchange[] = [];
  for (const [name, gate] of state.upstreams.shared()) {
    if (gate.isQuiet(nowMs)) continue;
    const demand = { waiting: waitingAt(state, name) };
    const atMs = gate.exchangeAtMs(demand, nowMs);
    if (atMs === null || atMs > nowMs) continue;
    const lent = state.credits.permitsAt(name);
    due.push({ gate: name, report: gate.report(who, { classes: demandAt(state, name), demand, lent }, nowMs) });
  }
  return due;
}

/**
 * When time alone makes an exchange due; null = none. Only calls that wait for a gate wake the run: exchanges with an open gate
 * happen with a turn that happens anyway.
 * @param deadlineAtMs The first deadline of the calls that wait; null = they have none. Calls with a near deadline do not wait for
 * others to collect.
 */
export function nextExchangeMs(state: EngineState, deadlineAtMs: number | null, nowMs: number): number | null {
  const isHurried = deadlineAtMs !== null && deadlineAtMs < nowMs + GATE_SLEEP_DEADLINE_MS;
  let next: number | null = null;
  for (const [name, gate] of state.upstreams.shared()) {
    const isOpen = gate.isOpen(nowMs);
    if (gate.times.isPending ? isOpen : gate.isQuiet(nowMs)) continue;
    const demand = { waiting: waitingAt(state, name) };
    if (isOpen && demand.waiting === 0) continue;
    const wakeAtMs = gate.wakeAtMs(demand, state.credits.permitsAt(name), nowMs);
    const atMs = isHurried ? (gate.exchangeAtMs(demand, nowMs) ?? wakeAtMs) : wakeAtMs;
    if (atMs !== null) next = Math.min(next ?? Infinity, atMs);
  }
  return next;
}

/** Whether the reply of a gate is on its way, or will be at once: calls that wait there may start with it. */
export function isExchanging(state: EngineState, nowMs: number): boolean {
  for (const [name, gate] of state.upstreams.shared()) {
    if (gate.times.isPending) return true;
    if (gate.isQuiet(nowMs)) continue;
    const atMs = gate.exchangeAtMs({ waiting: waitingAt(state, name) }, nowMs);
    if (atMs !== null && atMs <= nowMs) return true;
  }
  return false;
}

/** A gate that the run leaves, with its last report: none is on its way. */
export type DueLeave = { gate: string; last: GateReport };

/** The gates that the run leaves now: each must be notified. */
export function dueLeaves(state: EngineState, who: Reporter, nowMs: number): DueLeave[] {
  const left: DueLeave[] = [];
  for (const [name, gate] of state.upstreams.shared()) {
    if (gate.inFlight > 0 || gate.isOpen(nowMs)) continue;
    if (gate.takeLeave({ waiting: waitingAt(state, name) }, nowMs))
      left.push({ gate: name, last: gate.lastWords(who, { classes: demandAt(state, name), lent: 0 }, nowMs) });
  }
  return left;
}

/** A gate has replied. */
export function granted(state: EngineState, name: string, grant: GateGrant, nowMs: number): void {
  change(state, name, (gate) => gate.granted(grant, nowMs), nowMs);
  if (grant.notesRun === true) announced(state, name);
  if (grant.latency !== undefined) state.hedges.noteGateLatencies(name, grant.latency);
}

/** A gate has changed what it grants the run. */
export function gateChanged(state: EngineState, name: string, grant: GateGrant, nowMs: number): void {
  change(state, name, (gate) => gate.changed(grant, nowMs), nowMs);
}

/** A gate could not be reached. */
export function unreached(state: EngineState, name: string, nowMs: number): void {
  state.upstreams.get(name)?.unreached(state.deps.random(), nowMs);
}

/** Headers of answers that executors have seen, by gate. */
export function sampled(state: EngineState, samples: Readonly<Record<string, RateSample>>, nowMs: number): void {
  for (const [name, sample] of Object.entries(samples)) state.upstreams.get(name)?.news.seen(sample, nowMs);
}

/**
 * Changes a gate, and logs it if calls of the run wait there from now on, or are stopped. What the run has met itself is in its
 * log already, and so is that it waits: reasons that take turns make no entries. A run without calls there logs nothing, because
 * nothing may follow the end of its last group; it logs the change with the first exchange for later calls.
 */
function change(state: EngineState, name: string, apply: (gate: GateClient) => void, nowMs: number): void {
  const gate = state.upstreams.get(name);
  if (gate === undefined) return;
  const { loggedReason: before, hasReportedFailures: isKnown } = gate;
  apply(gate);
  const { reason } = gate;
  const isNew = before === null || (reason === "stopped" && before !== "stopped");
  if (reason === null || !isNew || isKnown) return gate.noteLogged(true);
  const hasCalls = gate.inFlight > 0 || waitingAt(state, name) > 0;
  gate.noteLogged(hasCalls);
  if (!hasCalls) return;
  const [upstream = name] = name.split("#", 1);
  const readyAtMs = gate.waitOf(nowMs)?.readyAtMs ?? nowMs;
  const retryAfterMs = Math.max(0, readyAtMs - nowMs);
  state.log.add({ event: "throttled", upstream, gate: name, cause: reason, retryAfterMs }, null, nowMs);
}
