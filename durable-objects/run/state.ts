/**
 * A run in memory: its settings and status, its engine, its children, and the callers that wait here. Each change is a
 * method; a change that must be stored adds its row with `addWrite`, and the turn writes all rows in one transaction.
 * What a turn does with it is in turns/turn.ts, how it is built from rows in store/rebuild.ts.
 */
import type { SlotRecord } from "../../src/run/group/record.ts";
import type { GroupHeader } from "../../src/run/group/group.ts";
import { workerOf, type StoredSettled } from "../../src/run/leases/shard.ts";
import type { EngineState, EngineWrites } from "../../src/run/state.ts";
import { stopFound } from "../../src/run/steps/cancel.ts";
import { restoreCredits } from "../../src/run/steps/lend-credit.ts";
import { endWindows } from "../../src/run/steps/restore.ts";
import type { Reason } from "../../src/errors.ts";
import { CHILDREN_MAX, GROUPS_ENDED_KEPT, LATE_CALLS_MAX, RUN_FLOOR_BYTES } from "../../src/limits.ts";
import type { ReplayRule } from "../../src/objects/methods/replay.ts";
import type { EndStatus, RunPatch, RunSettings, RunStatus } from "../../src/objects/methods/runs.ts";
import type { SocketOwner, SocketSignal } from "../../src/objects/methods/sockets.ts";
import type { IdempotencyKey } from "../../src/objects/methods/types.ts";
import { ToolPermits } from "./memory/tool-permits.ts";
import { rootOf } from "./memory/root.ts";
import { ClientBoundGroups } from "./memory/client-bound-groups.ts";
import { InstanceEpoch } from "./store/instance-epoch.ts";
import { BatchProgress } from "./memory/batch-progress.ts";
import { Counters } from "./store/counters.ts";
import { LaneLives } from "./memory/lane-lives.ts";
import { LaneStarts } from "./memory/lane-starts.ts";
import { PresentExecutors } from "./memory/present.ts";
import { ProviderNotices } from "./memory/provider-notices.ts";
import { WaitingExecutors } from "./memory/waiting.ts";
import { GroupWorkers } from "./memory/workers.ts";
import type { Openings } from "./store/openings.ts";
import { openReplay, type ReplayEffects } from "./replay/open-replay.ts";
import type { RunReplay } from "./replay/replay.ts";
import { endReason, hasEnded } from "./status.ts";
import type { BodyCache } from "./store/body-cache.ts";
import { CarriedShards } from "./store/carried-shards.ts";
import { rebuild, widthOf } from "./store/rebuild.ts";
import type { KeyRecord, StoredGroup } from "./store/records.ts";
import { roomReason } from "./store/room.ts";
import type { SingleCall } from "./store/singles.ts";
import type { SettledGroups } from "./store/settled-groups.ts";
import type { RunStore } from "./store/store.ts";
import { StoredCalls } from "./store/stored-calls.ts";
import { RunTargets, type ModelConfig } from "./targets.ts";
import { isolateNewcomers } from "./memory/newcomers.ts";
import { recallTemplates } from "./memory/templates.ts";
import { PullBoard } from "../../src/run/pull/board.ts";
import { CapacityQueue } from "./memory/capacity-queue.ts";
import { Children } from "./memory/children.ts";
import { WaitingCalls, WaitingReaders } from "./memory/waiters.ts";
import { RenewedMap } from "../../src/renewed/map.ts";
import { eventOfNotice, runEndEvent, type WebhookEvent, PendingWebhooks } from "../../src/run/webhooks.ts";

/** Rows that a turn adds to its transaction. */
type Write = () => void;

/** What a turn sends to the socket of an owner, if it has one. */
type Signal = { to: SocketOwner; signal: SocketSignal };

export class RunState {
  readonly engine: EngineState;
  readonly children: Children;
  readonly capacityQueue = new CapacityQueue();
  readonly pullBoard = new PullBoard();
  readonly counters: Counters;
  /** Which request opened which group. */
  readonly openings: Openings;
  readonly clientBoundGroups = new ClientBoundGroups();
  /** Graphs that run while their plans are written, with when their writers came last. */
  readonly openPlans = new ClientBoundGroups();
  /** When the batches that feed this run are notified. */
  readonly batchProgress = new BatchProgress();
  readonly workers = new GroupWorkers();
  /** Shards that are newer in rows of stored calls than in their own. */
  readonly carriedShards: CarriedShards;
  readonly providerNotices = new ProviderNotices();
  readonly laneLives = new LaneLives({ now: () => Date.now(), random: Math.random });
  readonly presentExecutors = new PresentExecutors();
  readonly laneStarts = new LaneStarts();
  readonly waitingExecutors = new WaitingExecutors();
  readonly waitingReaders = new WaitingReaders();
  readonly waitingCalls = new WaitingCalls((callId, reply) =>
    this.addSignal({ kind: "call", callId, attemptId: null }, { type: "reply", reply }),
  );
  readonly toolPermits = new ToolPermits();
  readonly #epoch: InstanceEpoch;
  /** Where calls go under the run's rules. */
  readonly targets: RunTargets;
  /** The calls of its groups. */
  readonly storedCalls: StoredCalls;
  /** Its recorded answers; null = it records none. */
  readonly replay: RunReplay | null;
  readonly #store: RunStore;
  readonly #openGroups: Map<number, StoredGroup>;
  /** How many of the open groups are single calls. */
  #openSingles = 0;
  /** Groups that have ended and are still in memory, oldest first. */
  readonly #endedGroups: number[] = [];
  /** Idempotency-Keys that the present turn writes. */
  readonly #newKeys = new RenewedMap<string, KeyRecord>();
  readonly #slotsWritten = new RenewedMap<number, SlotRecord>();
  #newSingles = new Map<number, SingleCall>();
  #writes: Write[] = [];
  #signals: Signal[] = [];
  #settings: RunSettings;
  #status: Exclude<RunStatus, "escalated">;
  #isEscalated: boolean;
  #webhooks: PendingWebhooks | null = null;
  #endedAtMs: number | null;
  #nextGroupSeq: number;
  readonly #settled: SettledGroups;
  #readableSeq: number;
  #clientLogBytes: number;
  #isReported: boolean;
  #isMetered: boolean;
  #isReservationInDoubt: boolean;
  /** When the next retry is due, deadline passes or cool-down ends, if that is too far away for a timer; null = never. */
  readyAtMs: number | null = null;
  /** The status that the children were notified of; null = none yet. */
  #childrenNotifiedOf: RunStatus | null = null;

  constructor(
    store: RunStore,
    settings: RunSettings,
    { config, bodies, replay }: { config: ModelConfig; bodies: BodyCache; replay: ReplayEffects },
    now: { ms: number; random: () => number },
  ) {
    this.#store = store;
    this.#settings = settings;
    this.#status = store.meta.get("status") ?? "active";
    this.#isEscalated = store.meta.get("isEscalated");
    this.#endedAtMs = store.meta.get("endedAtMs");
    this.#isReported = store.meta.get("isReported");
    this.#isMetered = store.meta.get("isMetered");
    this.#isReservationInDoubt = store.meta.get("isReservationInDoubt");
    this.#clientLogBytes = store.meta.get("clientLogBytes");
    this.targets = new RunTargets(config, settings);
    let engine: EngineState | null = null;
    const openGroup = (seq: number): StoredGroup | undefined => this.#openGroups.get(seq);
    const calls = new StoredCalls({ store, bodies, openGroup, engine: () => engine });
    this.storedCalls = calls;
    this.replay = settings.replay === undefined ? null : this.#openReplay(settings.replay, replay);
    const rebuilt = rebuild(
      store,
      settings,
      {
        random: now.random,
        recallTemplates,
        newcomers: isolateNewcomers,
        root: rootOf(settings),
        factsOf: (slotId) => calls.factsOf(slotId),
        substitutedFactsOf: (slotId) => calls.substitutedFactsOf(slotId),
        graphReads: calls.graphReads,
        storedSlot: (slotId) => store.slots.one(slotId),
        bodyOf: (slotId) => calls.bodyStateOf(slotId),
        isAway: (callId) => this.waitingCalls.isAway(callId),
        targetOf: (group, modelIndex) => this.targets.ofGroup(group, modelIndex),
        targetOfTools: (names) => this.targets.ofTools(names),
        targetOfLease: (lease) => this.targets.ofLease(lease),
        ...(this.replay === null ? {} : { replay: this.replay }),
      },
      now.ms,
    );
    this.engine = rebuilt.engine;
    engine = this.engine;
    restoreCredits(this.engine, store.meta.get("credits"), now.ms);
    endWindows(this.engine, now.ms);
    const baselines = { stats: store.meta.get("statsBaseline"), usage: store.meta.get("usageBaseline") };
    this.counters = new Counters(this.engine.shards, rebuilt.groupCounts, baselines);
    this.openings = rebuilt.openings;
    this.#openGroups = rebuilt.openGroups;
    for (const { header } of rebuilt.openGroups.values()) if (header.single !== null) this.#openSingles += 1;
    this.#epoch = new InstanceEpoch(store, { inShards: rebuilt.epoch, isNew: this.hasGroupWork });
    this.#resumeGroups(now.ms);
    this.#nextGroupSeq = rebuilt.nextSeq;
    this.#settled = rebuilt.settled;
    this.carriedShards = new CarriedShards(rebuilt.carried, rebuilt.recordMs);
    this.#readableSeq = rebuilt.rowsSeq;
    this.children = new Children(store, this.engine.ledger);
    this.engine.setPaused(this.#status === "paused");
  }

  /** The number of this instance; see InstanceEpoch. */
  get epoch(): number {
    return this.#epoch.value;
  }

  /** The epoch that rows of shards must have, if the table `meta` does not have it. */
  get epochOfShards(): { epoch?: number } {
    return this.#epoch.ofShards;
  }

  /** Groups that were open before a restart go on: their clients have a new term to come back. What a cancel had stopped must stop still. */
  #resumeGroups(nowMs: number): void {
    if (this.#status === "cancelled") stopFound(this.engine, endReason(this.#status));
    else if (!hasEnded(this.#status)) stopFound(this.engine, null);
    // An earlier instance may have slept until its gates had permits.
    if (this.hasGroupWork) this.engine.upstreams.waitForReplies();
    for (const seq of this.#openGroups.keys()) {
      this.groupFollowed(seq, nowMs);
      if (this.engine.groups.get(seq)?.graph?.plan?.state === "open") this.openPlans.followed(seq, nowMs);
    }
  }

  #openReplay(rule: ReplayRule, effects: ReplayEffects): RunReplay {
    return openReplay(rule, effects, {
      store: this.#store,
      calls: this.storedCalls,
      targets: this.targets,
      addWrite: (write) => this.addWrite(write),
      lookAgain: (slotIds) => {
        for (const slotId of slotIds) this.engine.replayQueue.add(slotId);
      },
    });
  }

  // ---- settings, status, budget ----

  get settings(): Readonly<RunSettings> {
    return this.#settings;
  }

  get status(): Exclude<RunStatus, "escalated"> {
    return this.#status;
  }

  /**
   * The status as clients see it at `nowMs`: a run past its expiry has expired, even if its alarm has not run yet, and an active one
   * in which something has escalated is `escalated`.
   */
  statusAt(nowMs: number): RunStatus {
    if (nowMs >= this.#settings.expiresAtMs && !hasEnded(this.#status)) return "expired";
    return this.#status === "active" && this.#isEscalated ? "escalated" : this.#status;
  }

  /** Keeps that something has escalated in this turn. */
  noteEscalation(): void {
    if (this.#isEscalated || !this.engine.hasEscalated) return;
    this.#isEscalated = true;
    this.addWrite(() => this.#store.meta.set("isEscalated", true));
  }

  /** What the operator's webhook has not accepted yet. */
  get webhooks(): PendingWebhooks {
    this.#webhooks ??= new PendingWebhooks(this.#store.meta.get("webhooks"));
    return this.#webhooks;
  }

  /** Keeps what the operator's webhook is to be notified of, of what has happened in this turn. */
  noteWebhooks(nowMs: number): void {
    for (const notice of this.engine.takeNotices()) this.#addWebhook(eventOfNotice(notice, this.#settings), nowMs);
  }

  #addWebhook(event: WebhookEvent | null, nowMs: number): void {
    if (event !== null && this.webhooks.add(event, nowMs)) this.#writeWebhooks();
  }

  /** A delivery to the operator's webhook has ended. */
  webhookTried(id: string, isAccepted: boolean, nowMs: number): void {
    this.webhooks.tried(id, isAccepted, nowMs);
    this.#writeWebhooks();
  }

  #writeWebhooks(): void {
    const { all } = this.webhooks;
    this.addWrite(() => this.#store.meta.set("webhooks", all));
  }

  /** What is left of the budget, nano-USD; null = no limit. */
  get remainingNanoUsd(): number | null {
    const remaining = this.engine.ledger.remaining("usd");
    return remaining === null ? null : Math.max(0, remaining);
  }

  /**
   * Sets the status that ends the run. False if the run has ended before; `cancelled` may still follow on `closed` and
   * `expired`. What is queued or in flight is the caller's to end: see end.ts.
   */
  end(status: EndStatus, nowMs: number): boolean {
    if (this.#status === "cancelled" || (hasEnded(this.#status) && status !== "cancelled")) return false;
    const endedAtMs = this.#endedAtMs ?? nowMs;
    if (this.#endedAtMs === null) this.#addWebhook(runEndEvent(this.#settings, status, nowMs), nowMs);
    this.#status = status;
    this.#endedAtMs = endedAtMs;
    this.engine.setPaused(false);
    this.addWrite(() => {
      this.#store.meta.set("status", status);
      this.#store.meta.set("endedAtMs", endedAtMs);
    });
    this.engine.log.add({ event: "run_closed", status }, null, nowMs);
    return true;
  }

  /** Sets what a patch names. The ledger has its new limits already: it refuses limits below what is committed. */
  /** Why the run may open no child any more; null = it may. */
  get noRoomForChild(): Reason | null {
    if (this.children.count < CHILDREN_MAX) return roomReason(this.#store, RUN_FLOOR_BYTES);
    const message = `this run has opened ${CHILDREN_MAX} child runs, the most that one run may open in all; open another run`;
    return { reason: "forbidden", message };
  }

  applyPatch({ maxParallel, paused, expiresAtMs, models }: Omit<RunPatch, "limits" | "rootNanoUsdPerDay">): void {
    const settings = { ...this.#settings, limits: { ...this.engine.ledger.limits } };
    if (expiresAtMs !== undefined) settings.expiresAtMs = expiresAtMs;
    if (models !== undefined) settings.models = [models];
    if (maxParallel !== null) settings.maxParallel = maxParallel;
    this.#settings = settings;
    this.targets.changed(settings);
    this.engine.setWidth(widthOf(settings));
    this.engine.log.keepOpening();
    this.addWrite(() => this.#store.meta.set("settings", settings));
    if (paused === null || hasEnded(this.#status)) return;
    const status = paused ? "paused" : "active";
    this.#status = status;
    this.engine.setPaused(paused);
    this.addWrite(() => this.#store.meta.set("status", status));
  }

  // ---- rows of the present turn ----

  /** Adds rows to the turn's transaction. */
  addWrite(write: Write): void {
    this.#writes.push(write);
  }

  /** Adds a signal that is sent once the turn is stored. */
  addSignal(to: Signal["to"], signal: SocketSignal): void {
    this.#signals.push({ to, signal });
  }

  takeSignals(): Signal[] {
    const signals = this.#signals;
    if (signals.length > 0) this.#signals = [];
    return signals;
  }

  get hasWrites(): boolean {
    return this.#writes.length + this.#newSingles.size > 0;
  }

  takeWrites(): Write[] {
    const writes = this.#writes;
    this.#writes = [];
    return writes;
  }

  /** The turn's rows are stored; `lastSeq` is the number of the last event in a row of the log, null = it has no new row. */
  written(lastSeq: number | null, { shards, slots }: Pick<EngineWrites, "shards" | "slots">): void {
    if (shards.length > 0) this.#epoch.shardsWritten();
    this.#newKeys.clear();
    this.storedCalls.written(slots);
    this.replay?.recordings.written();
    for (const slot of slots) this.#slotsWritten.set(slot.id, slot);
    if (lastSeq !== null) this.#readableSeq = lastSeq;
  }

  /** The slots that the present turn has stored, for its replies. */
  get slotsWritten(): ReadonlyMap<number, SlotRecord> {
    return this.#slotsWritten;
  }

  /** The turn's replies are sent: all groups that ended in it were still here for them. */
  forgetWritten(): void {
    this.#slotsWritten.clear();
    const { length } = this.#endedGroups;
    if (length <= GROUPS_ENDED_KEPT) return;
    for (const seq of this.#endedGroups.splice(0, length - GROUPS_ENDED_KEPT)) this.engine.forgetGroup(seq);
  }

  /** Number of the last event in the rows of the log: readers are shown none that a restart could take back. */
  get readableSeq(): number {
    return this.#readableSeq;
  }

  /** What an Idempotency-Key has opened, in this turn or before; null = nothing. */
  keyRecord(key: string): KeyRecord | null {
    return this.#newKeys.get(key) ?? this.#store.keyRecord(key);
  }

  /** Stores under an Idempotency-Key the number of the group or child that it opens. */
  addKey({ key, hash }: IdempotencyKey, seq: number): void {
    this.#newKeys.set(key, { seq, hash });
    this.addWrite(() => this.#store.putKeyRecord(key, { seq, hash }));
  }

  /** Stores a single call in a row of its own, with its key. */
  addSingle(call: SingleCall): void {
    const { seq } = call.stored.header;
    if (call.key !== null) this.#newKeys.set(call.key.key, { seq, hash: call.key.hash });
    this.#newSingles.set(seq, call);
  }

  /** The single calls that the present turn opens, by the numbers of their groups. */
  takeSingles(): ReadonlyMap<number, SingleCall> {
    const singles = this.#newSingles;
    if (singles.size > 0) this.#newSingles = new Map();
    return singles;
  }

  /** UTF-8 bytes that clients have added to the log. */
  get clientLogBytes(): number {
    return this.#clientLogBytes;
  }

  setClientLogBytes(bytes: number): void {
    this.#clientLogBytes = bytes;
    this.addWrite(() => this.#store.meta.set("clientLogBytes", bytes));
  }

  /** Counts statistics and metrics from zero. */
  resetStats(): void {
    const baseline = this.counters.resetStats();
    this.addWrite(() => this.#store.meta.set("statsBaseline", baseline));
    this.engine.writeShards();
  }

  /** Counts usage from zero. */
  resetUsage(): void {
    const baseline = this.counters.resetUsage();
    this.addWrite(() => this.#store.meta.set("usageBaseline", baseline));
  }

  // ---- groups ----

  /** Groups that have not ended, by number. */
  get openGroups(): ReadonlyMap<number, StoredGroup> {
    return this.#openGroups;
  }

  /** How many groups have not ended: single calls, and batches and graphs. */
  get openCounts(): { singles: number; groups: number } {
    return { singles: this.#openSingles, groups: this.#openGroups.size - this.#openSingles };
  }

  /** True while a group has slots that have not ended: lanes are needed. */
  get hasGroupWork(): boolean {
    return this.#openGroups.size > 0;
  }

  /**
   * Whether the loss of an executor of groups must be found in time: that of a stored call need not be while its Worker makes it alone, as
   * that of a call without a key.
   */
  get mustMissExecutors(): boolean {
    const { singles, groups } = this.openCounts;
    if (groups > 0 || singles > LATE_CALLS_MAX) return true;
    for (const seq of this.#openGroups.keys()) {
      if (this.engine.groups.get(seq)?.counts.running !== 1 || !this.workers.isAlone(seq)) return true;
    }
    return false;
  }

  /** A group as it was opened; undefined if there is no such group. */
  storedGroup(seq: number): StoredGroup | undefined {
    return this.#openGroups.get(seq) ?? this.#store.groups.get(seq)?.stored;
  }

  /** What the present turn stores of groups that a restart need not read; absent = the run has had no group. */
  settledGroups(nowMs: number): { settled?: StoredSettled } {
    if (this.#nextGroupSeq === 1) return {};
    const isOpen = (seq: number): boolean => this.#openGroups.has(seq) || this.openings.isStaged(seq);
    return { settled: this.#settled.stored(this.#nextGroupSeq, isOpen, nowMs) };
  }

  /** A number for a group. Numbers are not used twice. */
  takeGroupSeq(): number {
    const seq = this.#nextGroupSeq;
    this.#nextGroupSeq += 1;
    return seq;
  }

  groupOpened(stored: StoredGroup, nowMs: number): void {
    if (!this.hasGroupWork) this.laneStarts.forgetReach();
    this.#openGroups.set(stored.header.seq, stored);
    if (stored.header.single !== null) this.#openSingles += 1;
    this.laneStarts.started(nowMs);
    this.groupFollowed(stored.header.seq, nowMs);
    this.counters.addGroup(stored.header);
    this.#settled.note(stored.header);
  }

  /** The header of an open group has changed, and maybe its graph. */
  groupChanged(stored: StoredGroup, before: GroupHeader): void {
    this.#openGroups.set(stored.header.seq, stored);
    this.counters.changeGroup(before, stored.header);
    this.#settled.note(stored.header);
    this.storedCalls.graphChanged();
  }

  /** A client follows the group now; a group that is bound to its client lives on. */
  groupFollowed(seq: number, nowMs: number): void {
    if (this.#openGroups.get(seq)?.detach === false) this.clientBoundGroups.followed(seq, nowMs);
  }

  /** A client other than the one whose Worker executes it looks at a group, or waits for it. */
  groupAsked(seq: number, nowMs: number): void {
    this.groupFollowed(seq, nowMs);
    if (this.#openGroups.has(seq)) this.workers.awaited(seq);
  }

  /** The rows of an ended group are stored. The last few stay in memory for readers that follow them. */
  groupEnded(seq: number): void {
    const stored = this.#openGroups.get(seq);
    if (stored?.batchId !== undefined) this.batchProgress.ended(seq, stored.batchId);
    if (this.#openGroups.delete(seq) && stored?.header.single != null) this.#openSingles -= 1;
    this.storedCalls.groupEnded(seq, !this.hasGroupWork);
    this.clientBoundGroups.forget(seq);
    this.openPlans.forget(seq);
    this.providerNotices.forget(seq);
    this.workers.ended(seq);
    this.engine.givenUp.takeOfWorker(workerOf(seq));
    this.#endedGroups.push(seq);
  }

  /** The batches that must look at their groups, by id, as of the turn that has just been stored. */
  takeMovedBatches(): ReadonlySet<string> {
    for (const [seq, { batchId }] of this.#openGroups) {
      const group = batchId === undefined ? undefined : this.engine.groups.get(seq);
      if (batchId === undefined || group === undefined) continue;
      const { count } = group.header;
      this.batchProgress.update({ seq, batchId, count, left: count - group.ended.length });
    }
    return this.batchProgress.take();
  }

  // ---- relatives, end and deletion ----

  /** Whether the holder of the run's budget may have reserved more than the run's limits: a patch is under way or failed. */
  get isReservationInDoubt(): boolean {
    return this.#isReservationInDoubt;
  }

  setReservationInDoubt(inDoubt: boolean): void {
    this.#isReservationInDoubt = inDoubt;
    this.addWrite(() => this.#store.meta.set("isReservationInDoubt", inDoubt));
  }

  /** The holder of the run's budget knows what the run spent. */
  reported(): void {
    this.#isReported = true;
    this.addWrite(() => this.#store.meta.set("isReported", true));
  }

  /** The gates have all that the run has counted there, and it counts no more. */
  metered(): void {
    this.#isMetered = true;
    this.addWrite(() => this.#store.meta.set("isMetered", true));
  }

  get isMetered(): boolean {
    return this.#isMetered;
  }

  /** Whether a holder must still be notified of what the run spent, now that nothing of it can spend any more. */
  get mustReport(): boolean {
    return this.isFinal && this.#settings.holder !== null && !this.#isReported;
  }

  /** The children that were open know of this status. In memory only: a restart notifies them once more. */
  childrenNotified(status: RunStatus): void {
    this.#childrenNotifiedOf = status;
  }

  /** Whether open children must still be notified of how the run ended. */
  get mustNotifyChildren(): boolean {
    return hasEnded(this.#status) && this.children.openCount > 0 && this.#childrenNotifiedOf !== this.#status;
  }

  /** True once nothing of the run can spend any more, or add to its log. */
  get isFinal(): boolean {
    if (!hasEnded(this.#status) || this.hasGroupWork) return false;
    const { attempts, credits } = this.engine;
    return attempts.size + credits.size + this.toolPermits.inFlight + this.children.openCount === 0;
  }

  /** When the run deletes itself, epoch ms; null while it has not ended, or a relative or the webhook must still be notified. */
  get deleteAtMs(): number | null {
    if (this.#endedAtMs === null || !this.isFinal || this.mustReport || this.webhooks.all.length > 0) return null;
    return this.#endedAtMs + this.#settings.retentionMs;
  }

  /** Whether callers wait in requests: time alone may then end something. */
  get hasWaiters(): boolean {
    const callers = this.waitingExecutors.size + this.waitingReaders.size + this.waitingCalls.awake;
    return callers + this.toolPermits.pending > 0;
  }
}
