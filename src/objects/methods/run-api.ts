/**
 * The methods of a run object, which Workers, lanes, batches and other runs call over RPC. Every method is safe to repeat:
 * attempts settle once, by id; groups and children open once, by key. `caller` is the id of the calling run, null for
 * the operator; a run may be read, closed and cancelled by itself and by its ancestors.
 */
import type { InFlightRule } from "../../contract/cancel-groups.ts";
import type { Amounts } from "../../run/money/ledger.ts";
import type { PullDone, PullOfferCall, PullReply, PullRequest } from "./pull.ts";
import type { Quote } from "../../run/money/quote.ts";
import type { BudgetDocument, UsageDocument } from "../../contract/runs.ts";
import type { CallPage } from "../../run/queue/call-page.ts";
import type { CreditReport, CreditRequest } from "../../run/credit.ts";
import type { CreditReportReply, OpenCreditReply } from "./credit.ts";
import type { ToolReport } from "../../run/log.ts";
import type { Reason } from "../../errors.ts";
import type { RunMeter } from "../../gate/meters.ts";
import type { GateGrant } from "../../gate/wire.ts";
import type {
  AcquireReply,
  AcquireRequest,
  AcquireToolReply,
  SettleReply,
  SingleSettlement,
  ToolCallName,
  ToolCallRequest,
} from "./calls.ts";
import type {
  AppendPlanReply,
  AppendPlanRequest,
  ChangeGraphReply,
  ChangeGraphRequest,
  CancelGroupsReply,
  CancelGroupsRequest,
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
} from "./groups.ts";
import type { AppendReply, ClientEvent, LogPage } from "./log.ts";
import type { ProviderClaim, ProviderGroup, ProviderSettlement } from "./provider-batch.ts";
import type { AnswersToTake, AnswersWanted, NamedAnswer, ReplaySource } from "./replay.ts";
import type {
  AnswerSettingsReply,
  CapacityWait,
  EndStatus,
  Figures,
  ListedChild,
  ModelRulesReply,
  OpenChildReply,
  PatchReply,
  RunInput,
  RunPatch,
  RunSettings,
  StoredDocument,
  TurnReport,
} from "./runs.ts";
import type { SearchReply, SearchRequest } from "./search.ts";
import type { QueueLook } from "../../run/steps/queue-look.ts";
import type { IdempotencyKey, Refused } from "./types.ts";

export interface RunApi extends Rpc.DurableObjectBranded {
  // ---- the run itself ----

  /** Opens the run. A repeated call changes nothing and returns the document; null if the run was ended before it opened. */
  open(settings: RunSettings): StoredDocument | null;

  /** The run's document; null if there is no such run, or `caller` may not see it. */
  document(caller: string | null): StoredDocument | null;

  /** Its calls that have not ended and what they wait for; null if there is no such run. */
  queueLook(): QueueLook | null;

  /** What the run itself has spent and has in flight, and its open children; null if there is no such run. */
  figures(): Figures | null;

  /** Up to `limit` child runs of numbers below `before`, the newest first, whether they have ended or not. */
  childList(before: number, limit: number): ListedChild[];

  /** Limit, spent, reserved and remaining of each dimension; null if there is no such run. */
  budget(): BudgetDocument | null;

  /** What a route must know of the run before it can answer a batch, or why the run takes none. */
  answerSettings(): AnswerSettingsReply;

  /** Which models the run may request, or why it may request none. */
  modelRules(): ModelRulesReply;

  /** The root of the tree that the run belongs to: itself, if it has no parent. Null = there is no such run. */
  rootRun(): string | null;

  /** Changes limits, width or pause, and with the limits the reservation at the run's holder; null if there is no such run. */
  patch(patch: RunPatch): Promise<PatchReply | null>;

  /**
   * Ends the run, waits up to 20 s until nothing of it can spend any more, and reports to its holder what it spent. Null
   * if there is no such run, or `caller` may not end it.
   */
  endAndWait(status: EndStatus, caller: string | null): Promise<StoredDocument | null>;

  /** Ends the run. False if it was never opened; then it never will be. */
  end(status: EndStatus): Promise<boolean>;

  // ---- its children ----

  /**
   * Opens a child run: the child's whole budget is reserved here before its object exists. If the Idempotency-Key has
   * opened a child before, the reply is that child as it is now. `wait`: the request may wait until there is room; null = it
   * is refused as a call is that the budget does not cover.
   */
  openChild(
    input: RunInput,
    id: string,
    idempotencyKey?: IdempotencyKey | null,
    wait?: CapacityWait | null,
  ): Promise<OpenChildReply>;

  /**
   * A child has ended and spent this much of its reservation. Counts once.
   * @param overrun What upstreams have billed it above its reservations: no more than that counts here above what was reserved for
   *   it.
   */
  childEnded(id: string, spent: Amounts, overrun: Amounts | null): Promise<void>;

  /** Changes a child's reservation: raised before its limits rise, lowered after they fall. Null, or why it is refused. */
  resizeChild(id: string, reservation: Amounts): Promise<Reason | null>;

  // ---- gates ----

  /** A gate has changed: this grant replaces the run's last one there, and the run exchanges at once. Repeating it changes nothing. */
  gateChanged(gate: string, grant: GateGrant): Promise<void>;

  /** Does a turn and the jobs of the alarm at once, and reports what has changed; null if there is no such run. */
  turnNow(): Promise<TurnReport | null>;

  /** What the run has counted at each of these gates; empty = it was never opened, or is deleted. All of it is stored. */
  readMeters(gates: string[]): Promise<RunMeter[]>;

  // ---- single calls ----

  /** Requests the permit of a single call and waits for it for a moment, then returns `wait`: its Worker waits at a socket. Applies `settlements` first. */
  acquire(request: AcquireRequest, settlements?: SingleSettlement[]): Promise<AcquireReply>;

  /**
   * Requests the permits of several single calls, and does not wait: `wait` = request it again with `acquire`. The replies
   * are in the order of the requests. Applies `settlements` first.
   */
  acquireMany(requests: AcquireRequest[], settlements: SingleSettlement[]): Promise<AcquireReply[]>;

  /** Lends a part of the budget and the width to an instance of the gateway; null if the run has ended. */
  openCredit(request: CreditRequest): Promise<OpenCreditReply | null>;

  /** Takes in what an instance has started inside its credit. The same report twice changes nothing. Applies `settlements` first. */
  reportCredit(report: CreditReport, settlements?: SingleSettlement[]): Promise<CreditReportReply>;

  /** Withdraws a single call, a request for a child run, or the item of an attempt, by id: nobody waits for it any more. */
  withdraw(callId: string): Promise<void>;

  /** Withdraws several single calls, whose clients have left at the same time. */
  withdrawMany(callIds: string[]): Promise<void>;

  /** Records what a single call's attempt ended as. */
  settle(settlement: SingleSettlement): Promise<SettleReply>;

  /** The same for several attempts whose Workers do not need the replies. */
  settleMany(settlements: SingleSettlement[]): Promise<void>;

  /** The upstream that stores an answer of this run's; null if there is no such answer. */
  storedAnswerAt(answerId: string): string | null;

  /** Renews the leases of an executor without a socket. Returns those that are not the executor's any more: it should stop their attempts. */
  heartbeat(attemptIds: string[]): string[];

  /** Whether the run records answers, for a run that is to replay them. */
  replaySource(caller: string | null): ReplaySource;

  /** Recorded answers, for a run that replays them, in the order of what it wants; null = request it again. */
  recordedAnswers(wanted: AnswersWanted[]): (NamedAnswer[] | null)[];

  /**
   * Recorded answers for calls of a child run, which they have had from now on: up to one for each call, in the order of what is
   * wanted; null = request it again. A call that asks again has its answer again.
   */
  takeAnswers(child: string, wanted: AnswersToTake[]): Promise<(NamedAnswer[] | null)[]>;

  // ---- groups and lanes ----

  /**
   * Stores pages of a group that the request `openKey` will open. Null, or why they are refused.
   * @param bodyBytes What of the group is in R2 by now; absent = nothing of it.
   */
  stagePages(openKey: string, pages: CallPage[], bodyBytes?: number): Promise<Refused | null>;

  /** Why a batch of many calls would be refused by its opening, as far as its facts tell; null = they do not. Notes nothing. */
  refusalOfBatch(request: PricedRequest): Refused | null;

  /** Adds pages to the floor of a batch, before they are stored. Stores nothing; a run that has ended refuses. */
  addFloor(request: FloorRequest): Promise<FloorReply>;

  /**
   * The run's files, uploads, contexts and batches have so many bytes by now, with what is to be stored. Null, or why there is no room for
   * more. `isStored`: all of it is there already, and counts in any case; default: false.
   */
  filesStored(bytes: number, isStored?: boolean): Promise<Reason | null>;

  /** Why a file of so many bytes, which is not uploaded yet, has no room; null = it has now. Notes nothing. */
  roomForFile(bytes: number): Promise<Reason | null>;

  /**
   * Of a root run: what a descendant may store beyond its floor from now on, if it needs so much. Needs 0: it was deleted. `isStored`: it has
   * stored as much already, and is allowed it in any case; default: false.
   */
  allowSpace(runId: string, neededBytes: number, isStored?: boolean): number;

  /** Drops the stored pages of a group that will not be opened. False: it is open, and keeps its pages. */
  dropStaged(openKey: string): boolean;

  /**
   * Opens a group with its (last) pages; its slots start as soon as permits and lanes allow. The same request, or one
   * with the same Idempotency-Key, finds the group that the first has opened. With `capacity`, the caller executes the
   * group and claims so many attempts at once; the Worker that finds another's group by its key does not. With `graphJson`, a
   * compiled graph, its slots depend on each other, and its pages have one call for each task.
   */
  openGroup(
    request: OpenGroupRequest,
    pages: CallPage[],
    capacity?: number | null,
    graphJson?: string | null,
  ): Promise<OpenGroupReply>;

  /** The reply to a request whose key has opened a group before; null = it has opened none. Opens nothing. */
  openedBy(key: IdempotencyKey): Promise<OpenGroupReply | null>;

  /**
   * Opens a group that has ended once more, as a new one. Slots that completed keep their outputs, at no cost. The same
   * request, by its key, finds the group that it has opened.
   */
  retryGroup(request: RetryRequest): Promise<OpenGroupReply>;

  /** Changes a graph that runs, all or nothing; what its change lets start is queued. The reply leaves when it is stored. */
  changeGraph(request: ChangeGraphRequest): Promise<ChangeGraphReply>;

  /** Adds the next part of a plan to its graph, which was opened with the first. A part without tasks keeps the plan open. */
  appendPlan(request: AppendPlanRequest): Promise<AppendPlanReply>;

  /** The compiled graph of a group, as JSON; null if it has none. */
  graphJson(seq: number): string | null;

  /** Ids that the client gave to the slots of a group, from an index on, null for those without; null if there is no such group. */
  slotNames(seq: number, from: number, limit: number): (string | null)[] | null;

  /** The beginning of the prompt of a slot's call; null if it has none, or its body is in R2. */
  promptHead(seq: number, index: number): string | null;

  /**
   * Cancels a group: queued slots never start, running ones are aborted or end by themselves. Its state afterwards; null if there
   * is no such group.
   */
  cancelGroup(seq: number, inFlight?: InFlightRule): Promise<GroupView | null>;

  /** The same for many groups; repeated, it says how they are by then. */
  cancelGroups(request: CancelGroupsRequest): Promise<CancelGroupsReply>;

  /** Lets a group start that awaits its confirmation; any other stays as it is. Its state afterwards; null if there is no such group. */
  confirmGroup(seq: number): Promise<GroupView | null>;

  /** Cancels one slot. The group's state afterwards; null if there is no such group or slot. */
  cancelSlot(seq: number, index: number): Promise<GroupView | null>;

  /** What the slots of a group would cost, in order; `models` is the list that the pages' facts refer to. */
  quote(models: (string | null)[], pages: CallPage[]): Promise<Quote[] | Refused>;

  /**
   * An executor's one call: settles what has ended and takes attempts until the executor has `capacity` of them. With
   * `waits`, a call that gets none waits for some up to 20 s. `executor` is the number of a lane, or of a group's Worker,
   * which says `worker` of itself, gets attempts of its group only, and waits for the group's end as well. `reach`: how many
   * calls a lane that was full can have in flight at once.
   */
  settleAndClaim(
    executor: number,
    settlements: Settlement[],
    capacity: number,
    waits: boolean,
    worker?: WorkerState | null,
    reach?: number | null,
  ): Promise<ClaimReply>;

  /**
   * Claims a page of a group's slots for a batch of their provider, or returns it as it is by now: one call of one model each.
   */
  claimProviderPage(seq: number, page: number): Promise<ProviderClaim>;

  /** Settles answers of such a page. Those of slots that have ended change nothing. */
  settleProviderPage(seq: number, settlement: ProviderSettlement): Promise<ProviderGroup>;

  /** The answer of an attempt has begun for whose prompt others wait: they may start. */
  answerBegun(attemptId: string): Promise<void>;

  /** A group's state, at once or when it has ended or `waitMs` (at most 20 s) are over; null if there is no such group. */
  waitGroup(seq: number, waitMs: number): Promise<GroupView | null>;

  /** Slots that have ended since `cursor`, in the order in which they did; waits up to `waitMs` for the first. */
  endedSlots(seq: number, cursor: EndedReply["cursor"] | null, waitMs: number): Promise<EndedReply | null>;

  /** A page of a group's slots in input order, from an index on; of a running group, each slot's present state. */
  results(seq: number, fromIndex: number): SlotView[];

  // ---- tools ----

  /** Requests the permit of a tool call and waits for it for a moment, then returns `wait`: its Worker waits at a socket. A repeated request keeps its position. */
  acquireTool(call: ToolCallRequest): Promise<AcquireToolReply>;

  /** Renews the permit of a tool call without a socket. False: the permit was revoked, and the call must stop. */
  heartbeatTool(call: ToolCallName): boolean;

  /** Returns the permit and logs the call's result durably; null = the call was never made. */
  endTool(callId: string, report: ToolReport | null): Promise<void>;

  // ---- pull workers ----

  /** An executor waits up to `waitMs` (at most 20 s) for a worker's answer to its attempt. A repeated call keeps its item's place. */
  pullOffer(offer: PullOfferCall, waitMs: number): Promise<PullReply>;

  /** Serves a worker; null if there is no such run, or `caller` may not. */
  pull(request: PullRequest, caller: string | null): Promise<PullDone | Refused | null>;

  // ---- search ----

  /** Searches in the texts of its calls, from a place on; null if there is no such run, or `caller` may not read it. */
  searchTexts(request: SearchRequest, caller: string | null): Promise<SearchReply | null>;

  // ---- log and counters ----

  /**
   * Stored events after number `after`, a page of them; null if there is no such run, or `caller` may not see it. `isFollower`: large events of
   * clients are cut and have their sizes; absent = false.
   */
  logPage(after: number, caller: string | null, isFollower?: boolean): Promise<LogPage | null>;

  /** Adds a client's own events, each a JSON object as text. The number of the last, or why none was added; null as above. */
  appendLog(events: ClientEvent[], caller: string | null): Promise<AppendReply | null>;

  /**
   * A WebSocket of a follower or a reader of the log (`/follow?caller=`, the run whose token it has, absent = the operator; with `place=reader`
   * of a reader; the caller checks who may read), or of someone who holds something of the run or waits for it (`/hold?owner=`, a SocketOwner
   * as JSON). 503 if there is no such run, or it has too many of them; 429 if the caller has too many followers, or readers.
   */
  fetch(request: Request): Response;

  /** What the run has used since its usage was last reset; `reset` counts from zero afterwards. Null as above. */
  usage(caller: string | null, reset: boolean): Promise<UsageDocument | null>;

  /** Counts the run's statistics and metrics from zero. The document afterwards; null as above. */
  resetStats(caller: string | null): Promise<StoredDocument | null>;

  /** Closes the coalescing window: the next single call opens another. False if there is no such run, or `caller` may not. */
  flushWindow(caller: string | null): Promise<boolean>;

  /** Rows written by this instance, and the log's share of them: rows written are what Cloudflare bills most for. */
  rowsWritten(): { all: number; log: number; read?: number };
}
