/**
 * A run: one object that owns its money, permits and order. This file is its RPC surface; the turns and timers behind it
 * are in shell.ts and core.ts, the decisions in src/engine and src/budget, the rows in store.ts. It never fetches an
 * upstream. Every method is safe to repeat: attempts settle once, by id.
 */
import type { Amounts } from "../../src/budget/ledger.ts";
import type { Quote } from "../../src/budget/quote.ts";
import type { Outcome } from "../../src/call.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { BudgetDocument } from "../../src/contract/runs.ts";
import type { Page } from "../../src/engine/page.ts";
import { heartbeat, settle } from "../../src/engine/settle.ts";
import type { Reason } from "../../src/errors.ts";
import { LANE_SLOTS, LONG_POLL_MS } from "../../src/limits.ts";
import { runOf } from "../address.ts";
import { budgetDocumentOf, figuresOf, runDocumentOf, type Figures, type StoredDocument } from "./document.ts";
import type { RunAsked } from "./inherit.ts";
import { endRun } from "./end.ts";
import { mayManage } from "./observed.ts";
import { patchRun, resizeChild, type RunPatch } from "./patch.ts";
import { endedSlots, groupView, resultsFrom } from "./read.ts";
import type * as Rpc from "./rpc.ts";
import type { EndStatus, RunSettings } from "./settings.ts";
import { acquire, settleSingle, withdraw } from "./single.ts";
import { openGroup, quoteGroup, stagePages } from "./stage.ts";
import { ToolCallingRun } from "./tool-calling.ts";
import { addChild, namedChild, notOpened } from "./tree.ts";

export class RunObject extends ToolCallingRun {
  // ---- the run itself ----

  /** Opens the run. Opening it again changes nothing and tells what is there; null when it was ended before it began. */
  open(settings: RunSettings): StoredDocument | null {
    return this.shell.open(settings) ? runDocumentOf(this.shell.opened, Date.now()) : null;
  }

  /** The run's document; null when there is no such run, or `caller` (a run id; null = the operator) may not see it. */
  document(caller: string | null): StoredDocument | null {
    const core = this.shell.core;
    if (!mayManage(core, caller)) return null;
    return runDocumentOf(core, Date.now());
  }

  /** What the run itself has spent and has in flight, USD as decimals, and its open children; null for no such run. */
  figures(): Figures | null {
    return this.shell.core === null ? null : figuresOf(this.shell.core);
  }

  /** What is left of the run's budget, in four numbers per dimension. */
  budget(): BudgetDocument | null {
    return this.shell.core === null ? null : budgetDocumentOf(this.shell.core.state.ledger);
  }

  /** What a route must know of the run before it can answer a batch, or why the run takes none. */
  answerSettings(): { ok: true; errorStyle: ErrorStyle; width: number } | Rpc.Refused {
    const core = this.shell.active;
    if ("reason" in core) return { ok: false, reason: core };
    return { ok: true, errorStyle: core.settings.errorStyle, width: core.state.width };
  }

  /** Changes limits, width or pause, and with the limits what is held for the run. Null when there is no such run. */
  async patch(patch: RunPatch): Promise<{ ok: true; document: StoredDocument } | Rpc.Refused | null> {
    const { core } = this.shell;
    if (core === null) return null;
    const reason = await core.patches.take(() => patchRun(this.shell, core, this.env, patch));
    if (reason !== null) return { ok: false as const, reason };
    return { ok: true as const, document: runDocumentOf(core, Date.now()) };
  }

  /**
   * Ends the run, waits up to 20 s until nothing of it can spend any more, and has its holder told what it spent. Null
   * when there is no such run or `caller` may not end it.
   */
  async endAndWait(status: EndStatus, caller: string | null): Promise<StoredDocument | null> {
    const core = this.shell.core;
    if (!mayManage(core, caller)) return null;
    await this.end(status);
    await this.shell.until(() => core.isFinal, LONG_POLL_MS);
    await this.shell.report().catch(() => undefined);
    return runDocumentOf(core, Date.now());
  }

  /** Ends the run. False when it was never opened; then it never will be. */
  end(status: EndStatus): Promise<boolean> {
    return this.shell.submit((reply, nowMs) => {
      if (this.shell.core === null) {
        this.shell.store.create();
        this.shell.store.putStatus(status);
      }
      if (this.shell.core !== null) endRun(this.shell.core, this.shell.store, status, nowMs);
      reply(this.shell.core !== null);
    });
  }

  // ---- its children ----

  /**
   * Opens a child run: its whole budget is set aside here before its object exists. Under a key that has opened one, that
   * child is told, as it is now.
   */
  async openChild(asked: RunAsked, id: string, named: Rpc.Named | null = null): Promise<Rpc.OpenChildReply> {
    const added = await this.shell.submit<ReturnType<typeof addChild>>((reply, nowMs) => {
      const core = this.shell.active;
      if ("reason" in core) return reply({ ok: false, reason: core });
      const before = named === null ? null : namedChild(core, named);
      reply(before ?? addChild(core, asked, { id, named }, nowMs));
    });
    if (!added.ok) return added;
    const replayed = added.settings === null;
    const child = runOf(this.env, added.id);
    let document = added.settings === null ? await child.document(null) : await child.open(added.settings);
    if (document === null && replayed) {
      // The key's first request may still be on its way.
      await this.shell.until(() => !this.shell.opened.children.isOpening(added.id), LONG_POLL_MS);
      document = await child.document(null);
    }
    if (document === null) return { ok: false, reason: notOpened(this.shell.opened, added.id) };
    await this.shell.write((core) => core.children.confirm(added.id));
    return { ok: true, document, replayed };
  }

  /** A child has ended and spent this much of what it held. Counts once. */
  async childEnded(id: string, spent: Amounts): Promise<void> {
    await this.shell.childEnded(id, spent);
  }

  /** A child's limits change: what it holds changes first when they rise, last when they fall. Null, or why it may not. */
  resizeChild(id: string, hold: Amounts): Promise<Reason | null> {
    return this.shell.submit((reply) => {
      const core = this.shell.opened;
      const resized = resizeChild(core, id, hold);
      if (typeof resized !== "function") return reply(resized);
      core.writes.push(resized);
      reply(null);
    });
  }

  // ---- single calls ----

  /** Asks for the permit of a single call; waits for it up to 20 s, then says `wait`. Settles first what comes with it. */
  acquire(request: Rpc.AcquireRequest, settlements: Rpc.SingleSettlement[] = []): Promise<Rpc.AcquireReply> {
    return this.shell.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      const core = this.shell.active;
      if (!("reason" in core)) return acquire(core, request, reply, nowMs);
      reply({ ok: false, reason: core, remainingNanoUsd: this.shell.core?.remainingNanoUsd ?? null });
    });
  }

  /** Takes back a single call whose client has gone before it had its permit. */
  withdraw(callId: string): Promise<void> {
    return this.shell.submit((reply, nowMs) => {
      if (this.shell.core !== null) withdraw(this.shell.core, callId, nowMs);
      reply();
    });
  }

  /** Records what a single call's attempt ended as, and where its answer is kept, if the upstream keeps it. */
  settle(attemptId: string, outcome: Outcome, kept: Rpc.KeptAnswer | null = null): Promise<Rpc.SettleReply> {
    return this.shell.submit((reply, nowMs) => reply(this.#settle({ attemptId, outcome, kept }, nowMs)));
  }

  /** The same for several whose Workers do not wait for what it told. */
  settleMany(settlements: Rpc.SingleSettlement[]): Promise<void> {
    return this.shell.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      reply();
    });
  }

  #settle({ attemptId, outcome, kept }: Rpc.SingleSettlement, nowMs: number): Rpc.SettleReply {
    const core = this.shell.opened;
    if (kept !== null) core.writes.push(() => this.shell.store.putKept(kept));
    return settleSingle(core, attemptId, outcome, nowMs);
  }

  /** The upstream that keeps an answer of this run's; null for no such answer. */
  keptAt(answerId: string): string | null {
    return this.shell.core === null ? null : this.shell.store.keptAt(answerId);
  }

  /** What decides on the models that this run may ask for, or why it may ask none. */
  modelRules(): Rpc.ModelRulesReply {
    const core = this.shell.active;
    if ("reason" in core) return { ok: false, reason: core };
    const { models, defaultModel, unpriced } = core.settings;
    return { ok: true, rules: { models, defaultModel, unpriced } };
  }

  /** Keeps an executor's leases alive. Returns those that are not its own (any more): it should stop them. */
  heartbeat(attemptIds: string[]): string[] {
    return this.shell.core === null ? attemptIds : heartbeat(this.shell.core.state, attemptIds, Date.now());
  }

  // ---- groups and lanes ----

  /** Stores pages of a group that the request named `openKey` will open. Null, or why it may not. */
  stagePages(openKey: string, pages: Page[]): Rpc.Refused | null {
    const core = this.shell.active;
    if ("reason" in core) return { ok: false, reason: core };
    stagePages(core, this.shell.store, { openKey, pages }, Date.now());
    return null;
  }

  /**
   * Opens a group with its (last) pages; its slots start as soon as permits and lanes allow. The same request, or one
   * with the same Idempotency-Key, finds the group that the first has opened.
   */
  openGroup(request: Rpc.OpenGroupRequest, pages: Page[]): Promise<Rpc.OpenGroupReply> {
    return this.shell.submit((reply, nowMs) => {
      const core = this.shell.active;
      if ("reason" in core) return reply({ ok: false, reason: core });
      reply(openGroup(core, this.shell.store, { request, pages }, nowMs));
    });
  }

  /** Cancels a group: what is queued never starts, what runs is given up. Its state then; null for no such group. */
  async cancelGroup(seq: number): Promise<Rpc.GroupView | null> {
    await this.shell.submit<void>((reply, nowMs) => {
      this.shell.core?.cancel(seq, "the group was cancelled", nowMs);
      reply();
    });
    return this.shell.core === null ? null : groupView(this.shell.core, this.shell.store, seq, Date.now());
  }

  /** Cancels one slot of a group. The group's state then; null for no such group or slot. */
  async cancelSlot(seq: number, index: number): Promise<Rpc.GroupView | null> {
    const known = await this.shell.submit<boolean>((reply, nowMs) =>
      reply(this.shell.core?.cancelSlot(seq, index, "the slot was cancelled", nowMs) === true),
    );
    const { core } = this.shell;
    return core === null || !known ? null : groupView(core, this.shell.store, seq, Date.now());
  }

  /** What the slots of a group would cost, in order; `models` is the list that the pages' facts refer to. */
  quote(models: (string | null)[], pages: Page[]): Quote[] | Rpc.Refused {
    const core = this.shell.active;
    return "reason" in core ? { ok: false, reason: core } : quoteGroup(core, models, pages);
  }

  /**
   * A lane's one call: settles what ended and takes attempts until it has `capacity` of them. With `waits`, a call that
   * gets none waits for some up to 20 s.
   */
  settleAndClaim(
    lane: number,
    settlements: Rpc.Settlement[],
    capacity: number,
    waits: boolean,
  ): Promise<Rpc.ClaimReply> {
    return this.shell.submit((reply, nowMs) => {
      const core = this.shell.opened;
      for (const { attemptId, outcome } of settlements) settle(core.state, attemptId, outcome, nowMs);
      // What the lane is lent is counted here: an older call's reply may still be on its way to it.
      const held = core.state.shards.get(lane)?.leases.size ?? 0;
      core.lanes.wait(lane, { want: Math.min(capacity, LANE_SLOTS) - held, waits, reply }, nowMs);
    });
  }

  /** A group's state, at once or when it has ended or `waitMs` (≤ 20 s) are over; null for no such group. */
  async waitGroup(seq: number, waitMs: number): Promise<Rpc.GroupView | null> {
    this.shell.core?.followed(seq, Date.now());
    await this.shell.until(() => this.shell.core?.open.has(seq) !== true, waitMs);
    return this.shell.core === null ? null : groupView(this.shell.core, this.shell.store, seq, Date.now());
  }

  /** Slots that have ended since `cursor`, in the order in which they did; waits up to `waitMs` for the first. */
  async endedSlots(
    seq: number,
    cursor: Rpc.EndedReply["cursor"] | null,
    waitMs: number,
  ): Promise<Rpc.EndedReply | null> {
    this.shell.core?.followed(seq, Date.now());
    const from = cursor !== null && cursor.epoch === this.shell.core?.epoch ? cursor.position : 0;
    await this.shell.until(() => {
      const group = this.shell.core?.state.groups.get(seq);
      return group === undefined || group.done || group.ended.length > from;
    }, waitMs);
    return this.shell.core === null
      ? null
      : endedSlots(this.shell.core, this.shell.store, { seq, from, epoch: this.shell.core.epoch });
  }

  /** A page of a group's slots in input order, from an index on; of one that runs, as far as each slot has come. */
  results(seq: number, fromIndex: number): Rpc.SlotView[] {
    return this.shell.core === null ? [] : resultsFrom(this.shell.core, this.shell.store, seq, fromIndex);
  }

  override alarm(): Promise<void> {
    return this.shell.alarm();
  }
}
