/**
 * What queued slots wait for, for those who look at them: why dispatch does not start them, and what keeps others out of its queue.
 * It is not stored.
 */
import type { Dimension } from "../../errors.ts";
import type { GateReason } from "../../gate/wire.ts";
import { holdsOf, type Hold } from "./dispatch.ts";
import type { Group } from "../group/group.ts";
import type { EngineState } from "../state.ts";
import { WAITS_NAMED_MAX } from "../../limits.ts";
import { subjectOf } from "./shared-prefixes.ts";
import { slotIdOf } from "../queue/slot.ts";
import { blockedSlots } from "../group/dependencies.ts";

/** `readyInMs` null = nobody knows when. */
export type WaitingFor =
  /** `model`: the one that is overloaded by itself; absent = the limit is the key's. */
  | { kind: "gate"; gate: string; reason: GateReason; readyInMs: number | null; model?: string }
  /** The group's quote is above `confirmOver` of its run. */
  | { kind: "confirmation" }
  /** Reservations in flight hold what the next call needs; `isExhausted`: only a higher limit gives it. */
  | { kind: "budget"; dimension: Dimension; isExhausted?: true }
  /** The first call with the same text writes it to the provider's cache. */
  | { kind: "context"; context: string }
  /** The same for the first call with the same system message. */
  | { kind: "prefix"; prefix: "system" | "marked" }
  /** Tasks of its graph that have not ended, by their ids; the first of them. */
  | { kind: "dependency"; tasks: string[] }
  /** A batch of its provider: its upstream; null = the batch is not made yet. */
  | { kind: "provider_batch"; upstream: string | null }
  /** The end of the calls of an earlier tier: only `queueLook` counts these. */
  | { kind: "tier" }
  /** An equal call in flight, whose answer it gets. Only `queueLook` counts these, but for a call that was made early for the slot. */
  | { kind: "equal_call" }
  /** The delay before a retry. */
  | { kind: "retry"; readyInMs: number }
  /** A permit of the run, of its group or of the upstream, or an executor that takes it. */
  | { kind: "permit" };

/** Slots of a group that wait for the same. */
export type Waiting = { waitingFor: WaitingFor; slots: number };

/** What a group's queued slots wait for, most slots first. Slots that share the answer of an equal call are not among them. */
export function waitsOf(state: EngineState, group: Group, nowMs: number): Waiting[] {
  const waits = queueWaits(state, group.header.seq, nowMs);
  const blocked = blockedSlots(group);
  if (blocked.length > 0) {
    const tasks = [...new Set(blocked.flatMap((each) => each.tasks))].slice(0, WAITS_NAMED_MAX);
    const slots = blocked.reduce((sum, each) => sum + each.indexes.length, 0);
    waits.set("dependency", { waitingFor: { kind: "dependency", tasks }, slots });
  }
  for (const waitingFor of providerWaits(group).values()) {
    const name = waitingFor.kind === "provider_batch" ? `provider_batch ${waitingFor.upstream ?? ""}` : waitingFor.kind;
    const known = waits.get(name);
    if (known === undefined) waits.set(name, { waitingFor, slots: 1 });
    else known.slots += 1;
  }
  return [...waits.values()].filter(({ slots }) => slots > 0).sort((a, b) => b.slots - a.slots);
}

/** What the calls or slots of that number wait for that are in the queue; 0 = single calls. */
export function waitsAt(state: EngineState, groupSeq: number, nowMs: number): Waiting[] {
  return [...queueWaits(state, groupSeq, nowMs).values()];
}

/** The same by a name of each cause. */
function queueWaits(state: EngineState, groupSeq: number, nowMs: number): Map<string, Waiting> {
  const waits = new Map<string, Waiting>();
  for (const { waitingFor, slotIds } of queuedWaits(state, groupSeq, nowMs)) {
    // Retries become ready one by one: they are one entry, whose time is that of the first.
    const name = waitingFor.kind === "gate" ? gateWaitName(waitingFor) : waitingFor.kind;
    const known = waits.get(name);
    if (known === undefined) waits.set(name, { waitingFor, slots: slotIds.length });
    else {
      known.slots += slotIds.length;
      known.waitingFor = sooner(known.waitingFor, waitingFor);
    }
  }
  return waits;
}

function gateWaitName({ gate, reason, model = "" }: WaitingFor & { kind: "gate" }): string {
  return `gate ${gate} ${reason} ${model}`;
}

/** What each queued slot of a group waits for, by its id. */
export function waitsBySlot(state: EngineState, group: Group, nowMs: number): Map<number, WaitingFor> {
  const bySlot = new Map<number, WaitingFor>();
  for (const { waitingFor, slotIds } of queuedWaits(state, group.header.seq, nowMs)) {
    for (const slotId of slotIds) bySlot.set(slotId, waitingFor);
  }
  for (const { indexes, tasks } of blockedSlots(group)) {
    for (const index of indexes) bySlot.set(slotIdOf(group.header.seq, index), { kind: "dependency", tasks });
  }
  for (const [index, waitingFor] of providerWaits(group)) bySlot.set(slotIdOf(group.header.seq, index), waitingFor);
  return bySlot;
}

/** What the slots of a group wait for that are in the queue, those of a line together. */
function* queuedWaits(
  state: EngineState,
  groupSeq: number,
  nowMs: number,
): Generator<{ waitingFor: WaitingFor; slotIds: number[] }> {
  const holdOf = holdsOf(state, nowMs);
  for (const { line, slotIds, notBeforeMs } of state.queue.queuedOf(groupSeq)) {
    const [first] = slotIds;
    if (first === undefined) continue;
    const hold = holdOf({ groupSeq, line, first, notBeforeMs });
    yield { waitingFor: shown(hold, notBeforeMs, nowMs), slotIds };
  }
}

/** What the slots wait for that are for their provider's batches, by their indexes. */
function providerWaits({ provider, header }: Group): Map<number, WaitingFor> {
  const waits = new Map<number, WaitingFor>();
  if (provider === null) return waits;
  const isHeld = header.held !== undefined;
  for (const index of provider.indexes()) {
    const wait = { kind: "provider_batch", upstream: provider.upstreamOf(index) } as const;
    waits.set(index, isHeld ? { kind: "confirmation" } : wait);
  }
  return waits;
}

/** What the slots of a line wait for, as those who look at them are shown it. */
function shown(hold: Hold, notBeforeMs: number | null, nowMs: number): WaitingFor {
  switch (hold.kind) {
    case "confirmation":
    case "permit":
    case "equal_call":
      return { kind: hold.kind };
    case "exhausted":
      return { kind: "budget", dimension: hold.dimension, isExhausted: true };
    case "gate": {
      const { readyAtMs, ...wait } = hold.wait;
      const readyInMs = readyAtMs === null ? null : Math.max(0, Math.max(readyAtMs, notBeforeMs ?? 0) - nowMs);
      return { kind: "gate", ...wait, readyInMs };
    }
    case "retry":
      return { kind: "retry", readyInMs: hold.readyAtMs - nowMs };
    case "prefix":
      return awaitedText(subjectOf(hold.name));
    case "budget":
      return hold.reason.reason === "in_flight_budget_exhausted"
        ? { kind: "budget", dimension: hold.reason.dimension }
        : { kind: "permit" };
  }
}

function awaitedText(subject: string): WaitingFor {
  if (subject.startsWith("ctx_")) return { kind: "context", context: subject };
  return { kind: "prefix", prefix: subject.startsWith("own_") ? "marked" : "system" };
}

function sooner(a: WaitingFor, b: WaitingFor): WaitingFor {
  const readyIn = (one: WaitingFor): number => ("readyInMs" in one ? (one.readyInMs ?? Infinity) : Infinity);
  return readyIn(b) < readyIn(a) ? b : a;
}
