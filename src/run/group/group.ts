/** One group of slots in memory: a byte of state per slot, counters, and the measures its answer reports. */
import { addTold, type ToldTokens } from "../measures/told-tokens.ts";
import { Narrowing, type NarrowedBy } from "./narrowing.ts";
import type { Tiers } from "../answers/tiers.ts";
import { tierOf } from "../graph/tiers.ts";
import type { Amounts, Limits } from "../money/ledger.ts";
import type { Reason } from "../../errors.ts";
import type { TraceContext } from "../../trace-context.ts";
import type { Notify } from "../../call.ts";
import type { CallLabels } from "../../labels.ts";
import type { WindowGroup, WindowPosition } from "../leases/concurrency-window.ts";
import type { GroupGraph } from "./group-graph.ts";
import { EarlyCalls } from "./early-calls.ts";
import { ProviderSlots } from "./provider-slots.ts";
import type { Serves } from "./serves.ts";
import type { GroupEnding, Stopping } from "../rules/rule.ts";
import { GroupRules, stoppingOf, type StoredRules } from "../rules/table.ts";
import { TiersRule } from "../rules/tiers.ts";
import { isFinalState, mayStep, SLOT_STATES, type SlotState } from "../queue/slot.ts";
import type { ExtraSpend } from "../measures/totals.ts";
import { addDuration, noDurations, percentilesOf, type Percentiles } from "../measures/percentiles.ts";

/** The fields that a group is opened with; only changes of its graph change them. */
export type GroupHeader = {
  seq: number;
  /** Public id, `pg-…`. */
  id: string;
  count: number;
  /** Most attempts of this group in flight at once. */
  concurrency: number;
  /** What follows an attempt whose outcome is unknown: another under a new reservation, or the failure. */
  onLost: "retry" | "fail";
  /** The id of the group whose calls it makes once more; absent = none. */
  retryOf?: string;
  /** Set for a single call that is stored as a group of one: its position in its coalescing window. */
  single: WindowPosition | null;
  /** Its slots start only when no other slot of the run can, however long they have waited. */
  background?: true;
  /** Set if its slots depend on each other: it has this many tasks, in this version of its graph (absent = the first). The graph itself is stored apart, because it may be large. */
  graph?: { tasks: number; version?: number; ordersOnly?: true };
  openedAtMs: number;
  /** Slots that have not started within this time of `openedAtMs` fail; null = they wait without a limit. */
  deadlineMs: number | null;
  /** Set if calls of it may go through batches of their provider: from then on none does. Epoch ms. */
  liveAtMs?: number;
  /** The most that one attempt of the group may reserve, if its budget is split; null = all that is left. */
  share: Limits | null;
  /** The distinct models that the group's requests name; a slot refers to one by its index here. */
  models: readonly (string | null)[];
  /** What its client asks for beside its calls; absent = nothing. */
  rules?: StoredRules;
  /** What its call does for another group of the run; absent = it serves none. */
  serves?: Serves;
  /** Set if its answers are recorded and replayed: the epoch of the program that opened it. */
  replay?: { epoch: string };
  /** `pause`: its slots wait when the run's budget is used up; absent = they fail. */
  onExhausted?: "pause";
  /** Set while it awaits its confirmation: its quote is above `confirmOver` of its run. */
  held?: HeldQuote;
  /** Where in a trace its client has opened it; absent = in none. */
  trace?: TraceContext;
  /** What of it the operator's webhook is notified of; absent = nothing, unless its run says otherwise. */
  notify?: Notify;
  /** Of a single call: its labels; absent = it has none. The name is that of stored rows. */
  step?: CallLabels;
};

/** `escalated`: a call of its most important tier failed, or the vote of its answers decides nothing. */
export type GroupStatus = "running" | "completed" | "partial" | "failed" | "cancelled" | "escalated";

/** The measures of a group's speed in its answer, under the contract's names. */
export type GroupMetrics = {
  wall_ms: number;
  sequential_ms: number;
  speedup: number;
  peak_parallel: number;
  success_rate: number;
  /** Of the calls that have ended, with all their attempts; null = none has; absent = it is not asked for. */
  latency_ms?: Percentiles | null;
  /** Of the same calls: from the group's opening to the start of the first attempt. */
  queued_ms?: Percentiles | null;
  /** Why fewer calls were in flight than the group may have; absent = as many were, or only its last calls waited. */
  narrowed_by?: NarrowedBy;
};

/**
 * Why no more slots of a group start, and the state in which its queued slots ended. `abort`: one of its own slots
 * failed under `on_error: "abort"`. `stop`: its early stop was met.
 */
export type Drained = {
  state: "cancelled" | "failed";
  reason: Reason;
  cause: "cancel" | "abort" | "deadline" | "stop";
};

/** What a group would cost that awaits its confirmation; `calls`: the most of them, without retries. */
export type HeldQuote = { worstNanoUsd: number; likelyNanoUsd: number; calls: number };

/** Why a group waits for a higher limit: the rest of the budget does not cover what its next attempt needs. */
export type Paused = { need: Amounts; sinceMs: number };

/**
 * What an early stop has saved, or would have: `calls` were never made, `aborted` were in flight, were given up and stay charged.
 * `netNanoUsd`: what is left of `likelyNanoUsd` after what those cost above answers; both absent = nothing was given up.
 */
export type Saved = { calls: number; aborted: number; worstNanoUsd: number; likelyNanoUsd: number; atMs: number } & {
  abortedNanoUsd?: number;
  netNanoUsd?: number;
};

/** Tokens and cost of attempts, the sum of all that have ended. */
export type GroupUsage = { promptTokens: number; completionTokens: number; costNanoUsd: number } & Partial<
  CacheUse & ToldTokens
>;

/**
 * Tokens that were read from and written to caches of providers; absent = no calls share a prefix. `savedNanoUsd`: what that saved,
 * and batches of providers; absent = there was neither.
 */
export type CacheUse = { cachedTokens: number; cacheWriteTokens: number; savedNanoUsd: number };

const CODE_OF: Record<SlotState, number> = { queued: 0, running: 1, completed: 2, failed: 3, skipped: 4, cancelled: 5 };

export class Group {
  #header: GroupHeader;
  /** What its slots wait for; null = they are independent. */
  readonly graph: GroupGraph | null;
  #states: Uint8Array;
  #attempts: Uint16Array;
  /** Those of them that do not count towards the most attempts of a call, by the slot's index; absent = none. */
  readonly uncounted = new Map<number, number>();
  /** How often its gate had recovered when a slot's key did not work last, by the slot's index; absent = it always did. */
  readonly stops = new Map<number, number>();
  /** Slots that are sent without a service tier, because their upstream had no room for them there. In memory only. */
  readonly atStandardTier = new Set<number>();
  readonly counts: Record<SlotState, number>;
  readonly #ended: number[] = [];
  readonly #cancelledSlots = new Set<number>();
  /** In memory only: a restart forgets for how long the budget has narrowed the group before. */
  readonly narrowing = new Narrowing();
  #inFlight = 0;
  #peakParallel = 0;
  readonly #latencies = noDurations();
  readonly #queueTimes = noDurations();
  #sequentialMs = 0;
  readonly #usage: GroupUsage = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  #window: WindowGroup | null = null;
  #drained: Drained | null = null;
  /** Set while it waits for a higher limit of its run: none of its slots starts. */
  paused: Paused | null = null;
  /** What its client asks for beside its calls. */
  readonly rules: GroupRules;
  /** The calls of a graph that are made before their conditions are known; null = none are. */
  readonly early: EarlyCalls | null;
  /** Which of its slots may start, and whose failures matter; null = it has no tiers. */
  readonly tiers: Tiers | null;
  /** Slots that are for batches of their provider; null = the group does not ask for that. */
  readonly provider: ProviderSlots | null;
  #saved: Saved | null = null;
  #lastEndMs: number | null = null;
  #isEndTaken = false;
  /** Whether an escalation in it was reported. In memory only: receivers recognise what a restart reports once more. */
  isEscalationTold = false;
  /** Whether an attempt of it has begun after whose answer its slot may go on. In memory only. */
  mayGoOn = false;
  /** Slots that ended with a recorded answer. */
  replayed = 0;
  /** What attempts have cost beside which another attempt of their slot was in flight. */
  extra: Readonly<ExtraSpend> = { calls: 0, costNanoUsd: 0 };

  constructor(header: GroupHeader, graph: GroupGraph | null = null) {
    this.#header = header;
    this.graph = graph;
    const { speculate } = graph?.compiled ?? {};
    this.early = speculate === undefined ? null : new EarlyCalls(speculate.nanoUsd);
    this.rules = new GroupRules(header.rules, this);
    this.tiers = this.rules.find(TiersRule)?.tiers ?? null;
    this.provider = header.liveAtMs === undefined ? null : new ProviderSlots(header.liveAtMs);
    this.setTaskTiers();
    this.#states = new Uint8Array(header.count);
    this.#attempts = new Uint16Array(header.count);
    this.counts = { queued: header.count, running: 0, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
  }

  get header(): GroupHeader {
    return this.#header;
  }

  /** Attempts begun, per slot. */
  get attempts(): Uint16Array {
    return this.#attempts;
  }

  /** Takes over the header of a changed graph, which may have more slots: they are queued, and wait for what they depend on. */
  grow(header: GroupHeader): void {
    const more = header.count - this.#header.count;
    if (more < 0) throw new Error(`${header.id} cannot lose ${-more} slots`);
    this.#header = header;
    const [states, attempts] = [this.#states, this.#attempts];
    this.#states = new Uint8Array(header.count);
    this.#states.set(states);
    this.#attempts = new Uint16Array(header.count);
    this.#attempts.set(attempts);
    this.counts.queued += more;
    this.tiers?.grow(header.count);
  }

  /** Notes the tiers of the tasks that a changed graph has more. */
  setTaskTiers(): void {
    const { graph, tiers } = this;
    if (graph !== null) tiers?.setAll(graph.compiled.tasks.map((task) => ({ ...task, tier: tierOf(task) })));
  }

  /** Indexes of slots in the order in which they ended: a streaming reader pages through them. */
  get ended(): readonly number[] {
    return this.#ended;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether one more attempt may be in flight beside others of its slots. That of a single call may have a hedge. */
  get hasRoom(): boolean {
    const { single, concurrency } = this.#header;
    return this.#inFlight < (single === null ? concurrency : Math.max(2, concurrency));
  }

  get peakParallel(): number {
    return this.#peakParallel;
  }

  /** Sum of the latencies of all attempts: how long the group would have taken one call at a time. */
  get sequentialMs(): number {
    return this.#sequentialMs;
  }

  /** Tokens and cost of all of its attempts. */
  get usage(): Readonly<GroupUsage> {
    return this.#usage;
  }

  /** For a single call stored as a group: its coalescing window, unless a restart has lost it. */
  get window(): WindowGroup | null {
    return this.#window;
  }

  /** Set when no more slots start: queued slots without a row of their own ended with this. */
  get drained(): Drained | null {
    return this.#drained;
  }

  /** Set once the group's `stopWhen` was met, in shadow mode too. */
  get saved(): Saved | null {
    if (this.#saved === null) return null;
    const { aborted, abortedNanoUsd = 0, likelyNanoUsd } = this.#saved;
    const above = abortedNanoUsd - aborted * this.meanAnswerNanoUsd;
    return { ...this.#saved, abortedNanoUsd, netNanoUsd: Math.round(likelyNanoUsd - above) };
  }

  /** How it stops early; null = it runs to its end. */
  get stopping(): Stopping | null {
    return stoppingOf(this.#header.rules);
  }

  /** Whether its early stop was met, in shadow mode too, or it was stopped for another cause. */
  get hasStopped(): boolean {
    return this.#saved !== null || this.#drained !== null;
  }

  /** What an answer has cost on average, without what was given up. */
  get meanAnswerNanoUsd(): number {
    const { completed } = this.counts;
    return completed === 0 ? 0 : (this.#usage.costNanoUsd - (this.#saved?.abortedNanoUsd ?? 0)) / completed;
  }

  /** How long an answer has taken on average, with the attempts that have failed; null = there is none. */
  get meanAnswerMs(): number | null {
    return this.counts.completed === 0 ? null : this.#sequentialMs / this.counts.completed;
  }

  get endedAtMs(): number | null {
    return this.done ? this.#lastEndMs : null;
  }

  /** Its slots, without those that turned out not to exist: a `foreach` has fewer elements than it may have. */
  get presentSlots(): number {
    return this.header.count - (this.graph?.frontier.absentSlots ?? 0);
  }

  /** False while it waits for a higher limit, or for its confirmation. */
  get mayStart(): boolean {
    return this.paused === null && this.#header.held === undefined;
  }

  /** Its confirmation has come. Returns the header without what it was held for. */
  confirm(): GroupHeader {
    const { held, ...header } = this.#header;
    void held;
    this.#header = header;
    return header;
  }

  /** Whether all that is left of it waits for its provider: time alone starts nothing of it. */
  get waitsForProvider(): boolean {
    return this.provider !== null && this.provider.size > 0 && this.counts.running === 0 && this.startableSlots === 0;
  }

  /** Queued slots that may start now. */
  get startableSlots(): number {
    if (!this.mayStart) return 0;
    if (this.graph === null) return this.counts.queued - (this.tiers?.heldSlots ?? 0) - (this.provider?.size ?? 0);
    const { blocked, absentSlots } = this.graph.frontier;
    return this.counts.queued - blocked - absentSlots;
  }

  /** Where the call of a slot is in the pages of its group: a graph stores one call for each task. */
  callIndexOf(index: number): number {
    return this.graph === null ? index : this.graph.frontier.taskOf(index);
  }

  stateOf(index: number): SlotState {
    return SLOT_STATES[this.#states[index] ?? 0] ?? "queued";
  }

  /** Moves a slot one step. Throws on a step that the state machine does not allow: that is a bug, not an input. */
  step(index: number, to: SlotState, nowMs: number): void {
    const from = this.stateOf(index);
    if (!mayStep(from, to)) throw new Error(`slot ${index} of ${this.header.id} cannot go from ${from} to ${to}`);
    this.#states[index] = CODE_OF[to];
    this.counts[from] -= 1;
    this.counts[to] += 1;
    if (from === "running") this.#inFlight -= 1;
    if (to === "running") {
      this.#inFlight += 1;
      this.#peakParallel = Math.max(this.#peakParallel, this.#inFlight);
      this.attempts[index] = (this.attempts[index] ?? 0) + 1;
    }
    if (isFinalState(to)) this.#end(index, nowMs);
  }

  /** A slot that is running has a second attempt in flight. */
  hedgeStarted(index: number): void {
    this.#inFlight += 1;
    this.#peakParallel = Math.max(this.#peakParallel, this.#inFlight);
    this.attempts[index] = (this.attempts[index] ?? 0) + 1;
  }

  /** One of the two attempts of a slot has ended; the slot is running still. `extraNanoUsd`: what it cost. */
  hedgeEnded(extraNanoUsd: number): void {
    this.#inFlight -= 1;
    this.extra = { calls: this.extra.calls + 1, costNanoUsd: this.extra.costNanoUsd + extraNanoUsd };
  }

  /** Puts a slot into its stored state. Only for rebuilding the group from its rows. */
  restore(index: number, state: SlotState, attempts: number, nowMs: number): void {
    const from = this.stateOf(index);
    this.counts[from] -= 1;
    this.counts[state] += 1;
    this.#states[index] = CODE_OF[state];
    this.attempts[index] = attempts;
    if (state === "running") this.#inFlight += 1;
    if (isFinalState(state)) this.#end(index, nowMs);
  }

  /** Adds an attempt that ended to the group's measures; while the group is rebuilt, the sums of a slot's attempts. */
  addAttempt(latencyMs: number, { promptTokens, completionTokens, costNanoUsd, ...cached }: GroupUsage): void {
    this.#sequentialMs += latencyMs;
    this.#usage.promptTokens += promptTokens;
    this.#usage.completionTokens += completionTokens;
    this.#usage.costNanoUsd += costNanoUsd;
    const { cachedTokens, cacheWriteTokens = 0, savedNanoUsd, cacheHitTokens = 0, reasoningTokens = 0 } = cached;
    addTold(this.#usage, { cacheHitTokens, reasoningTokens });
    if (savedNanoUsd !== undefined) this.#usage.savedNanoUsd = (this.#usage.savedNanoUsd ?? 0) + savedNanoUsd;
    if (cachedTokens === undefined) return;
    this.#usage.cachedTokens = (this.#usage.cachedTokens ?? 0) + cachedTokens;
    this.#usage.cacheWriteTokens = (this.#usage.cacheWriteTokens ?? 0) + cacheWriteTokens;
  }

  /** Adds a slot that has ended to the percentiles. One that was never sent has no times. */
  addEnded({ attempts, latencyMs, queuedMs }: { attempts: number; latencyMs: number; queuedMs: number }): void {
    if (attempts === 0) return;
    addDuration(this.#latencies, latencyMs);
    addDuration(this.#queueTimes, queuedMs);
  }

  /** Stops the group: no queued slot may start any more. The caller ends those slots. */
  drain(drained: Drained): void {
    this.#drained = drained;
  }

  /** Whether it runs on after its early stop was met. */
  get isShadow(): boolean {
    return this.stopping?.shadow === true;
  }

  /** Notes that the group's `stopWhen` is met, and what that saves. */
  noteSaved(saved: Saved): void {
    this.#saved = saved;
  }

  /** Notes that slots are given up because the group has stopped, and what they are charged. */
  noteAborted(slots: number, nanoUsd: number): void {
    if (this.#saved === null) return;
    const { aborted, abortedNanoUsd = 0 } = this.#saved;
    this.#saved = { ...this.#saved, aborted: aborted + slots, abortedNanoUsd: abortedNanoUsd + nanoUsd };
  }

  /** Notes that a running slot was cancelled by itself, so that its attempt's end counts as a cancellation. */
  markCancelled(index: number): void {
    this.#cancelledSlots.add(index);
  }

  /** True if a slot was cancelled, by itself or with its group. */
  isCancelled(index: number): boolean {
    const cause = this.#drained?.cause;
    return cause === "cancel" || cause === "stop" || this.#cancelledSlots.has(index);
  }

  /** For a single call stored as a group: the coalescing window in which it arrived. */
  joinWindow(window: WindowGroup | null): void {
    this.#window = window;
  }

  /** True once, when all slots have ended: the caller emits the group's end. */
  takeEnd(): boolean {
    if (!this.done || this.#isEndTaken) return false;
    this.#isEndTaken = true;
    return true;
  }

  /** Id of the parallel group of its calls: its own, or for a single call that of its coalescing window, if any. */
  get parallelGroupId(): string | null {
    return this.header.single === null ? this.header.id : (this.#window?.id ?? null);
  }

  /** True once every slot has ended, and no more can be added. */
  get done(): boolean {
    if (this.graph?.plan?.state === "open" && this.#drained === null) return false;
    return this.#ended.length === this.presentSlots;
  }

  get status(): GroupStatus {
    if (!this.done) return "running";
    const ending = this.#ending;
    const verdict = this.rules.verdict(ending);
    if (verdict !== null) return verdict === "undecided" ? "escalated" : verdict;
    if (ending.isComplete) return "completed";
    if (ending.isCancelled) return "cancelled";
    // What a stop has cancelled is not missing.
    const { replacedSlots: replaced = 0, unmetSlots: unmet = 0 } = this.graph?.frontier ?? {};
    const lost = this.counts.failed - replaced + this.counts.skipped - unmet;
    if (this.#drained?.cause === "stop" && lost === 0) return "completed";
    return this.counts.completed > 0 ? "partial" : "failed";
  }

  /** How it has ended, as far as its slots say. */
  get #ending(): GroupEnding {
    const { completed, cancelled } = this.counts;
    const { replacedSlots = 0, unmetSlots = 0 } = this.graph?.frontier ?? {};
    // What conditions have skipped is not missing.
    const wanted = this.presentSlots - unmetSlots;
    const answered = completed + replacedSlots;
    const cause = this.#drained?.cause;
    return {
      isComplete: (this.graph?.isWhole ?? true) && answered === wanted,
      isCancelled: cause === "cancel" && cancelled > 0,
      answered,
      expected: wanted - (cause === "stop" ? cancelled : 0),
    };
  }

  /** Whether it has ended without the decision of its vote. */
  get isUndecided(): boolean {
    return this.done && this.rules.verdict(this.#ending) === "undecided";
  }

  /** False for a slot that does not exist, or that a condition has skipped. */
  isWanted(index: number): boolean {
    const { frontier } = this.graph ?? {};
    return frontier?.isAbsent(index) !== true && frontier?.isUnmet(index) !== true;
  }

  /** What has kept it narrower than it may be; null = nothing for long. */
  narrowedBy(nowMs: number): NarrowedBy | null {
    return this.narrowing.shown(this.#wallMs(nowMs), nowMs);
  }

  #wallMs(nowMs: number): number {
    return Math.max(0, (this.endedAtMs ?? nowMs) - this.header.openedAtMs);
  }

  metrics(nowMs: number): GroupMetrics {
    const wallMs = this.#wallMs(nowMs);
    const stopped = this.#drained?.cause === "stop" ? this.counts.cancelled : 0;
    const tried = this.#ended.length - stopped - (this.graph?.frontier.unmetSlots ?? 0);
    const narrowedBy = this.narrowedBy(nowMs);
    return {
      wall_ms: wallMs,
      sequential_ms: this.#sequentialMs,
      speedup: wallMs === 0 ? 1 : round(this.#sequentialMs / wallMs),
      peak_parallel: this.#peakParallel,
      success_rate: tried === 0 ? 1 : round(this.counts.completed / tried),
      latency_ms: percentilesOf(this.#latencies),
      queued_ms: percentilesOf(this.#queueTimes),
      ...(narrowedBy === null ? {} : { narrowed_by: narrowedBy }),
    };
  }

  #end(index: number, nowMs: number): void {
    this.#ended.push(index);
    this.#lastEndMs = nowMs;
    const hasFailed = this.stateOf(index) === "failed" && this.graph?.isReplaceable(index) !== true;
    this.tiers?.ended(index, hasFailed);
  }
}

/** Three decimals are all that a ratio of milliseconds can mean. */
export function round(ratio: number): number {
  return Math.round(ratio * 1_000) / 1_000;
}
