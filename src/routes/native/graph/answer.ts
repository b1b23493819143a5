/** Answering with a graph: as one JSON object, or as events while its tasks end. */
import type { Context } from "hono";
import type { AppEnv } from "../../../context.ts";
import type { CompiledGraph } from "../../../graph/types.ts";
import type { Framing } from "../../../respond/batch-lines.ts";
import { graphJson } from "../../../respond/graph/graph-json.ts";
import { graphCompleted, graphStarted, taskEvent } from "../../../respond/graph/graph-lines.ts";
import { SlotNames } from "../../../respond/graph/slot-names.ts";
import { graphAggregation } from "../../../respond/graph/graph-results.ts";
import type { GroupView, SlotView } from "../../../run-api/groups.ts";
import type { RunCaller } from "../../../run-client/caller.ts";
import { framingOf, JSON_PIECES, streamPieces, type GroupAnswer } from "../group-answer.ts";

/** Answers with a graph in the form that the client's `Accept` names, when or as its tasks end. */
export function answerGraph(c: Context<AppEnv>, group: GroupAnswer, graph: CompiledGraph): Response {
  const framing = framingOf(c.req.header("accept"));
  return framing === null
    ? streamPieces(c, group, endedJson(group, graph), JSON_PIECES)
    : streamPieces(c, group, events(group, graph, framing), framing);
}

/** The graph of a group; null if it has none. */
export async function graphOf(run: RunCaller, seq: number): Promise<CompiledGraph | null> {
  const json = await run.callWithRetry<string | null>((stub) => stub.graphJson(seq));
  return json === null ? null : parsed(json);
}

/** The graph as it is now, which may be running. */
export function answerLook(
  c: Context<AppEnv>,
  group: GroupAnswer,
  now: { view: GroupView; graph: CompiledGraph },
): Response {
  const slotsFrom = (index: number): Promise<SlotView[]> => group.reader.slotsFrom(index);
  return streamPieces(c, group, graphJson({ group: now.view, graph: now.graph, slotsFrom }), JSON_PIECES);
}

function parsed(json: string): CompiledGraph {
  return JSON.parse(json);
}

async function* endedJson({ reader }: GroupAnswer, graph: CompiledGraph): AsyncGenerator<string> {
  const group = await reader.ended();
  yield* graphJson({ group, graph, slotsFrom: (index) => reader.slotsFrom(index) });
}

async function* events(group: GroupAnswer, graph: CompiledGraph, { frame }: Framing): AsyncGenerator<string> {
  const { id: groupId, reader, effectiveParallel } = group;
  const names = new SlotNames(graph);
  const latencyMs = new Float64Array(graph.slots);
  let id = 1;
  const framed = (event: { type: string }): string => frame(event.type, id++, JSON.stringify(event));
  yield framed(graphStarted(groupId, graph, effectiveParallel));
  for await (const slots of reader.slotsAsTheyEnd()) {
    for (const slot of slots) latencyMs[slot.index] = slot.latencyMs;
    yield slots.map((slot) => framed(taskEvent(slot, names))).join("");
  }
  const view = await reader.ended();
  const combined = await graphAggregation(view, graph, (index) => reader.slotsFrom(index));
  yield framed(graphCompleted(view, graph, { latencyMs, ...combined }));
}
