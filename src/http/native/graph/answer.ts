/** Answering with a graph: as one JSON object, or as events while its tasks end. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import type { PlanFault } from "../../../run/graph/types.ts";
import type { Framing } from "../../replies/batch-lines.ts";
import { graphJson } from "../../replies/graph/graph-json.ts";
import { graphCompleted, graphStarted, planErrorEvent, taskEvent } from "../../replies/graph/graph-lines.ts";
import { graphAggregation } from "../../replies/graph/graph-results.ts";
import type { GroupView, SlotView } from "../../../objects/methods/groups.ts";
import { combiningCalls } from "../combining/make-calls.ts";
import { framingOf, JSON_PIECES, streamPieces, type GroupAnswer } from "../group-answer.ts";
import type { ChangingGraph } from "./changing-graph.ts";
import type { PlanFaults } from "./plan-faults.ts";

/** `planFaults`: of a graph that runs while its plan arrives in the same request. `written`: the tasks of a plan that a planner writes. */
type PlannedAnswer = GroupAnswer & { planFaults?: PlanFaults; written?: readonly Record<string, unknown>[] };

/** Answers with a graph in the form that the client's `Accept` names, when or as its tasks end. */
export function answerGraph(c: Context<AppEnv>, group: PlannedAnswer, graph: ChangingGraph): Response {
  const framing = framingOf(c.req.header("accept"));
  return framing === null
    ? streamPieces(c, group, endedJson(c, group, graph), JSON_PIECES)
    : streamPieces(c, group, events(c, group, { graph, framing }), framing);
}

/** The graph as it is now, which may be running. */
export async function answerLook(
  c: Context<AppEnv>,
  group: GroupAnswer,
  { view, graph }: { view: GroupView; graph: ChangingGraph },
): Promise<Response> {
  const slotsFrom = (index: number): Promise<SlotView[]> => group.reader.slotsFrom(index);
  const makeCalls = combiningCalls(c, group.runId, view);
  const pieces = graphJson({ group: view, graph: await graph.of(view), slotsFrom, makeCalls });
  return streamPieces(c, group, pieces, JSON_PIECES);
}

async function* endedJson(
  c: Context<AppEnv>,
  { reader, runId, written }: PlannedAnswer,
  graph: ChangingGraph,
): AsyncGenerator<string> {
  const group = await reader.ended();
  const slotsFrom = (index: number): Promise<SlotView[]> => reader.slotsFrom(index);
  const makeCalls = combiningCalls(c, runId, group);
  yield* graphJson({ group, graph: await graph.of(group), slotsFrom, makeCalls, written });
}

async function* events(
  c: Context<AppEnv>,
  group: PlannedAnswer,
  { graph, framing: { frame } }: { graph: ChangingGraph; framing: Framing },
): AsyncGenerator<string> {
  const { id: groupId, reader, effectiveParallel } = group;
  const latencies = new Map<number, number>();
  let id = 1;
  const framed = (event: { type: string }): string => frame(event.type, id++, JSON.stringify(event));
  yield framed(graphStarted(groupId, graph.latest, effectiveParallel));
  for await (const { slots, faults } of withFaults(reader.slotsAsTheyEnd(), group.planFaults ?? null)) {
    for (const fault of faults) yield framed(planErrorEvent(fault));
    if (slots.length === 0) continue;
    const names = await graph.namesOf(slots);
    for (const slot of slots) latencies.set(slot.index, slot.latencyMs);
    yield slots.map((slot) => frame("task", id++, taskEvent(slot, names))).join("");
  }
  const view = await reader.ended();
  const ended = await graph.of(view);
  const slotsFrom = (index: number): Promise<SlotView[]> => reader.slotsFrom(index);
  const makeCalls = combiningCalls(c, group.runId, view);
  const combined = await graphAggregation(view, ended, { slotsFrom, makeCalls });
  const latencyMs = Float64Array.from({ length: ended.slots }, (_, index) => latencies.get(index) ?? 0);
  yield framed(graphCompleted(view, ended, { latencyMs, written: group.written, ...combined }));
}

/** Slots as they end, and the bad lines of their plan as they come. */
async function* withFaults(
  slots: AsyncGenerator<SlotView[]>,
  plan: PlanFaults | null,
): AsyncGenerator<{ slots: SlotView[]; faults: readonly PlanFault[] }> {
  let next = slots.next();
  for (;;) {
    const faults = plan?.take() ?? [];
    if (faults.length > 0) yield { slots: [], faults };
    const step = plan === null ? await next : await Promise.race([next, plan.changed()]);
    if (step === null) continue;
    if (step.done === true) break;
    yield { slots: step.value, faults: [] };
    next = slots.next();
  }
  const faults = plan?.take() ?? [];
  if (faults.length > 0) yield { slots: [], faults };
}
