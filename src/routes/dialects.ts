/**
 * The names that other systems' clients call, in their dialect: `/llm_query` of shihwesley/rlm-sandbox, and those of
 * alexzhang13/rlm. The calls are `/query` and `/batch`; what differs is how they are asked for and how failures are told.
 */
import type { Context, Hono } from "hono";
import type { AppEnv } from "../context.ts";
import { jsonOf } from "../contract/body.ts";
import { DIALECT_BATCH, parseDialectQuery } from "../contract/dialects.ts";
import { invalid } from "../contract/errors.ts";
import type { ErrorStyle } from "../contract/fields.ts";
import { readBatch } from "../contract/large-batch.ts";
import { Refusal } from "../errors.ts";
import { answerBatch } from "./batch.ts";
import { tellFailedCall, type FailedCalls } from "./dialect-error.ts";
import { dialectBytes, dialectRun } from "./dialect-request.ts";
import { callRolloutTool } from "./dialect-tools.ts";
import { namedOf } from "./idempotency.ts";
import { answerQuery } from "./query.ts";
import { answerToolCall } from "./tool-call.ts";
import type { Protection } from "./under-run.ts";

export function mountDialects(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/llm_query", ...protect, (c) => query(c, "status"));
  app.post("/rlm_query", ...protect, (c) => query(c, "ok"));
  app.post("/rollout/:id/llm_query", ...protect, (c) => query(c, "ok"));
  app.post("/rollout/:id/rlm_query", ...protect, (c) => query(c, "ok"));
  for (const under of ["", "/rollout/:id"]) {
    app.post(`${under}/llm_query_batch`, ...protect, (c) => batch(c, "status", "bracket"));
    app.post(`${under}/llm_query_batched`, ...protect, (c) => batch(c, "ok", "rlm"));
    app.post(`${under}/rlm_query_batched`, ...protect, (c) => batch(c, "ok", "rlm"));
  }
  app.post("/rollout/:id/tool_call", ...protect, async (c) => answerToolCall(c, await dialectRun(c)));
  app.post("/rollout/:id/v1/rlm/tools", ...protect, callRolloutTool);
}

/** One call. A recursive one is plain here: where it stops being so is up to its caller, who can open a child run. */
async function query(c: Context<AppEnv>, failedCalls: FailedCalls): Promise<Response> {
  const runId = await dialectRun(c);
  const bytes = await dialectBytes(c);
  const body = jsonOf(bytes);
  const parsed = body.ok ? parseDialectQuery(body.value) : body;
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const { call, saysDepth } = parsed.value;
  // rlm's stub shares the path `/llm_query` with rlm-sandbox's, but says its depth and expects 200.
  const told = errorsAsked(c) ?? (saysDepth ? "ok" : failedCalls);
  return tellFailedCall(told, () => answerQuery(c, runId, { call, bytes }));
}

/** An ordered list of calls, as one group. */
async function batch(c: Context<AppEnv>, failedCalls: FailedCalls, style: ErrorStyle): Promise<Response> {
  const runId = await dialectRun(c);
  const bytes = await dialectBytes(c);
  const named = await namedOf(c, bytes);
  const parsed = readBatch(bytes, DIALECT_BATCH);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const request = { ...parsed.value, errorStyle: parsed.value.errorStyle ?? style };
  return tellFailedCall(errorsAsked(c) ?? failedCalls, () => answerBatch(c, runId, { request, named }));
}

/** `?errors=status`: a client whose only setting is its URL asks there for failures with an error's status. */
function errorsAsked(c: Context<AppEnv>): FailedCalls | null {
  const asked = c.req.query("errors");
  if (asked === undefined) return null;
  if (asked === "status" || asked === "ok") return asked;
  throw new Refusal(invalid("errors", "expected status or ok").reason);
}
