/** Changes of a graph that runs: its graph, its header and the calls of its new tasks, in the turn's one transaction. */
import { CallPageBuilder, type CallPage } from "../../../src/run/queue/call-page.ts";
import { changeGraph } from "../../../src/run/steps/end-slot.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { Reason } from "../../../src/errors.ts";
import { patchGraph as patchCompiled } from "../../../src/run/graph/patch.ts";
import { presentTasks, type CompiledGraph } from "../../../src/run/graph/types.ts";
import { GRAPH_CHANGES_MAX, GROUP_MODELS_CHARS_MAX } from "../../../src/limits.ts";
import type { CalledTask, ChangeGraphReply, ChangeGraphRequest } from "../../../src/objects/methods/groups.ts";
import { missingLanes } from "../executors/lanes.ts";
import type { RunState } from "../state.ts";
import type { StoredGroup } from "../store/records.ts";
import { roomReason } from "../store/room.ts";
import type { RunStore } from "../store/store.ts";

/** Applies a change, all of it or nothing. The repetition of the request that made the present version is answered like it. */
export function patchGraph(
  run: RunState,
  store: RunStore,
  { seq, key, version, operations }: ChangeGraphRequest,
  nowMs: number,
): ChangeGraphReply {
  const found = runningGraph(run, seq, key);
  if ("reason" in found) return { ok: false, reason: found };
  const { group, compiled, isRepeated } = found;
  if (isRepeated) return replyOf(run, compiled);
  const hasStarted = (position: number): boolean => hasTaskStarted(group, compiled, position);
  const patched = patchCompiled(compiled, { version, key, operations, hasStarted });
  if (!patched.ok) return patched;
  const tasks = patched.appended.flatMap((at): CalledTask[] => {
    const operation = operations[at];
    return operation?.op === "add_task" || operation?.op === "update_task" ? [operation.task] : [];
  });
  const refused = takeGraph(run, store, { group, graph: patched.graph, tasks }, nowMs);
  return refused === null ? replyOf(run, patched.graph) : { ok: false, reason: refused };
}

type RunningGraph = { group: Group; compiled: CompiledGraph; isRepeated: boolean };

/** A graph that may change, or why it may not. `isRepeated`: the request of this key has made its present version. */
function runningGraph(run: RunState, seq: number, key: string): RunningGraph | Reason {
  const group = run.engine.groups.get(seq);
  const compiled = group?.graph?.compiled;
  if (
    group === undefined ||
    compiled === undefined ||
    compiled.ordersOnly === true ||
    group.done ||
    group.drained !== null
  )
    return OVER;
  if (compiled.changedBy === key) return { group, compiled, isRepeated: true };
  if (group.stopping !== null) return invalid("a graph with stop_when cannot be changed");
  if (group.early !== null) return invalid("a graph with speculate cannot be changed");
  if (compiled.version > GRAPH_CHANGES_MAX) return invalid(`the graph was changed ${GRAPH_CHANGES_MAX} times already`);
  return { group, compiled, isRepeated: false };
}

const OVER = invalid("the graph has ended or is stopping; it cannot be changed");

function invalid(message: string): Reason {
  return { reason: "invalid_request", message, param: null };
}

/** Whether a slot of a task runs or was tried, or the task has ended: then others may have read its outputs. */
export function hasTaskStarted(group: Group, { tasks }: CompiledGraph, position: number): boolean {
  if (group.graph?.frontier.isResolved(position) === true) return true;
  const { first, slots } = tasks[position] ?? { first: 0, slots: 0 };
  for (let index = first; index < first + slots; index++) {
    if (group.stateOf(index) !== "queued" || group.attempts[index] !== 0) return true;
  }
  return false;
}

/**
 * Takes over a changed graph with the calls of its new tasks, which are in the order of their positions. Why it cannot be, or
 * null.
 */
export function takeGraph(
  run: RunState,
  store: RunStore,
  { group, graph, tasks }: { group: Group; graph: CompiledGraph; tasks: readonly CalledTask[] },
  nowMs: number,
): Reason | null {
  const before = group.header;
  const old = run.storedGroup(before.seq);
  if (old === undefined) throw new Error(`${before.id} runs, but is not stored`);
  const { pages, models } = pagesOf(tasks, { calls: graph.tasks.length - tasks.length, models: before.models });
  // A change without calls may be what lets the graph end.
  const full = tasks.length === 0 ? null : roomReason(store);
  const refused = full ?? modelReason(run, models, before.models.length);
  if (refused !== null) return refused;
  const shape = { tasks: presentTasks(graph.tasks).length, version: graph.version };
  const header = { ...before, count: graph.slots, models, graph: shape };
  const stored: StoredGroup = { ...old, header };
  run.addWrite(() => {
    store.groups.putHeader(stored);
    store.putGraph(header.seq, graph);
    for (const page of pages) store.groups.putPage(header.seq, page);
  });
  run.groupChanged(stored, before);
  for (const page of pages) run.storedCalls.keepPage(header.seq, page);
  changeGraph(run.engine, group, { header, compiled: graph }, nowMs);
  return null;
}

function pagesOf(
  tasks: readonly CalledTask[],
  after: { calls: number; models: readonly (string | null)[] },
): { pages: CallPage[]; models: (string | null)[] } {
  const builder = new CallPageBuilder({}, after);
  const pages: CallPage[] = [];
  for (const { call } of tasks) {
    const page = builder.add(call);
    if (page !== null) pages.push(page);
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  return { pages, models: builder.models };
}

/** Why the models that a change adds cannot be used; null if they can. */
function modelReason(run: RunState, models: readonly (string | null)[], known: number): Reason | null {
  for (const model of models.slice(known)) {
    const target = run.targets.resolve(model);
    if ("reason" in target) return target;
  }
  const chars = models.reduce((total, model) => total + (model?.length ?? 0), 0);
  return chars <= GROUP_MODELS_CHARS_MAX
    ? null
    : invalid(`model: the names of the graph's different models have more than ${GROUP_MODELS_CHARS_MAX} characters`);
}

function replyOf(run: RunState, { version }: CompiledGraph): ChangeGraphReply {
  return { ok: true, version, lanes: missingLanes(run), remainingNanoUsd: run.remainingNanoUsd };
}
