/**
 * The run in memory: its engine, who waits for it, and the turn that joins them. A turn applies what callers brought,
 * dispatches, writes all of it in one transaction, and only then lets replies go. The object is the shell around it.
 */
import { ANY_TOKENS } from "../../src/budget/estimate.ts";
import type { Lease } from "../../src/call.ts";
import { expireQueued } from "../../src/engine/deadline.ts";
import { dispatch, type Assignment, type Dispatched } from "../../src/engine/dispatch.ts";
import { storedShard, type Target } from "../../src/engine/shard.ts";
import { drainGroup, withdrawCall } from "../../src/engine/open.ts";
import { settle } from "../../src/engine/settle.ts";
import type { Page } from "../../src/engine/page.ts";
import { groupSeqOf, slotIdOf } from "../../src/engine/slot.ts";
import type { EngineState } from "../../src/engine/state.ts";
import type { Reason } from "../../src/errors.ts";
import { GROUPS_ENDED_KEPT, LEASE_TTL_MS } from "../../src/limits.ts";
import { targetOf } from "../../src/upstream/target.ts";
import type { Config } from "../../src/env.ts";
import { lanesMayStartMore, lingerMs } from "./lanes.ts";
import { PageCache } from "./pages.ts";
import { rebuild, type Rebuilt } from "./rebuild.ts";
import type { ClaimReply, Job } from "./rpc.ts";
import { Children } from "./children.ts";
import { hasEnded, type EndStatus, type RunSettings, type RunStatus } from "./settings.ts";
import type { RunStore } from "./store.ts";
import { WaitingCalls, WaitingLanes, WaitingReaders } from "./waiting.ts";

/** A target for leases whose upstream the configuration no longer has: they can only settle, never start again. */
const GONE: Omit<Target, "upstream" | "model"> = {
  price: null,
  bounds: ANY_TOKENS,
  maxInFlight: 0,
  timeoutMs: 0,
  attemptsMax: 0,
};

/** What calls that still wait when their run's time is over get, as those that come later do. */
const EXPIRED: Reason = { reason: "invalid_api_key", message: "the run has expired; open another" };

/** What of the gateway's configuration a run needs. */
type ModelConfig = Pick<Config, "upstreams" | "defaultModel">;

export class RunCore {
  settings: RunSettings;
  status: RunStatus;
  readonly children: Children;
  readonly state: EngineState;
  readonly open: Rebuilt["open"];
  readonly groupCounts: Rebuilt["groupCounts"];
  readonly lanes = new WaitingLanes();
  readonly readers = new WaitingReaders();
  readonly singles = new WaitingCalls();
  /** Rows that operations of this turn add to the transaction. */
  readonly writes: (() => void)[] = [];
  nextSeq: number;
  readonly #store: RunStore;
  readonly #config: ModelConfig;
  readonly #pages: PageCache;
  readonly #targets = new Map<string | null, Target | Reason>();
  #ended: number[] = [];
  /** The budget refusal that the best slot in line waits not to get, as of the last turn. */
  #waitingFor: Reason | null = null;

  /** Whether the holder of this run's budget has been told what it spent. */
  reported: boolean;
  /** The status that the children were told this run ended with; null = none yet. */
  toldChildren: RunStatus | null = null;

  constructor(store: RunStore, settings: RunSettings, config: ModelConfig, now: { ms: number; random: () => number }) {
    this.#store = store;
    this.#config = config;
    this.settings = settings;
    this.status = store.status() ?? "active";
    this.reported = store.reported();
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
    this.nextSeq = rebuilt.nextSeq;
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

  /** Callers that wait here. */
  get waiting(): number {
    return this.lanes.size + this.readers.size + this.singles.size;
  }

  /** Answers callers that have waited long enough, and forgets calls whose Worker has stopped asking. */
  sweep(nowMs: number): void {
    this.lanes.sweep(nowMs);
    this.readers.sweep(nowMs);
    for (const callId of this.singles.sweep(nowMs)) withdrawCall(this.state, callId);
  }

  /** True while a group has slots that have not ended: lanes are needed. */
  get hasGroupWork(): boolean {
    return this.open.size > 0;
  }

  /** The second half of a turn: hand out permits, commit, answer. `flush` also writes what may lag. */
  conclude(nowMs: number, flush: boolean): void {
    const late = expireQueued(this.state, this.#waitingFor, nowMs);
    const dispatched = dispatch(this.state, this.lanes.offers(), nowMs);
    this.#waitingFor = dispatched.waitingFor;
    dispatched.refused.push(...late);
    const mustWrite = flush || this.state.mustWrite || this.writes.length > 0;
    const written = mustWrite ? this.#commit(nowMs) : [];
    this.#answer(dispatched);
    for (const seq of written) this.#forgetGroup(seq);
    if (this.lanes.size > 0) this.lanes.release(lanesMayStartMore(this));
    this.readers.sweep(nowMs);
  }

  /** Ends what is queued. What runs ends by itself. */
  #endQueued(reason: Reason, nowMs: number): void {
    for (const seq of [...this.open.keys()]) {
      const group = this.state.groups.get(seq);
      if (group !== undefined) drainGroup(this.state, group, { state: "cancelled", reason }, nowMs);
    }
    const { remainingNanoUsd } = this;
    for (const { callId } of this.state.calls.values())
      this.singles.answer(callId, { ok: false, reason, remainingNanoUsd });
    this.state.calls.clear();
    this.state.queue.remove((groupSeq) => groupSeq === 0);
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
    if (this.mustTell) times.push(nowMs);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** True when the children do not know yet how this run ended, or its holder does not know what it spent. */
  get mustTell(): boolean {
    if (!hasEnded(this.status)) return false;
    if (this.children.open.length > 0) return this.toldChildren !== this.status;
    return this.isFinal && this.settings.holder !== null && !this.reported;
  }

  /** True once nothing of the run can spend any more. */
  get isFinal(): boolean {
    return (
      hasEnded(this.status) && this.state.attempts.size === 0 && !this.hasGroupWork && this.children.open.length === 0
    );
  }

  /**
   * Ends the run: nothing starts any more. `cancelled` also gives up what is in flight, whose cost is then unknown; it
   * may follow on `closed` and `expired`. Ending it again the same way changes nothing.
   */
  end(status: EndStatus, nowMs: number): void {
    if (this.status === "cancelled" || (hasEnded(this.status) && status !== "cancelled")) return;
    this.status = status;
    this.state.paused = false;
    this.writes.push(() => this.#store.putStatus(status));
    const reason: Reason = status === "expired" ? EXPIRED : { reason: "cancelled", message: `the run was ${status}` };
    this.#endQueued(reason, nowMs);
    if (status !== "cancelled") return;
    for (const { lease } of [...this.state.attempts.values()]) {
      const latencyMs = Math.max(0, nowMs - lease.startedAtMs);
      settle(
        this.state,
        lease.attemptId,
        { kind: "failure", class: "unknown", reason, retryAfterMs: null, latencyMs },
        nowMs,
      );
    }
  }

  /** Writes what the turn changed. Returns the groups that ended in it. */
  #commit(nowMs: number): number[] {
    const { shards, slots, groups } = this.state.takeWrites();
    if (shards.length + slots.length + groups.length + this.writes.length === 0) return [];
    const write = (): void => {
      for (const own of this.writes) own();
      for (const shard of shards) this.#store.putShard(shard.id, storedShard(shard));
      this.#store.putSlots(slots);
      for (const group of groups) {
        const { status, endedAtMs, drained } = group;
        this.#store.putGroupResult(group.header.seq, { status, metrics: group.metrics(nowMs), endedAtMs, drained });
      }
    };
    // One row is one statement, which is all or nothing by itself; a transaction around it costs as much again.
    if (shards.length === 1 && slots.length + groups.length + this.writes.length === 0) write();
    else this.#store.transaction(write);
    this.writes.length = 0;
    return groups.filter((group) => group.done).map((group) => group.header.seq);
  }

  #answer({ assignments, refused }: Dispatched): void {
    const byLane = new Map<number, Assignment[]>();
    for (const assignment of assignments) {
      if (assignment.lane === null) {
        const { lease, call } = assignment;
        const remaining = { remainingNanoUsd: this.remainingNanoUsd };
        this.singles.answer(call.callId, {
          ok: true,
          lease: leaseOf(assignment),
          queuedMs: lease.queuedMs,
          ...remaining,
        });
      } else {
        const own = byLane.get(assignment.lane);
        if (own === undefined) byLane.set(assignment.lane, [assignment]);
        else own.push(assignment);
      }
    }
    const ask = byLane.size > 0 && lanesMayStartMore(this);
    for (const [lane, own] of byLane) this.lanes.answer(lane, this.#claimOf(own, ask));
    for (const { call, reason } of refused) {
      this.singles.answer(call.callId, { ok: false, reason, remainingNanoUsd: this.remainingNanoUsd });
    }
  }

  #claimOf(assignments: Assignment[], ask: boolean): ClaimReply {
    const jobs: Job[] = [];
    const defaults: Record<number, string> = {};
    for (const assignment of assignments) {
      if (assignment.lane === null) continue;
      const groupSeq = groupSeqOf(assignment.slotId);
      defaults[groupSeq] ??= this.open.get(groupSeq)?.defaultsJson ?? "{}";
      jobs.push({ groupSeq, lease: leaseOf(assignment), callJson: this.#pages.call(assignment.slotId) });
    }
    return { jobs, defaults, ask, lingerMs: lingerMs(this.state) };
  }

  /** A group that has ended lives on in its rows; a few stay in memory for readers that follow them. */
  #forgetGroup(seq: number): void {
    this.open.delete(seq);
    this.#ended.push(seq);
    const oldest = this.#ended.length > GROUPS_ENDED_KEPT ? this.#ended.shift() : undefined;
    if (oldest !== undefined) this.state.groups.delete(oldest);
    if (!this.hasGroupWork) this.#pages.clear();
  }
}

function leaseOf({ lease, capTokens, timeoutMs }: Assignment): Lease {
  const { upstream, model } = lease.target;
  return { attemptId: lease.attemptId, attempt: lease.attempt, upstream, model, capTokens, timeoutMs };
}
