/** `GET /dag/:id/outline`: which tasks a graph has, and what each waits for. */
import { requireRun } from "../../auth/middleware.ts";
import { outlineOf } from "../../replies/graph/outline.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import type { Handlers } from "../../handler.ts";
import { graphOf } from "./changing-graph.ts";
import { findGraph } from "./find.ts";

export const dagOutlineHandlers = {
  "GET /dag/:id/outline": async (c) => c.json(await outlineIn(new RunCaller(c.env, requireRun(c)), c.req.param("id"))),
} satisfies Partial<Handlers>;

/** The outline of a run's graph. Throws a Refusal if it has none of that id. */
export async function outlineIn(run: RunCaller, id: string): Promise<object> {
  const { seq, view } = await findGraph(run, id);
  const graph = await graphOf(run, seq);
  if (graph === null) throw new Error(`the graph of ${view.id} is gone`);
  return outlineOf(view, graph);
}
