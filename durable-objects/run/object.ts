/**
 * A run: one object that owns its money, permits and order. This file is its RPC surface, whose methods are described in
 * src/objects/methods/run-api.ts; the life of the object is in lifecycle.ts, the decisions are in src/run, the
 * rows in store/. It never fetches an upstream.
 */
import type { InFlightRule } from "../../src/contract/cancel-groups.ts";
import { DurableObject } from "cloudflare:workers";
import type { Amounts } from "../../src/run/money/ledger.ts";
import type { Quote } from "../../src/run/money/quote.ts";
import type { BudgetDocument, UsageDocument } from "../../src/contract/runs.ts";
import type { CallPage } from "../../src/run/queue/call-page.ts";
import { callIdOf, type ToolReport } from "../../src/run/log.ts";
import { gateChanged } from "../../src/run/steps/exchange.ts";
import type { Reason } from "../../src/errors.ts";
import type { RunMeter } from "../../src/gate/meters.ts";
import type { GateGrant } from "../../src/gate/wire.ts";
import type { CompiledGraph } from "../../src/run/graph/types.ts";
import { LONG_POLL_MS, OPENED_AT_ONCE_MAX } from "../../src/limits.ts";
import { inSlices, pause } from "../../src/text/bytes/slices.ts";
import type {
  AcquireReply,
  AcquireRequest,
  AcquireToolReply,
  SettleReply,
  SingleSettlement,
  ToolCallName,
  ToolCallRequest,
} from "../../src/objects/methods/calls.ts";
import type { CreditReport, CreditRequest } from "../../src/run/credit.ts";
import type { CreditReportReply, OpenCreditReply } from "../../src/objects/methods/credit.ts";
import type {
  AppendPlanReply,
  AppendPlanRequest,
  CancelGroupsReply,
  CancelGroupsRequest,
  ChangeGraphReply,
  ChangeGraphRequest,
  ClaimReply,
  EndedReply,
  GroupView,
  FloorReply,
  FloorRequest,
  PricedRequest,
  OpenGroupReply,
  RetryRequest,
  OpenGroupRequest,
  Settlement,
  SlotView,
  WorkerState,
} from "../../src/objects/methods/groups.ts";
import type { AppendReply, ClientEvent, LogPage } from "../../src/objects/methods/log.ts";
import type { ProviderClaim, ProviderGroup, ProviderSettlement } from "../../src/objects/methods/provider-batch.ts";
import type { PullDone, PullOfferCall, PullReply, PullRequest } from "../../src/objects/methods/pull.ts";
import type { AnswersToTake, AnswersWanted, NamedAnswer, ReplaySource } from "../../src/objects/methods/replay.ts";
import type { RunApi } from "../../src/objects/methods/run-api.ts";
import type { SearchReply, SearchRequest } from "../../src/objects/methods/search.ts";
import type {
  AnswerSettingsReply,
  CapacityWait,
  EndStatus,
  Figures,
  ListedChild,
} from "../../src/objects/methods/runs.ts";
import type {
  ModelRulesReply,
  OpenChildReply,
  PatchReply,
  RunInput,
  RunPatch,
} from "../../src/objects/methods/runs.ts";
import type { RunSettings, StoredDocument, TurnReport } from "../../src/objects/methods/runs.ts";
import type { IdempotencyKey, Refused } from "../../src/objects/methods/types.ts";
import type { Objects } from "../../src/objects/address.ts";
import { rootOf } from "./memory/root.ts";
import { acquire, acquireMany, lendCredit, noteBegun } from "./calls.ts";
import { settleSingle, takeCreditReport, UNKNOWN_ATTEMPT, withdraw } from "./calls.ts";
import { budgetDocumentOf, figuresOf, runDocumentOf } from "./document.ts";
import { endRun } from "./end.ts";
import { claim } from "./executors/claim.ts";
import { missingLanes } from "./executors/lanes.ts";
import { renewLeases } from "./executors/leases.ts";
import { queueLook, type QueueLook } from "../../src/run/steps/queue-look.ts";
import { slotNames } from "./groups/custom-ids.ts";
import { promptHead } from "./groups/prompt-head.ts";
import { cancelSlot, stopGroup, stopGroups } from "./groups/cancel.ts";
import { appendPlan } from "./groups/append-plan.ts";
import { confirmGroup } from "./groups/confirm.ts";
import { patchGraph } from "./groups/change-graph.ts";
import { addFloor } from "./groups/floors.ts";
import { refusalOfBatch } from "./groups/unpaid.ts";
import { charsOf, dropStaged, openedBy } from "./groups/open.ts";
import { stage } from "./requests/stage.ts";
import { openAndClaim } from "./groups/open-claimed.ts";
import { preparing, type Prepared } from "./groups/prepare.ts";
import { claimProviderPage, settleProviderPage } from "./groups/provider-pages.ts";
import { quotingGroup } from "./groups/quote.ts";
import { endedSlots, groupView, positionOf, resultsFrom, withWaits } from "./groups/read.ts";
import { readingRetried, retryGroup } from "./groups/retry-group.ts";
import { searchRun } from "./groups/search.ts";
import { giveAnswers } from "./replay/give.ts";
import { RunLifecycle } from "./lifecycle.ts";
import { offerItem, serveWorker } from "./pull.ts";
import { append } from "./requests/append-events.ts";
import { logPage } from "./log/read.ts";
import { acquireTool, endTool, renewToolPermit } from "./tool-calls.ts";
import { filesStored, roomForFile } from "./requests/files-stored.ts";
import type { RunState } from "./state.ts";
import { mayManage } from "./tree/may-manage.ts";
import { turnNow } from "./requests/turn-now.ts";
import { openChild } from "./requests/open-child.ts";

export class RunObject extends DurableObject<Objects> implements RunApi {
  readonly #life: RunLifecycle;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#life = new RunLifecycle(ctx, env);
  }

  override alarm(): Promise<void> {
    return this.#life.alarm.fire();
  }

  // ---- the run itself ----

  open(settings: RunSettings): StoredDocument | null {
    return this.#life.open(settings) ? runDocumentOf(this.#life.opened, Date.now()) : null;
  }

  document(caller: string | null): StoredDocument | null {
    const { run } = this.#life;
    if (caller === null) this.#life.reportLook();
    return mayManage(run, caller) ? runDocumentOf(run, Date.now()) : null;
  }

  queueLook(): QueueLook | null {
    const { run } = this.#life;
    return run === null ? null : queueLook(run.engine, Date.now());
  }

  figures(): Figures | null {
    const { run } = this.#life;
    return run === null ? null : figuresOf(run.children, run.engine.ledger);
  }

  childList(before: number, limit: number): ListedChild[] {
    const { run, store } = this.#life;
    return run === null ? [] : store.childrenBefore(before, limit).map(({ seq, id }) => ({ seq, id }));
  }

  budget(): BudgetDocument | null {
    const { run } = this.#life;
    return run === null ? null : budgetDocumentOf(run.engine.ledger);
  }

  answerSettings(): AnswerSettingsReply {
    const run = this.#life.active;
    if ("reason" in run) return { ok: false, reason: run };
    return { ok: true, errorStyle: run.settings.errorStyle, width: run.engine.width };
  }

  rootRun(): string | null {
    return this.#life.run === null ? null : rootOf(this.#life.run.settings);
  }

  modelRules(): ModelRulesReply {
    const run = this.#life.active;
    if ("reason" in run) return { ok: false, reason: run };
    const { models, defaultModel, unpriced } = run.settings;
    return { ok: true, rules: { models, defaultModel, unpriced } };
  }

  async patch(patch: RunPatch): Promise<PatchReply | null> {
    const { run } = this.#life;
    if (run === null) return null;
    await this.#life.recallCredits();
    const reason = await this.#life.patches.apply(run, patch);
    return reason === null ? { ok: true, document: runDocumentOf(run, Date.now()) } : { ok: false, reason };
  }

  async endAndWait(status: EndStatus, caller: string | null): Promise<StoredDocument | null> {
    const { run } = this.#life;
    if (!mayManage(run, caller)) return null;
    await this.end(status);
    await this.#life.until(() => run.isFinal, LONG_POLL_MS);
    // If the report fails, the alarm repeats it.
    await this.#life.report().catch(() => undefined);
    return runDocumentOf(run, Date.now());
  }

  end(status: EndStatus): Promise<boolean> {
    return this.#life.submit((reply, nowMs) => {
      const { run, store } = this.#life;
      if (run === null) {
        store.create();
        store.meta.set("status", status);
      } else endRun(run, status, nowMs);
      reply(run !== null);
    });
  }

  // ---- its children ----

  openChild(
    input: RunInput,
    id: string,
    idempotencyKey: IdempotencyKey | null = null,
    wait: CapacityWait | null = null,
  ): Promise<OpenChildReply> {
    return openChild(this.env, this.#life, input, { id, idempotencyKey, wait });
  }

  childEnded(id: string, spent: Amounts, overrun: Amounts | null = null): Promise<void> {
    return this.#life.childEnded(id, spent, overrun);
  }

  resizeChild(id: string, reservation: Amounts): Promise<Reason | null> {
    return this.#life.submit((reply) => {
      const run = this.#life.opened;
      const resized = run.children.resize(id, reservation);
      if (typeof resized !== "function") return reply(resized);
      run.addWrite(resized);
      reply(null);
    });
  }

  // ---- gates ----

  gateChanged(gate: string, grant: GateGrant): Promise<void> {
    return this.#life.ifOpened((run, nowMs) => gateChanged(run.engine, gate, grant, nowMs));
  }

  turnNow(): Promise<TurnReport | null> {
    return turnNow(this.#life, this.ctx.storage);
  }

  readMeters(gates: string[]): Promise<RunMeter[]> {
    return this.#life.meters.read(this.#life.run, gates);
  }

  // ---- single calls ----

  acquire(request: AcquireRequest, settlements: SingleSettlement[] = []): Promise<AcquireReply> {
    return this.#life.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      const run = this.#life.active;
      if (!("reason" in run)) return acquire(run, request, reply, nowMs);
      reply({ ok: false, reason: run, remainingNanoUsd: this.#life.run?.remainingNanoUsd ?? null });
    });
  }

  acquireMany(requests: AcquireRequest[], settlements: SingleSettlement[]): Promise<AcquireReply[]> {
    return this.#life.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      const run = this.#life.active;
      if (!("reason" in run)) return acquireMany(run, requests, reply, nowMs);
      const remainingNanoUsd = this.#life.run?.remainingNanoUsd ?? null;
      reply(requests.map(() => ({ ok: false, reason: run, remainingNanoUsd })));
    });
  }

  openCredit(request: CreditRequest): Promise<OpenCreditReply | null> {
    return this.#life.submit((reply, nowMs) => {
      const run = this.#life.active;
      reply("reason" in run ? null : lendCredit(run, request, nowMs));
    });
  }

  reportCredit(report: CreditReport, settlements: SingleSettlement[] = []): Promise<CreditReportReply> {
    return this.#life.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      const { run } = this.#life;
      // A run that is deleted has charged its credit: the instance that still holds it forgets it.
      const taken: CreditReportReply = run === null ? { kind: "ended" } : takeCreditReport(run, report, nowMs);
      reply({ ...taken, settles: true });
    });
  }

  withdraw(callId: string): Promise<void> {
    return this.#life.submit((reply, nowMs) => {
      if (this.#life.run !== null) withdraw(this.#life.run, callId, nowMs);
      this.#life.run?.capacityQueue.leave(callId);
      this.#life.run?.pullBoard.withdraw(callId);
      reply();
    });
  }

  withdrawMany(callIds: string[]): Promise<void> {
    return this.#life.submit((reply, nowMs) => {
      const { run } = this.#life;
      if (run !== null) for (const callId of callIds) withdraw(run, callId, nowMs);
      reply();
    });
  }

  settle(settlement: SingleSettlement): Promise<SettleReply> {
    return this.#life.submit((reply, nowMs) => reply(this.#settle(settlement, nowMs)));
  }

  settleMany(settlements: SingleSettlement[]): Promise<void> {
    return this.#life.submit((reply, nowMs) => {
      for (const settlement of settlements) this.#settle(settlement, nowMs);
      reply();
    });
  }

  #settle(settlement: SingleSettlement, nowMs: number): SettleReply {
    const { attemptId, stored } = settlement;
    const { run } = this.#life;
    if (run === null) return UNKNOWN_ATTEMPT;
    if (stored !== null) run.addWrite(() => this.#life.store.putStoredAnswer(stored));
    run.addSignal({ kind: "call", callId: callIdOf(attemptId), attemptId }, { type: "settled" });
    return settleSingle(run, settlement, nowMs);
  }

  storedAnswerAt(answerId: string): string | null {
    return this.#life.run === null ? null : this.#life.store.storedAnswerAt(answerId);
  }

  replaySource(caller: string | null): ReplaySource {
    const { run } = this.#life;
    return mayManage(run, caller) ? { records: run.replay !== null } : null;
  }

  recordedAnswers(wanted: AnswersWanted[]): (NamedAnswer[] | null)[] {
    return this.#life.run?.replay?.recordings.answersFor(wanted) ?? wanted.map(() => []);
  }

  takeAnswers(child: string, wanted: AnswersToTake[]): Promise<(NamedAnswer[] | null)[]> {
    return this.#life.submit((reply) => giveAnswers(this.#life.run?.replay ?? null, { child, wanted }, reply));
  }

  answerBegun(attemptId: string): Promise<void> {
    return this.#life.ifOpened((run, nowMs) => noteBegun(run, attemptId, nowMs));
  }

  heartbeat(attemptIds: string[]): string[] {
    return this.#life.run === null ? attemptIds : renewLeases(this.#life.run, attemptIds, Date.now());
  }

  // ---- groups and lanes ----

  stagePages(openKey: string, pages: CallPage[], bodyBytes = 0): Promise<Refused | null> {
    return stage(this.#life, { openKey, pages, bodyBytes });
  }

  refusalOfBatch(request: PricedRequest): Refused | null {
    const run = this.#life.active;
    return "reason" in run ? { ok: false, reason: run } : refusalOfBatch(run, request);
  }

  async addFloor(request: FloorRequest): Promise<FloorReply> {
    const run = this.#life.active;
    return "reason" in run ? { ok: false, reason: run } : await inSlices(addFloor(run, request), pause);
  }

  dropStaged(openKey: string): boolean {
    const { run, store } = this.#life;
    return run === null || dropStaged(run, store, openKey);
  }

  filesStored(bytes: number, isStored = false): Promise<Reason | null> {
    return filesStored(this.#life, bytes, isStored);
  }

  roomForFile(bytes: number): Promise<Reason | null> {
    return roomForFile(this.#life, bytes);
  }

  allowSpace(runId: string, neededBytes: number, isStored = false): number {
    return this.#life.run === null ? 0 : this.#life.store.space.allow(runId, neededBytes, isStored);
  }

  async openGroup(
    request: OpenGroupRequest,
    pages: CallPage[],
    capacity: number | null = null,
    graphJson: string | null = null,
  ): Promise<OpenGroupReply> {
    const graph: CompiledGraph | null = graphJson === null ? null : JSON.parse(graphJson);
    // A small one at once: what arrives together stays in one turn.
    const prepared = request.count > OPENED_AT_ONCE_MAX ? await this.#prepare(request, pages, graph) : null;
    const open = (reply: (answer: OpenGroupReply) => void, nowMs: number): void => {
      const run = this.#life.active;
      if (!("reason" in run))
        return openAndClaim(run, this.#life.store, { request, pages, capacity, graph, prepared }, reply, nowMs);
      this.dropStaged(request.openKey);
      reply({ ok: false, reason: run });
    };
    return await this.#life.withSpace(charsOf(pages), () => this.#life.submit(open));
  }

  /** Reads a large group in slices, before the turn that opens it; null = its run may not open it. */
  async #prepare(request: OpenGroupRequest, pages: CallPage[], graph: CompiledGraph | null): Promise<Prepared | null> {
    const run = this.#life.active;
    if ("reason" in run) return null;
    const asked = { request, graph, isService: false };
    return await inSlices(preparing(run, this.#life.store, asked, pages, Date.now()), pause);
  }

  async retryGroup(request: RetryRequest): Promise<OpenGroupReply> {
    await this.#life.growSpace(1);
    const { active: run, store } = this.#life;
    const reading = "reason" in run ? null : readingRetried(run, store, request.seq);
    const read = reading === null ? null : await inSlices(reading, pause);
    return this.#life.whileActive((state, rows, nowMs) => retryGroup(state, rows, { request, read }, nowMs));
  }

  async changeGraph(request: ChangeGraphRequest): Promise<ChangeGraphReply> {
    await this.#life.growSpace(1);
    return this.#life.whileActive((run, store, nowMs) => patchGraph(run, store, request, nowMs));
  }

  openedBy(key: IdempotencyKey): Promise<OpenGroupReply | null> {
    // A turn stores its changes before it replies, so the group that this finds survives a crash.
    return this.#life.submit((reply) => reply(openedBy(this.#life.opened, key)));
  }

  appendPlan(request: AppendPlanRequest): Promise<AppendPlanReply> {
    return this.#life.submit((reply, nowMs) => reply(appendPlan(this.#life.opened, this.#life.store, request, nowMs)));
  }

  graphJson(seq: number): string | null {
    return this.#life.run === null ? null : this.#life.store.groups.graphJson(seq);
  }

  slotNames(seq: number, from: number, limit: number): (string | null)[] | null {
    return this.#life.run === null ? null : slotNames(this.#life.store, seq, from, limit);
  }

  promptHead(seq: number, index: number): string | null {
    return this.#life.run === null ? null : promptHead(this.#life.store, seq, index);
  }

  cancelGroup(seq: number, inFlight: InFlightRule = "abort"): Promise<GroupView | null> {
    return this.#changeGroup(seq, (run, nowMs) => stopGroup(run, seq, inFlight, nowMs));
  }

  cancelGroups(request: CancelGroupsRequest): Promise<CancelGroupsReply> {
    return this.#life.submit((reply, nowMs) => reply(stopGroups(this.#life.run, this.#life.store, request, nowMs)));
  }

  confirmGroup(seq: number): Promise<GroupView | null> {
    return this.#changeGroup(seq, (run, nowMs) => confirmGroup(run, this.#life.store, seq, nowMs));
  }

  async #changeGroup(seq: number, change: (run: RunState, nowMs: number) => void): Promise<GroupView | null> {
    await this.#life.ifOpened(change);
    return this.#groupView(seq);
  }

  async cancelSlot(seq: number, index: number): Promise<GroupView | null> {
    const exists = await this.#life.submit<boolean>((reply, nowMs) =>
      reply(this.#life.run !== null && cancelSlot(this.#life.run, { seq, index }, nowMs)),
    );
    return exists ? this.#groupView(seq) : null;
  }

  quote(models: (string | null)[], pages: CallPage[]): Promise<Quote[] | Refused> {
    return inSlices(quotingGroup(this.#life.active, models, pages, Date.now()), pause);
  }

  settleAndClaim(
    executor: number,
    settlements: Settlement[],
    capacity: number,
    waits: boolean,
    worker: WorkerState | null = null,
    reach: number | null = null,
  ): Promise<ClaimReply> {
    return this.#life.submit((reply, nowMs) => {
      const run = this.#life.opened;
      const { reach: reachBefore } = run.laneStarts;
      claim(run, { executor, settlements, capacity, waits, worker, reach }, reply, nowMs);
      // Lanes take over what the Worker has left, even if it cannot start them any more, what a retired lane does not claim, or
      // what a lane cannot reach.
      const needsOthers = (): boolean =>
        (run.laneLives.isRetired(executor) || (worker === null && run.laneStarts.reach < reachBefore)) &&
        run.hasGroupWork &&
        missingLanes(run).length > 0;
      if (worker?.leaves === true || needsOthers()) run.laneStarts.need();
    });
  }

  claimProviderPage(seq: number, page: number): Promise<ProviderClaim> {
    return this.#life.inTurn((run, store, nowMs) => claimProviderPage(run, store, { seq, page }, nowMs));
  }

  settleProviderPage(seq: number, settlement: ProviderSettlement): Promise<ProviderGroup> {
    return this.#life.inTurn((run, store, nowMs) => settleProviderPage(run, store, seq, settlement, nowMs));
  }

  async waitGroup(seq: number, waitMs: number): Promise<GroupView | null> {
    this.#life.groupAsked(seq);
    await this.#life.until(() => this.#life.run?.openGroups.has(seq) !== true, waitMs);
    return this.#groupView(seq);
  }

  async endedSlots(seq: number, cursor: EndedReply["cursor"] | null, waitMs: number): Promise<EndedReply | null> {
    this.#life.groupAsked(seq);
    await this.#life.until(() => {
      const group = this.#life.run?.engine.groups.get(seq);
      return group === undefined || group.done || group.ended.length > positionOf(cursor, this.#life.opened.epoch);
    }, waitMs);
    const { run, store } = this.#life;
    return run === null ? null : endedSlots(run, store, { seq, cursor });
  }

  results(seq: number, fromIndex: number): SlotView[] {
    const { run, store } = this.#life;
    return run === null ? [] : withWaits(run, seq, resultsFrom(run, store, seq, fromIndex), Date.now());
  }

  #groupView(seq: number): GroupView | null {
    const { run, store } = this.#life;
    return run === null ? null : groupView(run, store, seq, Date.now());
  }

  // ---- tools ----

  acquireTool(call: ToolCallRequest): Promise<AcquireToolReply> {
    return this.#life.submit((reply, nowMs) => {
      const run = this.#life.active;
      if (!("reason" in run)) return acquireTool(run, call, reply, nowMs);
      reply({ ok: false, reason: run, remainingNanoUsd: this.#life.run?.remainingNanoUsd ?? null });
    });
  }

  heartbeatTool(call: ToolCallName): boolean {
    return this.#life.run !== null && renewToolPermit(this.#life.run, call, Date.now());
  }

  async endTool(callId: string, report: ToolReport | null): Promise<void> {
    await this.#life.ifOpened((run, nowMs) => endTool(run, callId, report, nowMs));
    // The log is the only record of the call, so it is made durable before the reply.
    await this.#life.flushLog();
  }

  // ---- pull workers ----

  pullOffer(offer: PullOfferCall, waitMs: number): Promise<PullReply> {
    return offerItem(this.#life.opened, offer, waitMs, (ready, ms) => this.#life.until(ready, ms));
  }

  async pull(request: PullRequest, caller: string | null): Promise<PullDone | Refused | null> {
    const { run } = this.#life;
    return mayManage(run, caller) ? serveWorker(run, request, (ready, ms) => this.#life.until(ready, ms)) : null;
  }

  // ---- the log ----

  async logPage(after: number, caller: string | null, isFollower = false): Promise<LogPage | null> {
    if (!mayManage(this.#life.run, caller)) return null;
    await this.#life.flushLog();
    return logPage(this.#life, isFollower, after);
  }

  async appendLog(events: ClientEvent[], caller: string | null): Promise<AppendReply | null> {
    return await append(this.#life, events, () => mayManage(this.#life.run, caller));
  }

  override fetch({ url }: Request): Response {
    const { pathname, searchParams } = new URL(url);
    const isFollower = pathname === "/follow";
    const { run, followers } = this.#life;
    const socket = run === null ? null : isFollower ? followers.accept(searchParams) : this.#life.acceptOwner(url);
    return socket === null
      ? new Response(null, { status: isFollower && run !== null ? 429 : 503 })
      : new Response(null, { status: 101, webSocket: socket });
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#life.messageArrived(socket, message);
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#life.socketClosed(socket, code);
  }

  override webSocketError(socket: WebSocket): void {
    this.#life.socketClosed(socket, LOST_CODE);
  }

  // ---- search ----

  async searchTexts(request: SearchRequest, caller: string | null): Promise<SearchReply | null> {
    return mayManage(this.#life.run, caller) ? await searchRun(this.#life, request) : null;
  }

  // ---- counters ----

  async usage(caller: string | null, reset: boolean): Promise<UsageDocument | null> {
    if (!mayManage(this.#life.run, caller)) return null;
    const used = this.#life.run.counters.usage();
    if (reset) await this.#life.change((run) => run.resetUsage());
    return used;
  }

  async resetStats(caller: string | null): Promise<StoredDocument | null> {
    if (!mayManage(this.#life.run, caller)) return null;
    await this.#life.change((run) => run.resetStats());
    return runDocumentOf(this.#life.opened, Date.now());
  }

  async flushWindow(caller: string | null): Promise<boolean> {
    if (!mayManage(this.#life.run, caller)) return false;
    // In a turn of its own: a group that waited for nothing but its window ends with it.
    await this.#life.change((run) => run.engine.window.flush());
    return true;
  }

  rowsWritten(): { all: number; log: number; read: number } {
    const { store } = this.#life;
    return { all: store.rowsWritten, log: store.log.written, read: store.rowsRead };
  }
}

/** What a socket closes with that breaks, in the words of the WebSocket protocol. */
const LOST_CODE = 1_006;
