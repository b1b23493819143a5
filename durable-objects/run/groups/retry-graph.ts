/**
 * Retries a graph that has ended: the same graph as a new group, in which the calls that completed are recorded ends. They cost
 * nothing, and what depends on them starts as it would after them.
 */
import { endSlot, startGraph } from "../../../src/engine/end-slot.ts";
import { emitGroupStarted } from "../../../src/engine/enqueue.ts";
import { groupIdOf, groupSalt } from "../../../src/engine/group-id.ts";
import type { Reason } from "../../../src/errors.ts";
import type { CompiledGraph } from "../../../src/graph/types.ts";
import type { OpenGroupReply, RetryRequest } from "../../../src/run-api/groups.ts";
import type { RunState } from "../state.ts";
import type { StoredGroup } from "../store/records.ts";
import { roomReason } from "../store/room.ts";
import type { RunStore } from "../store/store.ts";
import { refusalOf, replyOf } from "./open.ts";

/** Opens the new group, and leaves what it changes to the turn's transaction. */
export function retryGraph(run: RunState, store: RunStore, request: RetryRequest, nowMs: number): OpenGroupReply {
  const { openKey, idempotencyKey } = request;
  const before = idempotencyKey === null ? null : run.keyRecord(idempotencyKey.key);
  if (before !== null && before.hash !== idempotencyKey?.hash)
    return { ok: false, reason: { reason: "idempotency_conflict" } };
  const known = run.openings.find(openKey) ?? before?.seq ?? null;
  const opened = known === null ? undefined : run.storedGroup(known);
  if (opened !== undefined) return replyOf(run, opened, before !== null);
  const found = store.groups.get(request.seq);
  const json = store.groups.graphJson(request.seq);
  const reason = found === null || json === null ? NO_GRAPH : whyNot(run, store, found.stored);
  if (reason !== null || found === null || json === null) return { ok: false, reason: reason ?? NO_GRAPH };
  const seq = run.takeGroupSeq();
  // A graph that its rule has stopped is retried to run what was cancelled.
  const { stopWhen, judgeWhen, trace: _before, ...rules } = found.stored.header;
  void stopWhen;
  void judgeWhen;
  const header = {
    ...rules,
    seq,
    id: groupIdOf(nowMs, seq, groupSalt(run.settings.id)),
    openedAtMs: nowMs,
    ...(request.trace === undefined ? {} : { trace: request.trace }),
  };
  const stored: StoredGroup = { ...found.stored, header, openKey };
  // At once: what depends on a recorded output reads it from its row while this turn opens the group.
  const graph = closed(parsed(json));
  store.transaction(() => {
    store.groups.put(stored);
    store.putGraph(seq, graph);
    store.groups.copyPages(request.seq, seq);
    store.slots.copyCompleted(request.seq, seq);
  });
  run.openings.add({ openKey, seq, stagedAtMs: null });
  if (idempotencyKey !== null) run.addKey(idempotencyKey, seq);
  start(run, store, { stored, graph }, nowMs);
  return replyOf(run, stored, false);
}

const NO_GRAPH: Reason = { reason: "not_found", what: "graph" };

function whyNot(run: RunState, store: RunStore, stored: StoredGroup): Reason | null {
  const { seq, models } = stored.header;
  if (run.engine.groups.get(seq)?.done === false) {
    return { reason: "invalid_request", message: "the graph is running; retry it after its end", param: "id" };
  }
  return refusalOf(run, { models: [...models] }) ?? roomReason(store.storedBytes);
}

/** Of a plan that was cancelled while it was written, no more comes. */
function closed(graph: CompiledGraph): CompiledGraph {
  return graph.plan?.state === "open" ? { ...graph, plan: { ...graph.plan, state: "cut" } } : graph;
}

function parsed(json: string): CompiledGraph {
  return JSON.parse(json);
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
