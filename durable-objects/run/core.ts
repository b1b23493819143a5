/**
 * The run in memory: its engine, who waits for it, and the turn that joins them. A turn applies what callers brought,
 * dispatches, writes all of it in one transaction, and only then lets replies go. The object is the shell around it.
 */
import { expireQueued } from "../../src/engine/deadline.ts";
import { cancelGroup, cancelSlot } from "../../src/engine/cancel.ts";
import { dispatch } from "../../src/engine/dispatch.ts";
import { storedShard, type Target } from "../../src/engine/shard.ts";
import { endCall } from "../../src/engine/open.ts";
import type { Page } from "../../src/engine/page.ts";
import { slotIdOf } from "../../src/engine/slot.ts";
import type { EngineState } from "../../src/engine/state.ts";
import type { Reason } from "../../src/errors.ts";
import { ToolPermits } from "../../src/tools/permits.ts";
import { GROUPS_ENDED_KEPT, LEASE_TTL_MS, TELL_AGAIN_MS } from "../../src/limits.ts";
import { targetOf } from "../../src/upstream/target.ts";
import type { Config } from "../../src/env.ts";
import { answer } from "./answer.ts";
import { Attached } from "./attached.ts";
import { Base } from "./base.ts";
import { lanesMayStartMore } from "./lanes.ts";
import type { Openings } from "./openings.ts";
import { PageCache } from "./pages.ts";
import { GONE, rebuild, type Rebuilt } from "./rebuild.ts";
import { Children } from "./children.ts";
import { hasEnded, type RunSettings, type RunStatus } from "./settings.ts";
import type { RunStore } from "./store.ts";
import type { StoredGroup } from "./stored.ts";
import type { Named } from "./rpc.ts";
import { CLIENT_GONE } from "./single.ts";
import { turnTools } from "./tool-calls.ts";
import { Turns } from "./turns.ts";
import { WaitingCalls, WaitingLanes, WaitingReaders } from "./waiting.ts";

/** What of the gateway's configuration a run needs. */
type ModelConfig = Pick<Config, "upstreams" | "defaultModel">;

export class RunCore {
  settings: RunSettings;
  status: RunStatus;
  readonly children: Children;
  readonly state: EngineState;
  readonly open: Rebuilt["open"];
  readonly groupCounts: Rebuilt["groupCounts"];
  readonly openings: Openings;
  /** Idempotency-Keys that this turn writes. */
  readonly #newNamed = new Map<string, { seq: number; hash: string }>();
  readonly lanes = new WaitingLanes();
  /** Number of this instance of the run object among those that found groups open: later ones have higher numbers. */
  readonly epoch: number;
  readonly readers = new WaitingReaders();
  readonly singles = new WaitingCalls();
  readonly tools = new ToolPermits();
  /** Rows that operations of this turn add to the transaction. */
  readonly writes: (() => void)[] = [];
  nextSeq: number;
  /** Number of the last event in storage: later ones are shown to nobody. */
  durableSeq: number;
  readonly #store: RunStore;
  readonly #config: ModelConfig;
  readonly #pages: PageCache;
  readonly #targets = new Map<string | null, Target | Reason>();
  #ended: number[] = [];
  readonly attached = new Attached();
  readonly base: Base;
  /** What clients have added to the log. */
  clientLogBytes: number;
  /** When the run ended, epoch ms; null while it has not. */
  endedAtMs: number | null;
  /** The budget refusal that the best slot in line waits not to get, as of the last turn. */
  #waitingFor: Reason | null = null;

  /** Whether the holder of this run's budget has been told what it spent. */
  reported: boolean;
  /** A patch may have left more set aside for this run than its limits come to. */
  holdInDoubt: boolean;
  /** Patches, and what their crashes leave to do: what the holder sets aside follows from the limits before and after. */
  readonly patches = new Turns();
  /** The status that the children were told this run ended with; null = none yet. */
  toldChildren: RunStatus | null = null;

  constructor(store: RunStore, settings: RunSettings, config: ModelConfig, now: { ms: number; random: () => number }) {
    this.#store = store;
    this.#config = config;
    this.settings = settings;
    this.status = store.status() ?? "active";
    this.reported = store.reported();
    this.holdInDoubt = store.holdInDoubt();
    this.clientLogBytes = store.clientLogBytes();
    this.endedAtMs = store.endedAtMs();
    this.base = new Base(store);
    this.#pages = new PageCache(
      (slotId) => store.pageOf(slotId),
      (seq) => store.group(seq)?.stored.header.models ?? [],
    );
    const rebuilt = rebuild(
      store,
      settings,
      {
        random: now.random,
        factsOf: (slotId) => this.#pages.facts(slotId),
        targetOf: (group, modelIndex) => {
          const target = this.resolve(group.models[modelIndex] ?? null);
          return "reason" in target ? null : target;
        },
        targetOfLease: (lease) => {
          const target = this.resolve(`${lease.upstream}/${lease.model}`);
          return "reason" in target ? { ...GONE, upstream: lease.upstream, model: lease.model } : target;
        },
      },
      now.ms,
    );
    this.state = rebuilt.state;
    this.open = rebuilt.open;
    this.groupCounts = rebuilt.groupCounts;
    this.openings = rebuilt.openings;
    this.epoch = this.open.size > 0 ? store.nextEpoch() : store.epoch();
    for (const seq of this.open.keys()) this.followed(seq, now.ms);
    this.nextSeq = rebuilt.nextSeq;
    this.durableSeq = this.state.writtenSeq;
    this.children = new Children(store, this.state.ledger);
    this.state.paused = this.status === "paused";
  }

  /** Where a model goes under this run's rules, or why nowhere. */
  resolve(asked: string | null): Target | Reason {
    const known = this.#targets.get(asked);
    if (known !== undefined) return known;
    const found = targetOf(asked, this.settings, this.#config);
    const target = found.ok ? found.target : found.reason;
    // Bounded: names come from clients.
    if (this.#targets.size < 1_000) this.#targets.set(asked, target);
    return target;
  }

  get remainingNanoUsd(): number | null {
    const remaining = this.state.ledger.remaining("usd");
    return remaining === null ? null : Math.max(0, remaining);
  }

  /** The status as it is now: a run whose time is over has expired, whether or not its alarm has seen it. */
  statusAt(nowMs: number): RunStatus {
    return nowMs >= this.settings.expiresAtMs && !hasEnded(this.status) ? "expired" : this.status;
  }

  /** Callers that wait here, and tool calls whose Workers must keep beating. */
  get waiting(): number {
    return this.lanes.size + this.readers.size + this.singles.size + this.tools.waiting + this.tools.inFlight;
  }

  /** Answers callers that have waited long enough, and forgets calls whose Worker has stopped asking. */
  sweep(nowMs: number): void {
    this.lanes.sweep(nowMs);
    this.readers.sweep(nowMs);
    for (const callId of this.singles.sweep(nowMs)) endCall(this.state, callId, CLIENT_GONE, nowMs);
  }

  /** A group as it was opened; undefined for no such group. */
  groupStored(seq: number): StoredGroup | undefined {
    return this.open.get(seq) ?? this.#store.group(seq)?.stored;
  }

  /** The group that an Idempotency-Key has opened, in this turn or before. */
  named(key: string): { seq: number; hash: string } | null {
    return this.#newNamed.get(key) ?? this.#store.named(key);
  }

  /** Gives what this turn opens, by its number, to the key that asked for it. */
  name({ key, hash }: Named, seq: number): void {
    this.#newNamed.set(key, { seq, hash });
    this.writes.push(() => this.#store.putNamed(key, { seq, hash }));
  }

  /** The body of a slot's call, as JSON text. */
  callOf(slotId: number): string {
    return this.#pages.call(slotId);
  }

  /** Somebody follows a group. */
  followed(seq: number, nowMs: number): void {
    if (this.open.get(seq)?.detach === false) this.attached.seen(seq, nowMs);
  }

  /** Stops one slot of a group; false for no such slot. One that has ended stays as it is. */
  cancelSlot(seq: number, index: number, message: string, nowMs: number): boolean {
    const group = this.state.groups.get(seq);
    if (group === undefined || group.done) return (this.groupStored(seq)?.header.count ?? 0) > index;
    if (index >= group.header.count) return false;
    cancelSlot(this.state, group, index, { reason: "cancelled", message }, nowMs);
    return true;
  }

  /** Stops a group and gives up what runs of it. One that has ended stays as it is. */
  cancel(seq: number, message: string, nowMs: number): void {
    this.attached.forget(seq);
    const group = this.state.groups.get(seq);
    if (group !== undefined && !group.done) cancelGroup(this.state, group, { reason: "cancelled", message }, nowMs);
  }

  /** True while a group has slots that have not ended: lanes are needed. */
  get hasGroupWork(): boolean {
    return this.open.size > 0;
  }

  /** The second half of a turn: hand out permits, commit, answer. `flush` also writes what may lag. */
  conclude(nowMs: number, flush: boolean): void {
    this.state.tellWindowEnds(nowMs);
    const late = expireQueued(this.state, this.#waitingFor, nowMs);
    const dispatched = dispatch(this.state, this.lanes.offers(), nowMs);
    this.#waitingFor = dispatched.waitingFor;
    dispatched.refused.push(...late);
    turnTools(this, nowMs);
    const mustWrite = flush || this.state.mustWrite || this.writes.length > 0;
    const written = mustWrite ? this.#commit(nowMs, flush) : [];
    answer(this, dispatched);
    for (const seq of written) this.#forgetGroup(seq);
    if (this.lanes.size > 0) this.lanes.release(lanesMayStartMore(this));
    this.readers.sweep(nowMs);
  }

  /** Keeps a page that was just stored, so that dispatch need not read it back. */
  keepPage(seq: number, page: Page): void {
    this.#pages.keep(slotIdOf(seq, page.firstIndex), page, this.open.get(seq)?.header.models ?? []);
  }

  /** When the object must be woken at the latest, whatever happens to this instance; null = never. */
  nextAlarmMs(nowMs: number): number | null {
    const times: number[] = [];
    if (this.hasGroupWork || this.state.attempts.size > 0)
      times.push(this.state.nextLeaseEndMs() ?? nowMs + LEASE_TTL_MS);
    if (!hasEnded(this.status)) times.push(this.settings.expiresAtMs);
    const childDueMs = this.children.nextDueMs();
    if (childDueMs !== null) times.push(childDueMs);
    if (this.mustTell || this.state.aborted.size > 0) times.push(nowMs);
    if (this.holdInDoubt) times.push(nowMs + TELL_AGAIN_MS);
    const stagedDueMs = this.openings.nextDueMs;
    if (stagedDueMs !== null) times.push(stagedDueMs);
    if (this.deleteAtMs !== null) times.push(this.deleteAtMs);
    // While it has not ended, nothing but the next tool call waits for a permit that nobody gives back.
    if (hasEnded(this.status)) times.push(this.tools.nextEndMs() ?? Infinity);
    const next = Math.min(...times);
    return next === Infinity ? null : next;
  }

  /** True when the children do not know yet how this run ended, or its holder does not know what it spent. */
  get mustTell(): boolean {
    if (!hasEnded(this.status)) return false;
    if (this.children.open.length > 0) return this.toldChildren !== this.status;
    return this.isFinal && this.settings.holder !== null && !this.reported;
  }

  /** When the run deletes itself; null while it has not ended, or somebody must still hear of it. */
  get deleteAtMs(): number | null {
    const known = this.isFinal && !this.mustTell && this.endedAtMs !== null;
    return known ? (this.endedAtMs ?? 0) + this.settings.retentionMs : null;
  }

  /** True once nothing of the run can spend any more, or add to its log. */
  get isFinal(): boolean {
    const inFlight = this.state.attempts.size + this.tools.inFlight + this.children.open.length;
    return hasEnded(this.status) && inFlight === 0 && !this.hasGroupWork;
  }

  /** Writes what the turn changed. Returns the groups that ended in it. */
  #commit(nowMs: number, flush: boolean): number[] {
    const { shards, slots, groups } = this.state.takeWrites();
    // The start of an attempt may wait for the next row: its lease tells it again after a crash.
    const log = flush || this.state.log.urgent ? this.state.log.take() : null;
    const others = slots.length + groups.length + this.writes.length + (log === null ? 0 : 1);
    if (shards.length + others === 0) return [];
    const write = (): void => {
      for (const own of this.writes) own();
      for (const shard of shards) this.#store.putShard(shard.id, storedShard(shard));
      this.#store.slots.put(slots);
      for (const group of groups) {
        const { status, endedAtMs, drained, parallelGroupId, counts } = group;
        const result = { status, metrics: group.metrics(nowMs), endedAtMs, drained, parallelGroupId, counts };
        this.#store.putGroupResult(group.header.seq, result);
      }
      if (log !== null) this.#store.log.put(log);
    };
    // One row is one statement, which is all or nothing by itself; a transaction around it costs as much again.
    if (shards.length === 1 && others === 0) write();
    else this.#store.transaction(write);
    this.writes.length = 0;
    this.#newNamed.clear();
    if (log !== null) this.durableSeq = log.lastSeq;
    return groups.filter((group) => group.done).map((group) => group.header.seq);
  }

  /** A group that has ended lives on in its rows; a few stay in memory for readers that follow them. */
  #forgetGroup(seq: number): void {
    this.open.delete(seq);
    this.attached.forget(seq);
    this.#ended.push(seq);
    const oldest = this.#ended.length > GROUPS_ENDED_KEPT ? this.#ended.shift() : undefined;
    if (oldest !== undefined) this.state.groups.delete(oldest);
    if (!this.hasGroupWork) this.#pages.clear();
  }
}
