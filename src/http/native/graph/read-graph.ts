/** The graph in the body of a request: parsed, compiled, or refused with all that is wrong with it. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import { jsonOf, readBytes, readJsonBytes, textOf } from "../../../contract/body.ts";
import { invalid, type Parsed } from "../../../contract/errors.ts";
import { dagParsing, type DagRequest } from "../../../contract/graph/dag.ts";
import { Refusal } from "../../../errors.ts";
import { compileGraph, type Compilation } from "../../../run/graph/compile.ts";
import { graphReason } from "../../../run/graph/faults.ts";
import type { PlanLines } from "../../../run/graph/plan/lines.ts";
import { inSlices, pause } from "../../../text/bytes/slices.ts";
import { requireRun } from "../../auth/middleware.ts";
import { graphWithContexts } from "../../contexts/find.ts";
import { graphWithTools } from "../tool-use.ts";
import { bodyRoom } from "../../body-bound.ts";

/** A valid graph, with the bytes of its body, by which an Idempotency-Key is compared. */
export type ReadGraph = Omit<Extract<Compilation, { ok: true }>, "ok"> & { request: DagRequest; bytes: Uint8Array };

/** Throws a Refusal if the body is no graph, or an invalid one. `lines` read a body that is a plan. */
export async function readGraph(c: Context<AppEnv>, lines?: PlanLines<unknown>): Promise<ReadGraph> {
  const read = lines === undefined ? readJsonBytes : readBytes;
  const body = await read(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const value = lines === undefined ? jsonOf(body.value) : planOf(body.value, lines);
  if (!value.ok) throw new Refusal(value.reason);
  const parsed = await inSlices(dagParsing(value.value), pause);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const runId = requireRun(c);
  const request = await graphWithContexts(c, runId, await graphWithTools(c, runId, parsed.value));
  const { tiers, ...plain } = request;
  const compiled = compileGraph(tiers === "strict" ? { ...plain, tiers } : plain);
  if (!compiled.ok) throw new Refusal(graphReason(compiled.faults));
  const { stats, warnings } = compiled;
  const { settings } = request;
  const graph = Object.keys(settings).length === 0 ? compiled.graph : { ...compiled.graph, settings };
  return { graph, stats, warnings, request, bytes: body.value };
}

/** A plan as the body of a graph. A bad line refuses all of it: nothing has started yet. */
function planOf(bytes: Uint8Array, lines: PlanLines<unknown>): Parsed<unknown> {
  const text = textOf(bytes);
  if (!text.ok) return text;
  const events = [...lines.feed(text.value), ...lines.end()];
  const bad = events.flatMap((event) => (event.kind === "bad" ? [`line ${event.line} ${event.message}`] : []));
  if (bad.length > 0) return invalid(null, `is no plan: ${bad.join("; ")}`);
  return { ok: true, value: { tasks: events.flatMap((event) => (event.kind === "task" ? [event.task] : [])) } };
}
