/**
 * Plans that run while they are written. The Worker that reads a plan sends its parts. If that Worker is lost, the plan is cut off
 * after the term of a lease: the tasks that have arrived run to their end.
 */
import { toWire, type Reason } from "../../../src/errors.ts";
import { appendPlan as appendTo, type PlanPart } from "../../../src/run/graph/plan/append.ts";
import type { PlanFault } from "../../../src/run/graph/types.ts";
import type { AppendPlanReply, AppendPlanRequest, CalledTask } from "../../../src/objects/methods/groups.ts";
import { missingLanes } from "../executors/lanes.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { takeGraph } from "./change-graph.ts";

type Part = PlanPart<{ line: number; task: CalledTask }>;

/** Takes the next part of a plan, once. */
export function appendPlan(
  run: RunState,
  store: RunStore,
  { seq, part }: AppendPlanRequest,
  nowMs: number,
): AppendPlanReply {
  const open = openPlan(run, seq);
  const known = open?.compiled.plan?.line ?? 0;
  const isNew = part.line > known || part.state !== "open";
  if (open !== null) run.openPlans.followed(seq, nowMs);
  if (open !== null && isNew) addPart(run, store, { seq, part: partAfter(part, known) }, nowMs);
  const plan = run.engine.groups.get(seq)?.graph?.plan;
  const lines = new Set([...part.tasks, ...part.faults].map(({ line }) => line));
  const faults = (plan?.faults ?? []).filter(({ line }) => lines.has(line));
  return { isOpen: openPlan(run, seq) !== null, faults, lanes: run.hasGroupWork ? missingLanes(run) : [] };
}

/** Closes a plan whose reader is gone. */
export function cutPlan(run: RunState, store: RunStore, seq: number, nowMs: number): void {
  const line = openPlan(run, seq)?.compiled.plan?.line;
  if (line === undefined) return run.openPlans.forget(seq);
  addPart(run, store, { seq, part: { tasks: [], faults: [], line, state: "cut" } }, nowMs);
}

function openPlan(run: RunState, seq: number) {
  const group = run.engine.groups.get(seq);
  const compiled = group?.graph?.compiled;
  if (group === undefined || compiled === undefined || group.drained !== null) return null;
  return compiled.plan?.state === "open" ? { group, compiled } : null;
}

/** What of a part is new: its reply may have been lost. */
function partAfter({ tasks, faults, line, state }: Part, known: number): Part {
  const isNew = (each: { line: number }): boolean => each.line > known;
  return { tasks: tasks.filter(isNew), faults: faults.filter(isNew), line: Math.max(line, known), state };
}

function addPart(run: RunState, store: RunStore, { seq, part }: { seq: number; part: Part }, nowMs: number): void {
  const open = openPlan(run, seq);
  if (open === null) return;
  const refused: PlanFault[] = [];
  const tasks = part.tasks.filter(({ line, task }) => {
    const target = run.targets.resolve(task.call.facts.model);
    if ("reason" in target) refused.push({ line, message: messageOf(target) });
    return !("reason" in target);
  });
  const appended = appendTo(open.compiled, { ...part, tasks, faults: [...part.faults, ...refused] });
  const calls = appended.added.flatMap((index) => tasks[index]?.task ?? []);
  const reason = takeGraph(run, store, { ...open, graph: appended.graph, tasks: calls }, nowMs);
  if (appended.graph.plan?.state !== "open") run.openPlans.forget(seq);
  if (reason === null) return;
  // There is no room for the calls, nor will there be for the next ones.
  const faults = tasks.map(({ line }) => ({ line, message: messageOf(reason) }));
  const cut = appendTo(open.compiled, { ...part, tasks: [], faults: [...part.faults, ...faults], state: "cut" });
  takeGraph(run, store, { ...open, graph: cut.graph, tasks: [] }, nowMs);
  run.openPlans.forget(seq);
}

function messageOf(reason: Reason): string {
  return toWire(reason).error.message;
}
