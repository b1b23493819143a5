/**
 * Retries a group that has ended: a new group with the same calls. Those that completed keep their recorded results and cost
 * nothing; in a graph, their dependents start as usual. Calls and results stay where they are: the new group refers to them.
 */
import { shareOf } from "../../../src/run/money/admit.ts";
import { endSlot, startGraph } from "../../../src/run/steps/end-slot.ts";
import { emitGroupStarted } from "../../../src/run/steps/enqueue.ts";
import { groupIdOf, groupSalt } from "../../../src/run/queue/group-id.ts";
import type { Reason } from "../../../src/errors.ts";
import { RETRIES_IN_A_ROW_MAX } from "../../../src/limits.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupReply, RetryRequest } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import type { StoredGroup } from "../store/records.ts";
import { reopenGroup } from "../store/rebuild.ts";
import { roomReason } from "../store/room.ts";
import type { RunStore } from "../store/store.ts";
import { refusalOf, replyOf } from "./open.ts";

/** Opens the new group, and leaves what it changes to the turn's transaction. */
export function retryGroup(run: RunState, store: RunStore, request: RetryRequest, nowMs: number): OpenGroupReply {
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
  if (graph === null) startBatch(run, store, stored, nowMs);
  else start(run, store, { stored, graph }, nowMs);
  return replyOf(run, stored, false);
}

const NO_GROUP: Reason = { reason: "not_found", what: "group" };
const TOO_OFTEN: Reason = {
  reason: "invalid_request",
  message: `the group was retried ${RETRIES_IN_A_ROW_MAX} times, one after another, the most that may be; send what is left as a new batch or graph`,
  param: "id",
};

/** The request that opens the retry. A group that its rule has stopped is retried to run the cancelled calls. */
function onceMore(
  run: RunState,
  stored: StoredGroup,
  { seq, trace }: { seq: number; trace: RetryRequest["trace"] },
  nowMs: number,
): StoredGroup {
  const { stopWhen: _stop, judgeWhen: _judge, judges: _judges, trace: _before, ...rules } = stored.header;
  const id = groupIdOf(nowMs, seq, groupSalt(run.settings.id));
  const share = rules.share === null ? null : shareOf(run.engine.ledger, rules.count);
  const traced = trace === undefined ? {} : { trace };
  const header = { ...rules, seq, id, openedAtMs: nowMs, share, retryOf: rules.id, ...traced };
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

/** Opens the calls of a batch as a restart would, which finds some of them completed. */
function startBatch(run: RunState, store: RunStore, stored: StoredGroup, nowMs: number): void {
  run.groupOpened(stored, nowMs);
  reopenGroup(run.engine, store, stored, nowMs);
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
