/**
 * Retries a group that has ended: a new group with the same calls. Those that completed keep their recorded results and cost
 * nothing; in a graph, their dependents start as usual. Calls and results stay where they are: the new group refers to them.
 */
import { shareOf } from "../../../src/run/money/admit.ts";
import { endSlot, startGraph } from "../../../src/run/steps/end-slot.ts";
import { emitGroupStarted } from "../../../src/run/steps/enqueue.ts";
import { groupIdOf, groupSalt } from "../../../src/run/queue/group-id.ts";
import type { Reason } from "../../../src/errors.ts";
import { OPENED_AT_ONCE_MAX, RETRIES_IN_A_ROW_MAX } from "../../../src/limits.ts";
import { atOnce, type Sliced } from "../../../src/text/bytes/slices.ts";
import { rulesOfRetry } from "../../../src/run/rules/table.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupReply, RetryRequest } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import type { StoredGroup } from "../store/records.ts";
import { reopenGroup, type RetriedBatch } from "../store/rebuild.ts";
import { roomReason } from "../store/room.ts";
import type { RunStore } from "../store/store.ts";
import { refusalOf, replyOf } from "./open.ts";
import { readingPages } from "./read-pages.ts";

/** Slots of a group that are looked up between two pauses. */
const SLOTS_PER_SLICE = 4_096;

/**
 * Reads what a retry begins with. Of a large batch in slices, before the turn that opens the retry; null = nothing was read: the group is
 * small, has tasks, or has not ended.
 */
export function readingRetried(run: RunState, store: RunStore, seq: number): Sliced<RetriedBatch> | null {
  const header = store.groups.get(seq)?.stored.header;
  if (header === undefined || header.graph !== undefined || header.count <= OPENED_AT_ONCE_MAX) return null;
  return run.engine.groups.get(seq)?.done === false ? null : readingBatch(store, header);
}

/** Reads a batch that has ended: nothing of it changes any more. */
export function* readingBatch(
  store: {
    readonly groups: Pick<RunStore["groups"], "pageFacts" | "beforeRetryOf">;
    readonly slots: Pick<RunStore["slots"], "kept">;
  },
  { seq, count, models }: Pick<StoredGroup["header"], "seq" | "count" | "models">,
): Sliced<RetriedBatch> {
  // All texts at once: rows are not read on while others are written.
  const pages = yield* readingPages([...store.groups.pageFacts(seq)], models, () => undefined);
  const kept: number[] = [];
  for (const before of store.groups.beforeRetryOf(seq)) {
    for (let from = 0; from < count; from += SLOTS_PER_SLICE) {
      for (const index of store.slots.kept(before.seq, from, Math.min(count, from + SLOTS_PER_SLICE))) kept.push(index);
      if (count > SLOTS_PER_SLICE) yield;
    }
  }
  // As if they had ended in order, whichever group they completed in.
  return { pages, kept: kept.toSorted((a, b) => a - b) };
}

/**
 * Opens the new group, and leaves what it changes to the turn's transaction.
 * @param read What was read of it before this turn; null = it is read now.
 */
export function retryGroup(
  run: RunState,
  store: RunStore,
  { request, read }: { request: RetryRequest; read: RetriedBatch | null },
  nowMs: number,
): OpenGroupReply {
  const { openKey, idempotencyKey } = request;
  const named = idempotencyKey === null ? null : run.keyRecord(idempotencyKey.key);
  if (named !== null && named.hash !== idempotencyKey?.hash)
    return { ok: false, reason: { reason: "idempotency_conflict" } };
  const known = run.openings.find(openKey) ?? named?.seq ?? null;
  const opened = known === null ? undefined : run.storedGroup(known);
  if (opened !== undefined) return replyOf(run, opened, named !== null);
  const found = store.groups.get(request.seq);
  if (found === null) return { ok: false, reason: NO_GROUP };
  const before = store.groups.beforeRetryOf(request.seq);
  const reason = whyNot(run, store, found.stored) ?? (before.length > RETRIES_IN_A_ROW_MAX ? TOO_OFTEN : null);
  if (reason !== null) return { ok: false, reason };
  const seq = run.takeGroupSeq();
  const stored = { ...onceMore(run, found.stored, { seq, trace: request.trace }, nowMs), openKey };
  // At once: what depends on a recorded output reads it from its row while this turn opens the group.
  store.transaction(() => store.putRetry(stored, before));
  const json = store.groups.graphJson(seq);
  const graph = json === null ? null : parsed(json);
  run.openings.add({ openKey, seq, stagedAtMs: null });
  if (idempotencyKey !== null) run.addKey(idempotencyKey, seq);
  if (graph === null) {
    const retried = read ?? atOnce(readingBatch(store, found.stored.header));
    startBatch(run, store, { stored, retried }, nowMs);
  } else start(run, store, { stored, graph }, nowMs);
  return replyOf(run, stored, false);
}

const NO_GROUP: Reason = { reason: "not_found", what: "group" };
const TOO_OFTEN: Reason = {
  reason: "invalid_request",
  message: `the group was retried ${RETRIES_IN_A_ROW_MAX} times, one after another, the most that may be; send what is left as a new batch or graph`,
  param: "id",
};

/** What is stored of the retry. */
function onceMore(
  run: RunState,
  stored: StoredGroup,
  { seq, trace }: { seq: number; trace: RetryRequest["trace"] },
  nowMs: number,
): StoredGroup {
  const { rules, serves: _serves, trace: _before, ...kept } = stored.header;
  const id = groupIdOf(nowMs, seq, groupSalt(run.settings.id));
  const share = kept.share === null ? null : shareOf(run.engine.ledger, kept.count);
  const more = { ...rulesOfRetry(rules), ...(trace === undefined ? {} : { trace }) };
  const header = { ...kept, seq, id, openedAtMs: nowMs, share, retryOf: kept.id, ...more };
  const { bodyObjects, bodiesKey = stored.openKey } = stored;
  return { ...stored, header, ...(bodyObjects === undefined ? {} : { bodiesKey }) };
}

function whyNot(run: RunState, store: RunStore, stored: StoredGroup): Reason | null {
  const { seq, models, single } = stored.header;
  const because = (message: string): Reason => ({ reason: "invalid_request", message, param: "id" });
  if (run.engine.groups.get(seq)?.done === false) return because("the group is running; retry it after its end");
  if (single !== null) return because("a single call cannot be retried as a group; send its request again");
  if (stored.batchId !== undefined) {
    return because("a batch of /v1/batches cannot be retried; send its failed lines as a new batch");
  }
  return refusalOf(run, { models: [...models], single: false }) ?? roomReason(store);
}

function parsed(json: string): CompiledGraph {
  return JSON.parse(json);
}

/** Opens the calls of a batch, of which some are completed. */
function startBatch(
  run: RunState,
  store: RunStore,
  { stored, retried }: { stored: StoredGroup; retried: RetriedBatch },
  nowMs: number,
): void {
  run.groupOpened(stored, nowMs);
  reopenGroup(run.engine, store, { stored, retried }, nowMs);
  const group = run.engine.groups.get(stored.header.seq);
  if (group === undefined) throw new Error(`the group ${stored.header.id} was not opened`);
  emitGroupStarted(run.engine, group, nowMs);
  const { held: quote } = stored.header;
  if (quote !== undefined) run.engine.log.add({ event: "confirmation_awaited", quote }, group.parallelGroupId, nowMs);
  // Nothing was left to do.
  if (group.done) run.engine.writeGroup(group);
}

function start(
  run: RunState,
  store: RunStore,
  { stored, graph }: { stored: StoredGroup; graph: CompiledGraph },
  nowMs: number,
): void {
  const { seq } = stored.header;
  run.groupOpened(stored, nowMs);
  const group = run.engine.openGroup(stored.header, graph);
  emitGroupStarted(run.engine, group, nowMs);
  startGraph(run.engine, group);
  const recorded = [...store.slots.states(seq)];
  // Their rows are there, and no attempt ends with them.
  for (const record of recorded) endSlot(run.engine, group, record, { hasRow: false, hasEvent: false }, nowMs);
  const ids = new Set(recorded.map(({ id }) => id));
  run.engine.queue.remove((groupSeq, id) => groupSeq === seq && ids.has(id));
}
