/** `POST /dag/validate`: whether a graph would be accepted, its figures and its warnings. Nothing is stored, reserved or sent. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import type { GraphValidation } from "../../../contract/graph/replies.ts";
import type { Handlers } from "../../handler.ts";
import { requireRun } from "../../auth/middleware.ts";
import { planLinesOf } from "./plan-readers.ts";
import { readGraph } from "./read-graph.ts";

export const dagValidateHandlers = {
  "POST /dag/validate": validate,
} satisfies Partial<Handlers>;

async function validate(c: Context<AppEnv>): Promise<Response> {
  const { stats, warnings } = await readGraph(c, await planLinesOf(c, requireRun(c)));
  const { total, edges, slots, roots, parallelizable, maxDepth, maxWidth, criticalPath, criticalPathMs } = stats;
  const reply: GraphValidation = {
    object: "graph_validation",
    valid: true,
    warnings: warnings.map(({ code, message, tasks }) => ({ code, message, tasks: [...tasks] })),
    stats: {
      total,
      edges,
      slots,
      roots,
      parallelizable,
      max_depth: maxDepth,
      max_width: maxWidth,
      critical_path: [...criticalPath],
      critical_path_ms: criticalPathMs,
    },
  };
  return c.json(reply);
}
