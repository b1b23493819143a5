/** Opening groups. A large group arrives in several calls: its pages are stored as they come, and no slot starts before the last. */
import { shareOf } from "../../../src/run/money/admit.ts";
import type { CallPage, ReadPage } from "../../../src/run/queue/call-page.ts";
import { emitGroupStarted, enqueueSlots, releaseTiers, type Equals } from "../../../src/run/steps/enqueue.ts";
import { groupIdOf, groupSalt } from "../../../src/run/queue/group-id.ts";
import { ageOf } from "../../../src/run/leases/age.ts";
import type { GroupHeader, HeldQuote } from "../../../src/run/group/group.ts";
import type { Serves } from "../../../src/run/group/serves.ts";
import { rulesOfRequest } from "../../../src/run/rules/table.ts";
import { liveAtMs } from "../../../src/run/steps/live-at.ts";
import { startGraph } from "../../../src/run/steps/end-slot.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { Reason } from "../../../src/errors.ts";
import {
  CALL_AGE_MS_MAX,
  DIRECT_CALLS_MAX,
  GROUPS_OPEN_MAX,
  PARALLEL_MAX,
  RUN_FULL_RETRY_AFTER_MS,
} from "../../../src/limits.ts";
import { CALLS_FULL } from "../calls.ts";
import type { OpenGroupReply, OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import { clientTraceId } from "../../../src/trace-context.ts";
import { atOnce } from "../../../src/text/bytes/slices.ts";
import { missingLanes } from "../executors/lanes.ts";
import { floorReason, hasFloor, mayPause } from "./floors.ts";
import { preparing, type Prepared } from "./prepare.ts";
import type { RunState } from "../state.ts";
import type { ModelTargets } from "../targets.ts";
import type { StoredGroup } from "../store/records.ts";
import { roomReason } from "../store/room.ts";
import type { SingleCall } from "../store/singles.ts";
import type { RunStore } from "../store/store.ts";

/**
 * Stores pages of a group that is not open yet, at once. Storing the same pages twice changes nothing. Null, or why there
 * is no room for them: then the earlier pages of the upload are dropped.
 */
export function stagePages(
  run: RunState,
  store: RunStore,
  { openKey, pages, bodyBytes }: { openKey: string; pages: readonly CallPage[]; bodyBytes: number },
  nowMs: number,
): Reason | null {
  const known = run.openings.find(openKey);
  // The copy of a retried call may arrive after the group was opened: its pages are stored, and must not be dropped.
  if (known !== null && isOpened(run, known)) return null;
  store.space.staged(openKey, bodyBytes);
  const full = roomReason(store, charsOf(pages));
  if (full !== null) {
    dropStaged(run, store, openKey);
    return full;
  }
  const seq = known ?? run.takeGroupSeq();
  store.transaction(() => {
    // The row keeps the number taken across a restart; a group that is not sealed never starts.
    if (known === null) store.groups.put(stagedGroup(seq, openKey, nowMs));
    // Before the first body: its Worker writes to R2 only after it has sent pages here.
    if (!store.meta.get("hasBodies")) store.meta.set("hasBodies", true);
    for (const page of pages) store.groups.putPage(seq, page);
  });
  run.openings.add({ openKey, seq, stagedAtMs: nowMs });
  return null;
}

function isOpened(run: RunState, seq: number): boolean {
  return run.storedGroup(seq)?.sealed === true;
}

/** Drops at once the pages of a group that will not be opened; dropping twice changes nothing. False: it is open, and keeps them. */
export function dropStaged(run: RunState, store: RunStore, openKey: string): boolean {
  store.space.dropped(openKey);
  const seq = run.openings.find(openKey);
  if (seq === null) return true;
  if (isOpened(run, seq)) return false;
  run.openings.forget(openKey);
  store.transaction(() => store.groups.drop(seq));
  return true;
}

/**
 * `hasWorker`: the Worker that opens it executes it. `serves`: what its call does for another group; null = it serves none. `prepared`:
 * what was read of it before this turn; null = it is read now.
 */
type GroupToOpen = {
  request: OpenGroupRequest;
  pages: readonly CallPage[];
  hasWorker: boolean;
  graph?: CompiledGraph | null;
  serves?: Serves | null;
  prepared?: Prepared | null;
};

/**
 * Opens a group: resolves its models, queues its slots, and leaves its rows to the turn's transaction.
 */
export function openGroup(
  run: RunState,
  store: RunStore,
  { request, pages, hasWorker, graph = null, serves = null, prepared = null }: GroupToOpen,
  nowMs: number,
): OpenGroupReply {
  const found = run.openings.find(request.openKey);
  const opened = found === null ? undefined : run.storedGroup(found);
  // The reply to the first request was lost.
  if (opened?.sealed === true) return replyOf(run, opened, false);
  const staged = found;
  const drop = (): void => {
    // Nothing of a refused request stays stored, nor do its earlier pages.
    if (staged !== null) run.addWrite(() => store.groups.drop(staged));
    run.openings.forget(request.openKey);
    store.space.dropped(request.openKey);
  };
  const { idempotencyKey } = request;
  const known = idempotencyKey === null ? null : openedBy(run, idempotencyKey);
  if (known !== null) {
    drop();
    return known;
  }
  const refuse = (reason: Reason): OpenGroupReply => {
    drop();
    return { ok: false, reason };
  };
  // What was read before is the group only if none of its pages were dropped since.
  const isWhole = (staged !== null || pages[0]?.firstIndex === 0) && (prepared === null || prepared.staged === staged);
  const early = isWhole ? (refusalOf(run, request) ?? roomReason(store, charsOf(pages))) : INTERRUPTED;
  if (early !== null) return refuse(early);
  const asked = { request, graph, isService: serves !== null };
  const read = prepared ?? atOnce(preparing(run, store, asked, pages, nowMs));
  const unpaid = hasFloor(run, asked) ? floorReason(run, asked, read.floors) : null;
  if (unpaid !== null) return refuse(unpaid);
  const { held } = read;
  const seq = staged ?? run.takeGroupSeq();
  const stored = storedGroup(run, request, { seq, graph, serves, held }, nowMs);
  run.openings.add({ openKey: request.openKey, seq, stagedAtMs: null });
  run.addWrite(() => store.space.opened(request.openKey, request.bodyBytes ?? 0));
  const single = staged === null ? singleOf(store, { request, stored, pages }) : null;
  if (single !== null) run.addSingle(single);
  else {
    if (idempotencyKey !== null) run.addKey(idempotencyKey, seq);
    run.addWrite(() => {
      store.groups.put(stored);
      if (graph !== null) store.putGraph(seq, graph);
      for (const page of pages) store.groups.putPage(seq, page);
    });
  }
  start(run, { stored, graph, pages, read: read.pages }, nowMs);
  // Before the reply, which names the lanes that are missing.
  if (hasWorker && held === null) run.workers.claimed(seq, { covers: null }, nowMs);
  return replyOf(run, stored, false);
}

/** The reply to a request whose key has opened a group before, or why it is another request; null = the key has opened nothing. */
export function openedBy(
  run: RunState,
  { key, hash }: NonNullable<OpenGroupRequest["idempotencyKey"]>,
): OpenGroupReply | null {
  const before = run.keyRecord(key);
  if (before === null) return null;
  const first = run.storedGroup(before.seq);
  if (before.hash !== hash || first === undefined) return { ok: false, reason: { reason: "idempotency_conflict" } };
  return replyOf(run, first, true);
}

export function charsOf(pages: readonly CallPage[]): number {
  return pages.reduce((sum, { facts, calls }) => sum + facts.length + calls.length, 0);
}

/** A single call that one row can hold; null = it is stored as groups of many are. */
function singleOf(
  store: RunStore,
  { request, stored, pages }: { request: OpenGroupRequest; stored: StoredGroup; pages: readonly CallPage[] },
): SingleCall | null {
  const [page] = pages;
  // A confirmation changes the header, and a body in R2 has a place instead of a text.
  const isPlain = stored.header.held === undefined && stored.bodyObjects === undefined;
  if (!request.single || !isPlain || page === undefined || request.count !== 1) return null;
  const call = { stored, page, key: request.idempotencyKey };
  return store.singles.hasRoomFor(call) ? call : null;
}

/** The pages that were sent ahead are gone: they were dropped, or the upload took too long. */
const INTERRUPTED: Reason = {
  reason: "overloaded",
  message: "the upload of the batch was interrupted; send it once more",
  retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
};

/** Puts a group's slots into the queue. */
function start(
  run: RunState,
  {
    stored,
    graph,
    pages,
    read,
  }: { stored: StoredGroup; graph: CompiledGraph | null; pages: readonly CallPage[]; read: readonly ReadPage[] },
  nowMs: number,
): void {
  const { header } = stored;
  const { seq } = header;
  run.groupOpened(stored, nowMs);
  const group = run.engine.openGroup(header, graph);
  if (header.single !== null) group.joinWindow(run.engine.window.current);
  emitGroupStarted(run.engine, group, nowMs);
  const { held: quote } = header;
  if (quote !== undefined) run.engine.log.add({ event: "confirmation_awaited", quote }, group.parallelGroupId, nowMs);
  if (graph?.plan?.state === "open") run.openPlans.followed(seq, nowMs);
  for (const page of pages) run.storedCalls.keepPage(seq, page);
  if (graph !== null) return startGraph(run.engine, group);
  const equals: Equals = new Map();
  for (const { firstIndex, slots } of read) enqueueSlots(run.engine, group, firstIndex, slots, equals);
  releaseTiers(run.engine, group);
  // The alarm starts the object that feeds its provider.
  if ((group.provider?.size ?? 0) > 0) run.laneStarts.need();
}

function storedGroup(
  run: RunState,
  request: OpenGroupRequest,
  {
    seq,
    graph,
    serves,
    held,
  }: { seq: number; graph: CompiledGraph | null; serves: Serves | null; held: HeldQuote | null },
  nowMs: number,
): StoredGroup {
  const { count, onLost, models, deadlineMs, openKey, hasCustomIds, defaultsJson } = request;
  const { bodyObjects, batchId, aggregate } = request;
  const header: GroupHeader = {
    seq,
    id: groupIdOf(nowMs, seq, groupSalt(run.settings.id)),
    count,
    // Dispatch applies the run's present width to every group, so a group without a cap follows when the width changes.
    concurrency: request.concurrency ?? PARALLEL_MAX,
    onLost,
    ...providerOf(run, request, nowMs),
    single: request.single
      ? run.engine.window.join(nowMs, nowMs - Math.min(ageOf(request, nowMs), CALL_AGE_MS_MAX)).position
      : null,
    share: request.split ? shareOf(run.engine.ledger, count) : null,
    openedAtMs: nowMs,
    deadlineMs,
    models,
    ...(request.background ? { background: true as const } : {}),
    ...rulesOfRequest(request),
    ...(serves === null ? {} : { serves }),
    ...(graph === null ? {} : { graph: shapeOf(graph) }),
    ...(request.replay === undefined || run.replay === null ? {} : { replay: request.replay }),
    ...(request.trace === undefined ? {} : { trace: request.trace }),
    ...(request.notify === undefined ? {} : { notify: request.notify }),
    ...(request.step === undefined ? {} : { step: request.step }),
    ...(held === null ? {} : { held }),
    ...(mayPause(run, request) ? { onExhausted: "pause" } : {}),
  };
  // Its client has its answer, the quote, and does not follow it.
  const detach = request.detach || held !== null;
  const errorStyle = request.errorStyle ?? run.settings.errorStyle;
  const stored = { header, defaultsJson, sealed: true, openKey, detach, errorStyle, named: hasCustomIds };
  return {
    ...stored,
    ...(bodyObjects === undefined ? {} : { bodyObjects }),
    ...(batchId === undefined ? {} : { batchId }),
    ...(aggregate === undefined ? {} : { aggregate }),
  };
}

/** When calls of a group leave the batches of its provider, if it requests batches. */
function providerOf(run: RunState, request: OpenGroupRequest, nowMs: number): Pick<GroupHeader, "liveAtMs"> {
  const { viaBatches, deadlineMs, count, concurrency, models } = request;
  if (viaBatches !== true || deadlineMs === null) return {};
  const target = run.targets.resolve(models[0] ?? null);
  const marginMs = ("reason" in target ? undefined : target.batch?.marginMs) ?? null;
  const width = Math.min(concurrency ?? PARALLEL_MAX, run.engine.width);
  return { liveAtMs: liveAtMs({ openedAtMs: nowMs, deadlineMs, count, width, marginMs }) };
}

function shapeOf({ tasks, ordersOnly }: CompiledGraph): NonNullable<GroupHeader["graph"]> {
  return ordersOnly === true ? { tasks: tasks.length, ordersOnly } : { tasks: tasks.length };
}

/** The reply to a request that has opened a group, or found it. */
export function replyOf(run: RunState, { header, errorStyle }: StoredGroup, replayed: boolean): OpenGroupReply {
  const { seq, id, count } = header;
  const effectiveParallel = Math.min(header.concurrency, run.engine.width);
  const lanes = run.hasGroupWork ? missingLanes(run) : [];
  const { remainingNanoUsd } = run;
  const of = { ok: true, seq, id, count, errorStyle, replayed } as const;
  const window = run.engine.groups.get(seq)?.window ?? null;
  const joined = window === null ? {} : { window: { parallelGroupId: window.id, windowOpenedAtMs: window.openedAtMs } };
  const held = header.held === undefined ? {} : { isHeld: true as const };
  return {
    ...of,
    ...joined,
    ...held,
    ...tracedIn(run, header),
    effectiveParallel,
    lanes,
    remainingNanoUsd,
    claim: null,
  };
}

/** The client's trace that the spans of a group are in; nothing = they are in the run's own. */
export function tracedIn({ settings }: Pick<RunState, "settings">, { trace }: GroupHeader): { traceId?: string } {
  const traceId = clientTraceId(trace, settings.trace);
  return traceId === null ? {} : { traceId };
}

/** Why a group may not be opened; null if it may. A model that a line of a batch names and the run has not fails that line only. */
export function refusalOf(
  run: Pick<RunState, "openCounts"> & ModelTargets,
  request: Pick<OpenGroupRequest, "models" | "single" | "batchId">,
): Reason | null {
  for (const model of request.batchId === undefined ? request.models : []) {
    const target = run.targets.resolve(model);
    if ("reason" in target) return target;
  }
  return fullReason(run.openCounts, request);
}

/** Why a run has no room for one more group; null = it has. Single calls wait for each other, so many may be open. */
export function fullReason(
  open: { singles: number; groups: number },
  { single }: Pick<OpenGroupRequest, "single">,
): Reason | null {
  if (single ? open.singles < DIRECT_CALLS_MAX : open.groups < GROUPS_OPEN_MAX) return null;
  return single ? CALLS_FULL : GROUPS_FULL;
}

const GROUPS_FULL: Reason = {
  reason: "overloaded",
  message: `this run already has ${GROUPS_OPEN_MAX} batches and graphs open, the most that one run may have; send this one again once one of them has ended`,
  retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
};

function stagedGroup(seq: number, openKey: string, nowMs: number): StoredGroup {
  const header: GroupHeader = {
    seq,
    id: "",
    count: 0,
    concurrency: 1,
    onLost: "retry",
    single: null,
    share: null,
    openedAtMs: nowMs,
    deadlineMs: null,
    models: [],
  };
  return { header, defaultsJson: "{}", sealed: false, openKey, detach: true, errorStyle: "bracket", named: false };
}
