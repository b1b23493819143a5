/**
 * A run: one object that owns its money, permits and order. This file is the shell: lifecycle, RPC, alarm and timers;
 * the decisions are in src/engine and src/budget, the turn that joins them in core.ts, the rows in store.ts. It never
 * fetches an upstream. Every method is safe to repeat: attempts settle once, by id.
 */
import { DurableObject } from "cloudflare:workers";
import type { BudgetDocument, RunDocument } from "../../src/contract/runs.ts";
import type { Outcome } from "../../src/call.ts";
import { settle, heartbeat, expireLeases } from "../../src/engine/settle.ts";
import type { Page } from "../../src/engine/page.ts";
import { enqueueCall, withdrawCall } from "../../src/engine/open.ts";
import { configOf } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import { DIRECT_CALLS_MAX, LANE_SLOTS, LONG_POLL_MS, SETTLE_LAG_MS, SWEEP_MS } from "../../src/limits.ts";
import { laneOf, type Objects } from "../address.ts";
import { CommitQueue } from "./commit.ts";
import { RunCore } from "./core.ts";
import { budgetDocumentOf, runDocumentOf } from "./document.ts";
import { endedSlots, groupView, resultsFrom } from "./read.ts";
import { openGroup, stagePages } from "./stage.ts";
import type {
  AcquireReply,
  AcquireRequest,
  ClaimReply,
  EndedReply,
  GroupView,
  OpenGroupReply,
  OpenGroupRequest,
  Refused,
  SettleReply,
  Settlement,
  SlotView,
} from "./rpc.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { RunSettings } from "./settings.ts";
import { RunStore } from "./store.ts";

type Document = Omit<RunDocument, "metadata"> & { metadataJson: string };

export class RunObject extends DurableObject<Objects> {
  readonly #store: RunStore;
  readonly #commits: CommitQueue;
  /** Names this instance, so that a reader's cursor into memory is not mistaken for one into another's. */
  readonly #epoch = crypto.randomUUID();
  #core: RunCore | null = null;
  #alarmMs: number | null = null;
  #sweeping = false;
  #flushing = false;
  #flushTimer: ReturnType<typeof setTimeout> | null = null;
  #readyTimer: { atMs: number; handle: ReturnType<typeof setTimeout> } | null = null;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#store = new RunStore(ctx.storage);
    this.#rebuild();
    this.#commits = new CommitQueue({
      now: Date.now,
      conclude: (nowMs) => this.#conclude(nowMs),
      broken: (error) => {
        // Whoever waits here, from earlier turns too, hears of it by the abort and asks the next instance.
        console.error("a turn failed; the object restarts from its rows", error);
        ctx.abort("a turn failed");
      },
      crowded: () => (this.#core?.state.attempts.size ?? 0) > 1,
      soon: (callback) => setTimeout(callback, 0),
    });
  }

  /** Opens the run. Opening it again changes nothing and tells what is there. */
  open(settings: RunSettings): Document {
    if (this.#core === null) {
      this.#store.transaction(() => this.#store.putSettings(settings));
      this.#rebuild();
      this.#armAlarm(Date.now());
    }
    return this.#document(this.#mustBeOpen());
  }

  /** The run's document, or null when there is no such run. */
  document(): Document | null {
    return this.#core === null ? null : this.#document(this.#core);
  }

  /** What is left of the run's budget, in four numbers per dimension. */
  budget(): BudgetDocument | null {
    return this.#core === null ? null : budgetDocumentOf(this.#core.state.ledger);
  }

  /** What a route must know of the run before it can answer a batch, or why the run takes none. */
  answerSettings(): { ok: true; errorStyle: ErrorStyle; width: number } | Refused {
    const refused = this.#refusal(Date.now());
    if (refused !== null || this.#core === null) return { ok: false, reason: refused ?? NOT_FOUND };
    return { ok: true, errorStyle: this.#core.settings.errorStyle, width: this.#core.state.width };
  }

  /** Asks for the permit of a single call; waits for it up to 20 s, then says `wait`. */
  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return this.#commits.submit<AcquireReply>((reply, nowMs) => {
      const refused = this.#refusal(nowMs);
      const core = this.#core;
      if (refused !== null || core === null) return reply(this.#refuse(refused ?? NOT_FOUND));
      if (core.singles.wait(request.callId, reply, nowMs)) return;
      const target = core.resolve(request.facts.model);
      if ("reason" in target) return reply(this.#refuse(target));
      if (core.singles.size >= DIRECT_CALLS_MAX) return reply(this.#refuse(OVERLOADED));
      this.#returnUnheard(core, `${request.callId}.${request.attempt}`, nowMs);
      const { callId, attempt, facts, delayMs } = request;
      core.singles.add(callId, reply, nowMs);
      enqueueCall(core.state, { callId, attempt, facts, target }, delayMs, nowMs);
    });
  }

  /** Takes back a single call whose client has gone before it had its permit. */
  withdraw(callId: string): Promise<void> {
    return this.#commits.submit<void>((reply) => {
      // Its Worker must not be left waiting: it asks no more once its client has gone.
      this.#core?.singles.answer(callId, { ok: "wait" });
      if (this.#core !== null) withdrawCall(this.#core.state, callId);
      reply();
    });
  }

  /** Records what a single call's attempt ended as. */
  settle(attemptId: string, outcome: Outcome): Promise<SettleReply> {
    return this.#commits.submit<SettleReply>((reply, nowMs) => {
      const core = this.#mustBeOpen();
      const settled = settle(core.state, attemptId, outcome, nowMs);
      reply({
        known: settled !== null,
        retryInMs: settled?.retryInMs ?? null,
        costNanoUsd: settled?.charge.usd ?? 0,
        promptTokens: settled?.charge.prompt_tokens ?? 0,
        completionTokens: settled?.charge.completion_tokens ?? 0,
        estimated: settled?.estimated ?? false,
        parallelGroupId: settled?.parallelGroupId ?? null,
        remainingNanoUsd: core.remainingNanoUsd,
      });
    });
  }

  /**
   * A lane's one call: settles what ended and takes attempts until it has `capacity` of them. With `waits`, a call that
   * gets none waits for some up to 20 s.
   */
  settleAndClaim(lane: number, settlements: Settlement[], capacity: number, waits: boolean): Promise<ClaimReply> {
    return this.#commits.submit<ClaimReply>((reply, nowMs) => {
      const core = this.#mustBeOpen();
      for (const { attemptId, outcome } of settlements) settle(core.state, attemptId, outcome, nowMs);
      // What the lane is lent is counted here: an older call's reply may still be on its way to it.
      const held = core.state.shards.get(lane)?.leases.size ?? 0;
      core.lanes.wait(lane, { want: Math.min(capacity, LANE_SLOTS) - held, waits, reply }, nowMs);
    });
  }

  /** Keeps an executor's leases alive. Returns those that are not its own (any more): it should stop them. */
  heartbeat(attemptIds: string[]): string[] {
    return this.#core === null ? attemptIds : heartbeat(this.#core.state, attemptIds, Date.now());
  }

  /** Stores pages of a group that is not open yet. Returns the group's number, to be passed with what follows. */
  stagePages(pages: Page[], staged: number | null): number | Refused {
    const refused = this.#refusal(Date.now());
    if (refused !== null || this.#core === null) return { ok: false, reason: refused ?? NOT_FOUND };
    return stagePages(this.#core, this.#store, pages, staged);
  }

  /** Opens a group with its (last) pages; its slots start as soon as permits and lanes allow. */
  openGroup(request: OpenGroupRequest, pages: Page[], staged: number | null): Promise<OpenGroupReply> {
    return this.#commits.submit<OpenGroupReply>((reply, nowMs) => {
      const core = this.#core;
      const refused = this.#refusal(nowMs);
      if (refused !== null || core === null) return reply({ ok: false, reason: refused ?? NOT_FOUND });
      reply(openGroup(core, this.#store, { request, pages, staged }, { nowMs, random: Math.random() }));
    });
  }

  /** A group's state, at once or when it has ended or `waitMs` (≤ 20 s) are over; null for no such group. */
  async waitGroup(seq: number, waitMs: number): Promise<GroupView | null> {
    await this.#until(() => this.#core?.open.has(seq) !== true, waitMs);
    return this.#core === null ? null : groupView(this.#core, this.#store, seq, Date.now());
  }

  /** Slots that have ended since `cursor`, in the order in which they did; waits up to `waitMs` for the first. */
  async endedSlots(seq: number, cursor: EndedReply["cursor"] | null, waitMs: number): Promise<EndedReply | null> {
    const from = cursor !== null && cursor.epoch === this.#epoch ? cursor.position : 0;
    await this.#until(() => {
      const group = this.#core?.state.groups.get(seq);
      return group === undefined || group.done || group.ended.length > from;
    }, waitMs);
    return this.#core === null ? null : endedSlots(this.#core, this.#store, { seq, from, epoch: this.#epoch });
  }

  /** A page of a group's slots in input order, from an index on, at most 2 MB of it. For groups that have ended. */
  results(seq: number, fromIndex: number): SlotView[] {
    return this.#core === null ? [] : resultsFrom(this.#store, seq, fromIndex);
  }

  /** Rows written by this instance: the cost that Cloudflare bills most for. */
  rowsWritten(): number {
    return this.#store.rowsWritten;
  }

  /** The one timer: ends leases whose executor is silent, ends the run when its time is over, starts missing lanes. */
  override async alarm(): Promise<void> {
    this.#alarmMs = null;
    const core = this.#core;
    if (core === null) return;
    await this.#commits.submit<void>((reply, nowMs) => {
      expireLeases(core.state, nowMs);
      if (nowMs >= core.settings.expiresAtMs) core.endQueued(EXPIRED, nowMs);
      reply();
    });
    const lanes = core.hasGroupWork ? core.missingLanes() : [];
    await Promise.all(lanes.map((lane) => laneOf(this.env, core.settings.id, lane).start(core.settings.id, lane)));
    if (this.#alarmMs === null) this.#armAlarm(Date.now());
  }

  #conclude(nowMs: number): void {
    const core = this.#core;
    if (core === null) return;
    const flush = this.#flushing;
    this.#flushing = false;
    core.conclude(nowMs, flush);
    if (core.state.lags) this.#flushLater();
    this.#armAlarm(nowMs);
    this.#armReady(nowMs);
    this.#sweepSoon();
  }

  /** An alarm that is set earlier than needed stays: setting it costs a row, and when it fires it is set again. */
  #armAlarm(nowMs: number): void {
    const core = this.#core;
    if (core === null) return;
    const atMs = core.nextAlarmMs(nowMs);
    if (atMs === null || (this.#alarmMs !== null && this.#alarmMs <= atMs)) return;
    this.#alarmMs = atMs;
    this.#store.setAlarm(atMs);
  }

  /** Settlements of single calls travel with the next commit; without one they are written after a moment. */
  #flushLater(): void {
    if (this.#flushTimer !== null) return;
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = null;
      this.#flushing = true;
      this.#commits.poke();
    }, SETTLE_LAG_MS);
  }

  /** Retries fall due and cool-downs end while callers wait here; the alarm is only for when this instance is gone. */
  #armReady(nowMs: number): void {
    const atMs = this.#core?.state.nextReadyMs(nowMs) ?? null;
    if (this.#readyTimer !== null && this.#readyTimer.atMs === atMs) return;
    if (this.#readyTimer !== null) clearTimeout(this.#readyTimer.handle);
    this.#readyTimer = null;
    if (atMs === null) return;
    const handle = setTimeout(() => {
      this.#readyTimer = null;
      this.#commits.poke();
    }, Math.max(0, atMs - nowMs));
    this.#readyTimer = { atMs, handle };
  }

  /** While anyone waits here, looks once a second for those who have waited long enough and leases that are over. */
  #sweepSoon(): void {
    const core = this.#core;
    if (this.#sweeping || core === null || core.waiting === 0) return;
    this.#sweeping = true;
    setTimeout(() => {
      this.#sweeping = false;
      this.#core?.sweep(Date.now());
      if ((this.#core?.state.nextLeaseEndMs() ?? Infinity) <= Date.now()) void this.alarm();
      this.#sweepSoon();
    }, SWEEP_MS);
  }

  #until(ready: () => boolean, waitMs: number): Promise<void> {
    const core = this.#core;
    if (core === null || ready()) return Promise.resolve();
    return new Promise((resolve) => {
      core.readers.wait(ready, resolve, Date.now() + Math.min(waitMs, LONG_POLL_MS));
      this.#sweepSoon();
    });
  }

  /** An attempt that this call was given before, in a reply that never arrived: it was not sent, so it costs nothing. */
  #returnUnheard(core: RunCore, attemptId: string, nowMs: number): void {
    const reason: Reason = { reason: "cancelled", message: "the permit did not reach its executor" };
    settle(core.state, attemptId, { kind: "failure", class: "rejected", reason, retryAfterMs: null, latencyMs: 0 }, nowMs);
  }

  #refuse(reason: Reason): AcquireReply {
    return { ok: false, reason, remainingNanoUsd: this.#core?.remainingNanoUsd ?? null };
  }

  /** Why the run may not start anything, or null. */
  #refusal(nowMs: number): Reason | null {
    if (this.#core === null) return NOT_FOUND;
    return nowMs >= this.#core.settings.expiresAtMs ? EXPIRED : null;
  }

  #document(core: RunCore): Document {
    const status = Date.now() >= core.settings.expiresAtMs ? "expired" : this.#store.status();
    return runDocumentOf(core.settings, status, core.state, core.groupCounts);
  }

  #mustBeOpen(): RunCore {
    if (this.#core === null) throw new Error("no such run");
    return this.#core;
  }

  #rebuild(): void {
    const settings = this.#store.settings();
    if (settings === null) return;
    const parsed = configOf(this.env);
    const config = parsed.ok ? parsed.config : { adminKey: null, signingKey: null, defaultModel: null, upstreams: [] };
    this.#core = new RunCore(this.#store, settings, config, { ms: Date.now(), random: Math.random });
  }
}

const NOT_FOUND: Reason = { reason: "not_found", what: "run" };
const EXPIRED: Reason = { reason: "invalid_api_key", message: "the run has expired; open another" };
const OVERLOADED: Reason = { reason: "overloaded", message: "too many calls wait in this run", retryAfterMs: 1_000 };
