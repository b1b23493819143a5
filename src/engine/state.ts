/**
 * The state of one run's engine: queue, permits, leases, groups and ledger. `open`, `dispatch`, `settle` and `restore`
 * act on it; a shell (the run object) drives them and commits `takeWrites()` before any reply leaves, and rebuilds the
 * state from those rows after a restart or a failed commit. Everything is synchronous and takes `nowMs`.
 */
import type { Ledger } from "../budget/ledger.ts";
import type { CallFacts, Outcome } from "../call.ts";
import { Flights } from "./flights.ts";
import type { Group, GroupHeader } from "./group.ts";
import { windowIdOf } from "./group-id.ts";
import { attemptName, groupEnd, RunLog, windowEnd } from "./log.ts";
import { ReadyQueue } from "./queue.ts";
import type { SlotRecord } from "./record.ts";
import { DIRECT_SHARD_FIRST, DIRECT_SHARD_LEASES_MAX, newShard } from "./shard.ts";
import type { AttemptInFlight, Shard, Target } from "./shard.ts";
import { groupSeqOf, hasEnded, indexOf } from "./slot.ts";
import { CallWindow, type WindowGroup, type WindowPlace } from "./window.ts";

/** What dispatch must know of a stored slot: the facts of its call and the place of its model in the group's list. */
export type SlotFacts = CallFacts & { modelIndex: number };

/** A single call: queued here, executed by the Worker that holds its client. */
export type SingleCall = {
  callId: string;
  /** Number of the attempt to make, from 1. */
  attempt: number;
  facts: CallFacts;
  target: Target;
  /** Not started within this time of being queued, it never is; null = it waits. */
  deadlineMs: number | null;
  /** Whether an attempt whose outcome is unknown may be made again. */
  onLost: "retry" | "fail";
  queuedAtMs: number;
  window: WindowGroup | null;
  place: WindowPlace;
};

/** What the engine cannot know by itself. */
export type EngineDeps = {
  /** Uniform in [0, 1). */
  random: () => number;
  /** The facts of a stored slot, from its page. */
  factsOf: (slotId: number) => SlotFacts;
  /** Where a group's model goes; null when the configuration no longer has it. */
  targetOf: (group: GroupHeader, modelIndex: number) => Target | null;
};

/** Rows that changed since the last call of `takeWrites`. */
export type EngineWrites = { shards: Shard[]; slots: SlotRecord[]; groups: Group[] };

/** An attempt in flight with the shard that holds it and, for a single call, the call. */
export type InFlight = { lease: AttemptInFlight; shard: Shard; call: SingleCall | null };

export class EngineState {
  readonly ledger: Ledger;
  readonly deps: EngineDeps;
  readonly queue = new ReadyQueue();
  readonly window: CallWindow;
  readonly groups = new Map<number, Group>();
  readonly shards = new Map<number, Shard>();
  readonly attempts = new Map<string, InFlight>();
  /** Queued single calls by their place in the queue. */
  readonly calls = new Map<number, SingleCall>();
  /** Records of queued slots that have been tried before: what they have cost so far. */
  readonly tried = new Map<number, SlotRecord>();
  /** Equal calls that share an answer. */
  readonly flights = new Flights();
  /** What the run tells of itself. */
  readonly log: RunLog;
  /** Number of the last event that was in storage when this instance began. */
  readonly writtenSeq: number;
  /** Attempts that were given up, by the lane that makes them: it must be told. */
  aborted = new Map<number, string[]>();
  /** Single calls that share the answer of another: to be told to their Workers. */
  landed: { call: SingleCall; outcome: Outcome }[] = [];
  /** Most attempts in flight at once. */
  width: number;
  /** Nothing starts while the run is paused; what runs goes on. */
  paused = false;

  #upstreams = new Map<string, UpstreamState>();
  #dirtyShards = new Set<Shard>();
  /** Changed only by single calls that ended: written with the next commit, or after a while. */
  #laggingShards = new Set<Shard>();
  #dirtySlots = new Map<number, SlotRecord>();
  #dirtyGroups = new Set<Group>();
  #busySinceMs: number | null = null;
  #lastPlace = 0;

  /** @param options.lastSeq Number of the last event in storage; 0 = none. */
  constructor(options: { ledger: Ledger; width: number; windowMs: number; lastSeq?: number }, deps: EngineDeps) {
    this.ledger = options.ledger;
    this.writtenSeq = options.lastSeq ?? 0;
    this.log = new RunLog(this.writtenSeq);
    this.width = options.width;
    this.deps = deps;
    this.window = new CallWindow(options.windowMs, (nowMs) => windowIdOf(nowMs, deps.random()));
  }

  /** Books a reserved attempt as in flight. `lane` null = the single call's own Worker executes it. */
  begin(lease: AttemptInFlight, lane: number | null, call: SingleCall | null, nowMs: number): void {
    const shard = lane === null ? this.directShard() : this.shard(lane);
    shard.leases.set(lease.attemptId, lease);
    this.#dirtyShards.add(shard);
    this.addInFlight({ lease, shard, call }, nowMs);
    if (call !== null && lease.attempt === 1) countCall(shard, call);
    shard.totals.peakParallel = Math.max(shard.totals.peakParallel, this.attempts.size);
    const group = this.groupOf(lease);
    if (lease.slotId !== null) group?.step(indexOf(lease.slotId), "running", nowMs);
    (call ?? group)?.window?.attemptStarted();
    lease.startSeq = this.tellStart(lease, call?.window?.id ?? null, nowMs);
  }

  /** The group of an attempt's slot; undefined for a single call. */
  groupOf({ slotId }: Pick<AttemptInFlight, "slotId">): Group | undefined {
    return slotId === null ? undefined : this.groups.get(groupSeqOf(slotId));
  }

  /** Tells that an attempt has started; returns the event's number. `windowId`: a single call's group, if it is known. */
  tellStart(lease: AttemptInFlight, windowId: string | null, atMs: number): number {
    const { amounts: reserved, queuedMs } = lease;
    const group = this.groupOf(lease);
    const started = { event: "attempt_started", ...attemptName(lease, group), reserved, queuedMs } as const;
    return this.log.add(started, windowId ?? group?.parallelGroupId ?? null, atMs);
  }

  /** Counts an attempt as in flight. */
  addInFlight(inFlight: InFlight, nowMs: number): void {
    this.attempts.set(inFlight.lease.attemptId, inFlight);
    this.upstream(inFlight.lease.target).inFlight += 1;
    this.#busySinceMs ??= nowMs;
  }

  /** Takes an attempt out of flight. Returns the time since the last such change, during which something was. */
  removeInFlight({ lease, shard }: InFlight, nowMs: number): number {
    this.attempts.delete(lease.attemptId);
    shard.leases.delete(lease.attemptId);
    // A single call's answer waits for nothing durable. Should the object die before this is written, the call counts as
    // lost and stays charged at its reservation: too much, never too little.
    (lease.slotId === null ? this.#laggingShards : this.#dirtyShards).add(shard);
    this.upstream(lease.target).inFlight -= 1;
    const busyMs = this.#busySinceMs === null ? 0 : Math.max(0, nowMs - this.#busySinceMs);
    this.#busySinceMs = this.attempts.size > 0 ? nowMs : null;
    return busyMs;
  }

  /** A place in the queue for a single call. */
  nextPlace(): number {
    this.#lastPlace += 1;
    return this.#lastPlace;
  }

  shard(id: number): Shard {
    const known = this.shards.get(id);
    if (known !== undefined) return known;
    const shard = newShard(id);
    this.shards.set(id, shard);
    return shard;
  }

  /** The shard that takes the next single call. */
  directShard(): Shard {
    for (let id = DIRECT_SHARD_FIRST; ; id++) {
      const shard = this.shard(id);
      if (shard.leases.size < DIRECT_SHARD_LEASES_MAX) return shard;
    }
  }

  /** What the run's attempts have in common at one upstream. */
  upstream(target: Pick<Target, "upstream" | "maxInFlight">): UpstreamState {
    const known = this.#upstreams.get(target.upstream);
    if (known !== undefined) {
      // A lease of a model that the configuration has lost comes back with a width of 0, which is not its upstream's.
      known.maxInFlight = Math.max(known.maxInFlight, target.maxInFlight);
      return known;
    }
    const fresh = { inFlight: 0, maxInFlight: target.maxInFlight, coolUntilMs: 0 };
    this.#upstreams.set(target.upstream, fresh);
    return fresh;
  }

  upstreamNamed(name: string): UpstreamState | undefined {
    return this.#upstreams.get(name);
  }

  /** Marks a slot's record for writing; one that has ended is not needed in memory any more. */
  writeSlot(record: SlotRecord): void {
    this.#dirtySlots.set(record.id, { ...record });
    if (hasEnded(record.state)) this.tried.delete(record.id);
    else this.tried.set(record.id, record);
  }

  /** Marks a group's result for writing, and tells its end once it has come. */
  writeGroup(group: Group): void {
    this.#dirtyGroups.add(group);
    if (!group.done || group.endTold) return;
    group.endTold = true;
    const endedAtMs = group.endedAtMs ?? group.header.openedAtMs;
    if (group.header.single === null) this.log.add(groupEnd(group, endedAtMs), group.header.id, endedAtMs);
    else group.window?.callEnded(group.counts.completed > 0, endedAtMs);
  }

  /** Tells the end of groups of single calls. */
  tellWindowEnds(nowMs: number): void {
    for (const group of this.window.takeEnded(nowMs)) this.log.add(windowEnd(group), group.id, nowMs);
  }

  /** True when settlements of single calls, or events without a row to travel with, are unwritten. */
  get lags(): boolean {
    return this.#laggingShards.size > 0 || this.log.urgent;
  }

  /** True when something must be durable before replies leave. */
  get mustWrite(): boolean {
    return this.#dirtyShards.size + this.#dirtySlots.size + this.#dirtyGroups.size > 0;
  }

  /** Everything that changed since the last call, settlements of single calls included. */
  takeWrites(): EngineWrites {
    const writes = {
      shards: [...new Set([...this.#dirtyShards, ...this.#laggingShards])],
      slots: [...this.#dirtySlots.values()],
      groups: [...this.#dirtyGroups],
    };
    this.#dirtyShards.clear();
    this.#laggingShards.clear();
    this.#dirtySlots.clear();
    this.#dirtyGroups.clear();
    return writes;
  }

  /** When the first lease in flight ends without a heartbeat, or null. */
  nextLeaseEndMs(): number | null {
    let earliest: number | null = null;
    for (const { lease } of this.attempts.values()) earliest = Math.min(earliest ?? Infinity, lease.expiresAtMs);
    return earliest;
  }

  /** When something changes by itself: a retry falls due, a deadline passes or a cool-down ends; null when none is pending. */
  nextReadyMs(nowMs: number): number | null {
    let next = this.queue.nextDueMs;
    const windowEndMs = this.window.nextEndMs;
    if (windowEndMs !== null) next = Math.min(next ?? Infinity, windowEndMs);
    const deadlineMs = nextDeadlineMs(this);
    if (deadlineMs !== null) next = Math.min(next ?? Infinity, deadlineMs);
    if (this.queue.readyCount === 0) return next;
    for (const { coolUntilMs } of this.#upstreams.values()) {
      if (coolUntilMs > nowMs) next = Math.min(next ?? Infinity, coolUntilMs);
    }
    return next;
  }
}

function nextDeadlineMs({ groups, calls }: EngineState): number | null {
  let next: number | null = null;
  for (const { header, drained, counts } of groups.values()) {
    if (header.deadlineMs === null || drained !== null || counts.queued === 0) continue;
    next = Math.min(next ?? Infinity, header.openedAtMs + header.deadlineMs);
  }
  for (const { deadlineMs, queuedAtMs } of calls.values()) {
    if (deadlineMs !== null) next = Math.min(next ?? Infinity, queuedAtMs + deadlineMs);
  }
  return next;
}

/** Counts a single call with its first attempt: in the same row, so that a crash loses or keeps both. */
function countCall({ totals }: Shard, { place }: SingleCall): void {
  totals.singleCalls += 1;
  if (place === "second") {
    totals.windowGroups += 1;
    totals.groupedCalls += 2;
  } else if (place === "later") {
    totals.groupedCalls += 1;
  }
}

/** Attempts in flight at one upstream, how many there may be, and until when nothing may start there. */
export type UpstreamState = { inFlight: number; maxInFlight: number; coolUntilMs: number };
