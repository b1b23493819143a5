/**
 * The state of one run's engine: queue, permits, leases, groups and ledger. `enqueue`, `dispatch`, `settle`,
 * `end-slot`, `end-call` and `restore` act on it; a shell (the run object) drives them, commits `takeWrites()` before
 * any reply leaves, and rebuilds the state from those rows after a restart or a failed commit. Everything is
 * synchronous and takes `nowMs`.
 */
import type { Outcome } from "../call.ts";
import { addAmounts, type Amounts, type Ledger } from "./money/ledger.ts";
import { toWire, type Reason } from "../errors.ts";
import { CoalescingWindow } from "./leases/concurrency-window.ts";
import { GivenUpAttempts } from "./leases/given-up.ts";
import { LeaseEnds } from "./leases/lease-ends.ts";
import { UnreportedEnds } from "./leases/settled.ts";
import type { SingleCall } from "./leases/single-call.ts";
import { Credits, type StoredCredit } from "./credit.ts";
import type { CompiledGraph } from "./graph/types.ts";
import { GroupGraph, type GraphReads } from "./group/group-graph.ts";
import { Group, type GroupHeader } from "./group/group.ts";
import { windowIdOf } from "./queue/group-id.ts";
import { LearnedCaps } from "./learned/caps.ts";
import { Templates, type RecallTemplates } from "./learned/templates.ts";
import { attemptName, groupEnd, RunLog, UNDECIDED, VOTE_UNDECIDED, windowEnd, type RunEvent } from "./log.ts";
import { ReadyQueue } from "./queue/queue.ts";
import { ReplayQueue, type ReplayDeps } from "./group/recorded.ts";
import type { SlotRecord } from "./group/record.ts";
import {
  DIRECT_SHARD_FIRST,
  DIRECT_SHARD_LEASES_MAX,
  executorOf,
  isWorker,
  newShard,
  WORKER_SHARD_FIRST,
  WORKER_SHARD_LEASES_MAX,
} from "./leases/shard.ts";
import type { AttemptInFlight, Shard, StoredShard, Target } from "./leases/shard.ts";
import { Hedges } from "./learned/hedges.ts";
import { Lines } from "./gates/route-keys.ts";
import { Prefixes } from "./learned/prefixes.ts";
import { TurnShare } from "./queue/turn-share.ts";
import { SingleFlight } from "./leases/single-flight.ts";
import { groupSeqOf, indexOf, isFinalState, type SlotFacts } from "./queue/slot.ts";
import { Upstreams } from "./gates/gates.ts";
import type { Newcomers } from "./gates/newcomers.ts";
import { RenewedMap } from "../renewed/map.ts";
import { RenewedSet } from "../renewed/set.ts";
import { addFailures } from "./measures/totals.ts";
import type { Notice } from "./webhooks.ts";

const NO_NOTICES: readonly Notice[] = [];

/** Whether the body of a slot's call is at hand. */
export type BodyState = "here" | "awaited" | "lost";

/** What the engine cannot know by itself. */
export type EngineDeps = {
  /** Uniform in [0, 1). */
  random: () => number;
  /** The facts of a stored slot, from its call page. */
  factsOf: (slotId: number) => SlotFacts;
  /** The target of a group's model; null when the configuration no longer has it. */
  targetOf: (group: GroupHeader, modelIndex: number) => Target | null;
  /** Where the calls of tools go that a model asks for; null when the run has not all of them. Absent = no call uses tools. */
  targetOfTools?: (names: readonly string[]) => Target | null;
  /**
   * Whether the body of a stored slot can be given to an executor: `awaited` = it is being read, and a turn follows when it
   * has arrived; `lost` = it is gone. Absent = every body can.
   */
  bodyOf?: (slotId: number) => BodyState;
  /**
   * Whether the Worker of a single call is away: it waits for its permit neither in a request nor at a socket. Absent = none is.
   */
  isAway?: (callId: string) => boolean;
  /**
   * The facts of a graph's slot with the outputs in it that its task refers to, or why it cannot be sent. Absent = no group
   * has a graph.
   */
  substitutedFactsOf?: (slotId: number) => SubstitutedFacts;
  /** What graphs read of the answers of their slots. Absent = no group has a graph. */
  graphReads?: GraphReads;
  /** What this isolate has read of an upstream's templates lately; absent = nothing. */
  recallTemplates?: RecallTemplates;
  /** The other runs that may be new at the same gates; absent = none are. */
  newcomers?: Newcomers;
  /** The root of the tree that the run belongs to; absent = it is alone. */
  root?: string;
  /** The row of a slot; null = it has none. Absent = no slot takes over the answer of another one. */
  storedSlot?: (slotId: number) => SlotRecord | null;
  /** The run's recorded answers. Absent = it records none. */
  replay?: ReplayDeps;
};

export type SubstitutedFacts = { ok: true; facts: SlotFacts } | { ok: false; reason: Reason };

/** Rows that changed since the last call of `takeWrites`. */
export type EngineWrites = {
  shards: Shard[];
  /** Attempts that are stored with their calls instead of in their shards. */
  apart: InFlight[];
  slots: SlotRecord[];
  groups: Group[];
  /** All credits, if one has changed; else null. */
  credits: StoredCredit[] | null;
};

/** An attempt in flight with the shard that stores it and, for a single call, the call. */
export type InFlight = { lease: AttemptInFlight; shard: Shard; call: SingleCall | null };

/** A single call that ended with the outcome of an equal one, for the reply to its Worker. */
export type SharedOutcome = { call: SingleCall; outcome: Outcome };

type EngineOptions = {
  ledger: Ledger;
  width: number;
  windowMs: number;
  log?: RunLog;
  hasGates?: boolean;
  /** Absent = none. */
  serviceTier?: string | undefined;
};

export class EngineState {
  readonly ledger: Ledger;
  /** The service tier of calls that name none; null = none. */
  readonly serviceTier: string | null;
  readonly deps: EngineDeps;
  readonly queue = new ReadyQueue();
  readonly window: CoalescingWindow;
  readonly upstreams: Upstreams;
  readonly lines = new Lines();
  readonly singleFlight = new SingleFlight();
  /** Slots whose recorded answers are to be looked up. */
  readonly replayQueue = new ReplayQueue();
  /** Slots that may still end in this turn without an attempt of their own. */
  readonly turnShare = new TurnShare();
  /** Slots that share an outcome and end in later turns. */
  readonly owedEnds: { slotIds: number[]; outcome: Outcome }[] = [];
  readonly prefixes = new Prefixes();
  /** Whether something has escalated since this state was built: a person should look at the run. */
  hasEscalated = false;
  readonly hedges = new Hedges();
  readonly unreportedEnds = new UnreportedEnds();
  readonly givenUp = new GivenUpAttempts();
  /** Parts of the budget and the width that instances of the gateway hold. */
  readonly credits = new Credits();
  /** Caps that the answers of the run's models have shown to suffice. */
  readonly learnedCaps = new LearnedCaps();
  /** What upstreams add to prompts and how their tokenizers count, as far as this run knows. */
  readonly templates: Templates;
  /** The run's event log, up to its next write. */
  readonly log: RunLog;
  /** Number of the last event that was in storage when this instance began, in whatever row. */
  readonly writtenSeq: number;

  /** The models that the run counts apart, by gate; a gate that is not here was not looked at. */
  readonly meterNames = new Map<string, Set<string>>();

  #maxParallel: number;
  #isPaused = false;
  readonly #groups = new Map<number, Group>();
  readonly #shards = new Map<number, Shard>();
  /** The group whose next call waits for the budget; null = none does, as far as dispatch has looked. */
  narrowedGroup: Group | null = null;
  readonly #attempts = new RenewedMap<string, InFlight>();
  /** When the leases of the attempts in flight end. */
  readonly #leaseEnds: LeaseEnds<AttemptInFlight>;
  readonly #inFlightBy = { lanes: 0, calls: 0, workers: 0 };
  readonly #calls = new RenewedMap<number, SingleCall>();
  readonly #tried = new RenewedMap<number, SlotRecord>();
  /** Groups that have stopped early while attempts of them are in flight. */
  readonly stopped = new RenewedSet<Group>();
  #served = new Set<Group>();
  #sharedOutcomes: SharedOutcome[] = [];
  readonly #dirtyShards = new RenewedSet<Shard>();
  /** Attempts that no row has. */
  #begun: InFlight[] = [];
  #notices: Notice[] = [];
  /** Shards that only single calls have changed by ending: written with the next commit, or after SETTLE_LAG_MS. */
  readonly #laggingShards = new RenewedSet<Shard>();
  readonly #dirtySlots = new RenewedMap<number, SlotRecord>();
  readonly #dirtyGroups = new RenewedSet<Group>();
  #busySinceMs: number | null = null;
  #lastPosition = 0;

  /**
   * @param options.log The event log as storage has it; absent = it is empty.
   * @param options.hasGates Whether the run exchanges with gates; absent = its own limits alone hold.
   */
  constructor(options: EngineOptions, deps: EngineDeps) {
    this.upstreams = new Upstreams(options.hasGates ?? false, deps.newcomers);
    this.ledger = options.ledger;
    this.serviceTier = options.serviceTier ?? null;
    this.log = options.log ?? new RunLog(0);
    this.writtenSeq = this.log.lastSeq;
    this.#maxParallel = options.width;
    this.deps = deps;
    const attempts = this.#attempts;
    this.#leaseEnds = new LeaseEnds({
      get size() {
        return attempts.size;
      },
      has: (lease) => attempts.get(lease.attemptId)?.lease === lease,
    });
    this.templates = new Templates(deps.recallTemplates, deps.root);
    this.window = new CoalescingWindow(options.windowMs, (nowMs) => windowIdOf(nowMs, deps.random()));
  }

  /** Most attempts in flight at once. */
  get width(): number {
    return this.#maxParallel;
  }

  /** Attempts over a lower width keep running; none starts until fewer are in flight. */
  setWidth(width: number): void {
    this.#maxParallel = width;
  }

  /** Nothing starts while the run is paused; attempts in flight go on. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
  }

  /** Groups by their number: those that have not ended, and some that have. */
  get groups(): ReadonlyMap<number, Group> {
    return this.#groups;
  }

  /** Shards by their number. */
  get shards(): ReadonlyMap<number, Shard> {
    return this.#shards;
  }

  /** Attempts in flight by their id. */
  get attempts(): ReadonlyMap<string, InFlight> {
    return this.#attempts;
  }

  /** How many attempts in flight lanes have, single calls, and the Workers of groups. */
  get inFlightBy(): Readonly<{ lanes: number; calls: number; workers: number }> {
    return this.#inFlightBy;
  }

  /** Queued single calls, and those that follow an equal one, by their position in the queue. */
  get calls(): ReadonlyMap<number, SingleCall> {
    return this.#calls;
  }

  /** Records of queued slots that have been tried before: what they have cost so far. */
  get tried(): ReadonlyMap<number, SlotRecord> {
    return this.#tried;
  }

  /** Opens a group. Its slots are queued by `enqueueSlots`, page by page, or those of a graph as they become ready. */
  openGroup(header: GroupHeader, compiled: CompiledGraph | null = null): Group {
    const { graphReads = NO_READS } = this.deps;
    const group = new Group(header, compiled === null ? null : new GroupGraph(compiled, header.seq, graphReads));
    this.#groups.set(header.seq, group);
    return group;
  }

  /** Drops a group that has ended from memory. */
  forgetGroup(seq: number): void {
    this.#groups.delete(seq);
  }

  /** Adds a single call; returns its position in the queue. */
  addCall(call: SingleCall): number {
    this.#lastPosition += 1;
    this.#calls.set(this.#lastPosition, call);
    return this.#lastPosition;
  }

  /** Removes a single call that starts or ends. */
  removeCall(position: number): void {
    this.#calls.delete(position);
  }

  /** Adds a single call that ended with the outcome of an equal one. */
  addSharedOutcome(shared: SharedOutcome): void {
    this.#sharedOutcomes.push(shared);
  }

  /** The single calls that ended with the outcome of an equal one since the last call. */
  takeSharedOutcomes(): SharedOutcome[] {
    const shared = this.#sharedOutcomes;
    if (shared.length > 0) this.#sharedOutcomes = [];
    return shared;
  }

  /** Notes a group for which other groups may have to be opened, or are not needed any more. */
  addServed(group: Group): void {
    this.#served.add(group);
  }

  /** The groups that were noted since the last call. */
  takeServed(): ReadonlySet<Group> {
    const served = this.#served;
    if (served.size > 0) this.#served = new Set();
    return served;
  }

  /** Records a reserved attempt as in flight. `executor` null = the single call's own Worker executes it. */
  begin(lease: AttemptInFlight, executor: number | null, call: SingleCall | null, nowMs: number): void {
    const shard = this.#shardOf(executor);
    shard.leases.set(lease.attemptId, lease);
    this.#begun.push({ lease, shard, call });
    this.addInFlight({ lease, shard, call }, nowMs);
    if (call !== null && lease.attempt === 1) countCall(shard, call);
    shard.totals.peakParallel = Math.max(shard.totals.peakParallel, this.#attempts.size);
    const group = this.groupOf(lease);
    if (lease.slotId !== null) startIn(group, lease, indexOf(lease.slotId), nowMs);
    if (group !== undefined && (lease.hasCourse === true || lease.schemaRetries !== undefined)) group.mayGoOn = true;
    const window = (call ?? group)?.window ?? null;
    if (window !== null) lease.window = window;
    window?.attemptStarted();
    lease.startSeq = this.emitStart(lease, nowMs);
  }

  /** Whether attempts in flight have different executors, each of which settles when it likes. */
  get hasSeveralExecutors(): boolean {
    if (this.#attempts.size < 2) return false;
    let first: number | null = null;
    for (const { lease, shard } of this.#attempts.values()) {
      if (lease.slotId === null) return true;
      const executor = executorOf(lease.slotId, shard);
      first ??= executor;
      if (executor !== first) return true;
    }
    return false;
  }

  /** The other attempt of a call in flight, if the call is hedged. */
  otherOf(lease: Pick<AttemptInFlight, "attemptId" | "hedgeOf">): InFlight | undefined {
    const other = this.hedges.otherOf(lease);
    return other === undefined ? undefined : this.#attempts.get(other);
  }

  /** Where the next attempt of a slot of a group goes, by its facts; null = nowhere. */
  targetOf(header: GroupHeader, { round, modelIndex }: Pick<SlotFacts, "round" | "modelIndex">): Target | null {
    return round === undefined ? this.deps.targetOf(header, modelIndex) : (this.deps.targetOfTools?.(round) ?? null);
  }

  /** The group of an attempt's slot; undefined for a single call. */
  groupOf({ slotId }: Pick<AttemptInFlight, "slotId">): Group | undefined {
    return slotId === null ? undefined : this.#groups.get(groupSeqOf(slotId));
  }

  /** Emits the start of an attempt; returns the event's number. */
  emitStart(lease: AttemptInFlight, atMs: number): number {
    const { amounts: reserved, queuedMs } = lease;
    const group = this.groupOf(lease);
    const { route, cause } = lease.chosenFrom ?? {};
    const routed = route === undefined ? {} : { route, ...(cause == null ? {} : { fallback: cause }) };
    const more = { ...routed, ...(lease.hedgeOf === undefined ? {} : { hedge: true as const }) };
    const started = { event: "attempt_started", ...attemptName(lease, group), reserved, queuedMs, ...more } as const;
    return this.log.add(started, lease.window?.id ?? group?.parallelGroupId ?? null, atMs);
  }

  /** Counts an attempt as in flight. */
  addInFlight(inFlight: InFlight, nowMs: number): void {
    this.#attempts.set(inFlight.lease.attemptId, inFlight);
    this.#leaseEnds.add(inFlight.lease);
    this.#inFlightBy[holderOf(inFlight.shard)] += 1;
    this.hedges.begun(inFlight.lease);
    this.upstreams.attemptStarted(inFlight.lease.target, inFlight.lease.gateTokens, nowMs);
    this.#busySinceMs ??= nowMs;
  }

  /**
   * Removes an attempt from those in flight. Returns the time since the last such change, ms: the run was busy then.
   */
  removeInFlight({ lease, shard }: InFlight, nowMs: number): number {
    if (this.#attempts.delete(lease.attemptId)) this.#inFlightBy[holderOf(shard)] -= 1;
    this.prefixes.gone(lease.attemptId);
    this.hedges.ended(lease);
    this.givenUp.ended(lease.attemptId);
    shard.leases.delete(lease.attemptId);
    // A single call's answer does not wait for storage. If the object dies before this is written, the call counts as
    // lost and stays charged at its reservation: too much, never too little.
    (lease.slotId === null ? this.#laggingShards : this.#dirtyShards).add(shard);
    this.upstreams.attemptEnded(lease.target);
    const busyMs = this.#busySinceMs === null ? 0 : Math.max(0, nowMs - this.#busySinceMs);
    this.#busySinceMs = this.#attempts.size > 0 ? nowMs : null;
    return busyMs;
  }

  /** Counts calls that failed without an attempt. They are written with the rows of this turn. */
  countRefused(code: string, calls = 1): void {
    const shard = this.directShard();
    addFailures(shard.totals, code, calls);
    this.#laggingShards.add(shard);
  }

  /** Charges what a credit held whose instance was lost: what calls it made is not known. Returns the shard that has it. */
  chargeLost(charged: Amounts): Shard {
    this.ledger.restoreSpent(charged);
    const shard = this.directShard();
    addAmounts(shard.totals.spent, charged);
    this.#dirtyShards.add(shard);
    return shard;
  }

  /** The shard of this number. */
  shard(id: number): Shard {
    const known = this.#shards.get(id);
    if (known !== undefined) return known;
    const shard = newShard(id);
    this.#shards.set(id, shard);
    return shard;
  }

  /** The shard that takes the next attempt of an executor; null = of a single call. */
  #shardOf(executor: number | null): Shard {
    if (executor === null) return this.directShard();
    if (isWorker(executor)) return this.#sharedShard(WORKER_SHARD_FIRST, WORKER_SHARD_LEASES_MAX);
    return this.shard(executor);
  }

  /** The shard that takes the next single call. */
  directShard(): Shard {
    return this.#sharedShard(DIRECT_SHARD_FIRST, DIRECT_SHARD_LEASES_MAX);
  }

  /** The first shard from a number on that has room for a lease. */
  #sharedShard(firstId: number, leasesMax: number): Shard {
    for (let id = firstId; ; id++) {
      const shard = this.shard(id);
      if (shard.leases.size < leasesMax) return shard;
    }
  }

  /** Marks a slot's record for writing. Memory keeps it while the slot waits for a retry. */
  writeSlot(record: SlotRecord): void {
    this.#dirtySlots.set(record.id, { ...record });
    if (isFinalState(record.state)) this.#tried.delete(record.id);
    else this.#tried.set(record.id, record);
  }

  /** The record of a slot as the present turn will write it; undefined if it does not. */
  unwrittenSlot(slotId: number): SlotRecord | undefined {
    return this.#dirtySlots.get(slotId);
  }

  /** Takes over a record of a slot that waits for a retry, from its row. */
  restoreTried(record: SlotRecord): void {
    this.#tried.set(record.id, record);
  }

  /** Drops the record of a slot whose end follows from its group's row. */
  forgetTried(slotId: number): void {
    this.#tried.delete(slotId);
  }

  /** Marks a group's result for writing, and emits its end when all of its slots have ended. */
  writeGroup(group: Group): void {
    this.#dirtyGroups.add(group);
    if (!group.takeEnd()) return;
    const endedAtMs = group.endedAtMs ?? group.header.openedAtMs;
    if (group.isUndecided) this.escalate(UNDECIDED, group, endedAtMs);
    const { id: groupId, notify } = group.header;
    if (notify?.onEnd === true)
      this.#notices.push({ kind: "ended", groupId, notify, status: group.status, atMs: endedAtMs });
    if (group.header.single === null) this.log.add(groupEnd(group, endedAtMs), group.header.id, endedAtMs);
    else group.window?.callEnded(group.counts.completed > 0, endedAtMs);
  }

  /** Emits an escalation, and marks the run. The first one in a group is reported. */
  escalate(event: Extract<RunEvent, { event: "escalated" }>, group: Group, nowMs: number): void {
    this.hasEscalated = true;
    this.log.add(event, group.parallelGroupId, nowMs);
    if (group.isEscalationTold) return;
    group.isEscalationTold = true;
    const { id: groupId, notify = {} } = group.header;
    const { index, reason, undecided } = event;
    const code = undecided === true ? VOTE_UNDECIDED : toWire(reason).error.code;
    this.#notices.push({ kind: "escalated", groupId, notify, index, code, atMs: nowMs });
  }

  /** What the operator's webhook may have to be notified of since the last call. */
  takeNotices(): readonly Notice[] {
    if (this.#notices.length === 0) return NO_NOTICES;
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  /** Emits the beginning of groups of single calls whose calls are all known, and the end of those whose calls have ended. */
  emitWindows(nowMs: number): void {
    for (const { id, members: count } of this.window.takeClosed(nowMs)) {
      this.log.add({ event: "group_started", count, effectiveParallel: Math.min(count, this.width) }, id, nowMs);
    }
    for (const group of this.window.takeEnded(nowMs)) this.log.add(windowEnd(group), group.id, nowMs);
  }

  /** True when settlements of single calls, or events that report what no row stores, are unwritten. */
  get lags(): boolean {
    return this.#laggingShards.size > 0 || this.log.urgent;
  }

  /** True when something must be durable before replies leave. */
  get mustWrite(): boolean {
    const changed = this.#begun.length + this.#dirtyShards.size + this.#dirtySlots.size + this.#dirtyGroups.size;
    return changed > 0 || this.credits.hasChanged;
  }

  /** Marks settlements of single calls for writing that could wait for a later row. */
  writeSettlements(): void {
    for (const shard of this.#laggingShards) this.#dirtyShards.add(shard);
  }

  /** Marks every shard for writing. */
  writeShards(): void {
    for (const shard of this.#shards.values()) this.#dirtyShards.add(shard);
  }

  /**
   * All rows that changed since the last call, settlements of single calls included. `isApart`: whether an attempt that has
   * begun since may be stored with its call. If its shard is written all the same, it is stored there.
   */
  takeWrites(isApart: (lease: AttemptInFlight) => boolean = () => false): EngineWrites {
    for (const { lease, shard } of this.#begun) if (!isApart(lease)) this.#dirtyShards.add(shard);
    const shards = new Set([...this.#dirtyShards, ...this.#laggingShards]);
    // Groups of single calls are stored with the events of their calls: in the row of a shard, which takes the place of the log's.
    if (shards.size === 0 && this.log.urgent && this.window.wasFormed) shards.add(this.directShard());
    const writes = {
      shards: [...shards],
      apart: this.#begun.filter(({ shard }) => !shards.has(shard)),
      slots: [...this.#dirtySlots.values()],
      groups: [...this.#dirtyGroups],
      credits: this.credits.takeWrite(),
    };
    this.#begun = [];
    this.#dirtyShards.clear();
    this.#laggingShards.clear();
    this.#dirtySlots.clear();
    this.#dirtyGroups.clear();
    return writes;
  }

  /** What the first row of a shard that a turn writes has of the groups of single calls; its other rows have `upTo` alone. */
  get storedWindows(): Pick<StoredShard, "upTo" | "windows"> {
    if (!this.window.wasFormed) return {};
    const windows = this.window.stored;
    return { upTo: this.log.lastSeq, ...(windows.length === 0 ? {} : { windows }) };
  }

  /** Moves the end of a lease in flight. */
  setLeaseEnd(lease: AttemptInFlight, endMs: number): void {
    this.#leaseEnds.set(lease, endMs);
  }

  /** Whether a lease in flight has ended by now. */
  hasExpired(nowMs: number): boolean {
    return (this.#leaseEnds.firstMs() ?? Infinity) <= nowMs;
  }

  /** When the first lease in flight, or credit, ends by itself, or null. */
  nextLeaseEndMs(): number | null {
    const earliest = this.#leaseEnds.firstMs();
    const creditEndMs = this.credits.nextEndMs();
    return creditEndMs === null ? earliest : Math.min(earliest ?? Infinity, creditEndMs);
  }
}

/** Whose attempts a shard has. */
function holderOf({ id }: Shard): "lanes" | "calls" | "workers" {
  if (id < DIRECT_SHARD_FIRST) return "lanes";
  return id < WORKER_SHARD_FIRST ? "calls" : "workers";
}

/** Counts an attempt in its slot's group. A hedge is another one of a slot that is running. */
function startIn(group: Group | undefined, { hedgeOf }: AttemptInFlight, index: number, nowMs: number): void {
  if (hedgeOf === undefined) group?.step(index, "running", nowMs);
  else group?.hedgeStarted(index);
}

function noGraphs(): never {
  throw new Error("this engine runs no graphs");
}

const NO_READS: GraphReads = { countElements: noGraphs, outputOf: noGraphs };

/**
 * Counts a single call with its first attempt: in the same row, so that a crash loses or keeps both. `by` -1: the attempt is taken
 * back, and counted when it starts again.
 */
export function countCall({ totals }: Shard, { windowPosition }: SingleCall, by: 1 | -1 = 1): void {
  totals.singleCalls += by;
  if (windowPosition === "second") {
    totals.windowGroups += by;
    totals.groupedCalls += 2 * by;
  } else if (windowPosition === "later") {
    totals.groupedCalls += by;
  }
}
