/** `POST /dag`: calls that depend on each other, opened as one group. */
import type { Context } from "hono";
import { requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { parseQuote } from "../../../contract/batch.ts";
import { prefersAsync } from "../../../contract/groups.ts";
import { Refusal } from "../../../errors.ts";
import type { Handlers } from "../../handler.ts";
import { answerAccepted, isAccepted } from "../group-answer.ts";
import { namedOf } from "../idempotency.ts";
import { answerGraph } from "./answer.ts";
import { openGraph } from "./open.ts";
import { planLinesOf } from "./plan-readers.ts";
import { executePlan } from "./plan-stream.ts";
import { quoteDag } from "./quote.ts";
import { readGraph } from "./read-graph.ts";

export const dagHandlers = {
  "POST /dag": dag,
} satisfies Partial<Handlers>;

async function dag(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const isQuote = parseQuote(c.req.query("quote"));
  if (!isQuote.ok) throw new Refusal(isQuote.reason);
  const isAsync = prefersAsync(c.req.header("prefer"));
  const lines = await planLinesOf(c, runId);
  const { body } = c.req.raw;
  // A key is compared with the whole request, and a client that does not wait cannot send more.
  const isWhole = isQuote.value || isAsync || c.req.header("idempotency-key") !== undefined;
  if (lines !== undefined && body !== null && !isWhole) return executePlan(c, runId, { body, lines });
  const { graph, request, bytes } = await readGraph(c, lines);
  if (isQuote.value) return quoteDag(c, runId, { graph, request });
  const opened = await openGraph(c, runId, { request, graph, named: await namedOf(c, bytes) });
  const { group } = opened;
  if (isAccepted(c, group)) return answerAccepted(c, group, await group.reader.look());
  return answerGraph(c, group, opened.graph);
}
