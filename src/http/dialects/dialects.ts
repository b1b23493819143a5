/**
 * The names that other systems' clients call, in their dialect: `/llm_query` of shihwesley/rlm-sandbox, and those of
 * alexzhang13/rlm. The calls are `/query` and `/batch`; they differ in the form of requests and failures.
 */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { jsonOf } from "../../contract/body.ts";
import { DIALECT_BATCH, parseDialectQuery } from "../../contract/dialects/dialects.ts";
import { invalid } from "../../contract/errors.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import { inSlices, pause } from "../../text/bytes/slices.ts";
import { batchReading } from "../../contract/large-batch.ts";
import { Refusal } from "../../errors.ts";
import { DIALECT_CONCURRENCY } from "../../limits.ts";
import { batchWithContexts } from "../contexts/find.ts";
import { batchWithTools } from "../native/tool-use.ts";
import { answerBatch } from "../native/batch.ts";
import { tellFailedCall, type FailedCalls } from "../dialect-error.ts";
import { dialectBytes, dialectRun } from "../dialect-request.ts";
import { callRolloutTool } from "./tools.ts";
import { namedOf } from "../native/idempotency.ts";
import { answerQuery } from "../native/query.ts";
import { answerToolCall } from "../native/tool-call.ts";
import type { Handlers } from "../handler.ts";

/** What a batch has unless its request says otherwise, as the dialect's own server did. */
type BatchDefaults = { failedCalls: FailedCalls; errorStyle: ErrorStyle; concurrency: number };

const RLM_SANDBOX: BatchDefaults = {
  failedCalls: "status",
  errorStyle: "bracket",
  concurrency: DIALECT_CONCURRENCY.rlmSandbox,
};
const RLM: BatchDefaults = { failedCalls: "ok", errorStyle: "rlm", concurrency: DIALECT_CONCURRENCY.rlm };

export const dialectHandlers = {
  "POST /llm_query": (c) => query(c, "status"),
  "POST /rlm_query": (c) => query(c, "ok"),
  "POST /rollout/:id/llm_query": (c) => query(c, "ok"),
  "POST /rollout/:id/rlm_query": (c) => query(c, "ok"),
  "POST /llm_query_batch": (c) => batch(c, RLM_SANDBOX),
  "POST /rollout/:id/llm_query_batch": (c) => batch(c, RLM_SANDBOX),
  "POST /llm_query_batched": (c) => batch(c, RLM),
  "POST /rollout/:id/llm_query_batched": (c) => batch(c, RLM),
  "POST /rlm_query_batched": (c) => batch(c, RLM),
  "POST /rollout/:id/rlm_query_batched": (c) => batch(c, RLM),
  "POST /rollout/:id/tool_call": async (c) => answerToolCall(c, await dialectRun(c)),
  "POST /rollout/:id/v1/rlm/tools": callRolloutTool,
} satisfies Partial<Handlers>;

/** One call. A recursive one is plain here: where it stops being so is up to its caller, who can open a child run. */
async function query(c: Context<AppEnv>, failedCalls: FailedCalls): Promise<Response> {
  const runId = await dialectRun(c);
  const bytes = await dialectBytes(c);
  const body = jsonOf(bytes);
  const parsed = body.ok ? parseDialectQuery(body.value) : body;
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const { call, hasDepth } = parsed.value;
  // rlm's stub shares the path `/llm_query` with rlm-sandbox's, but sends its depth and expects 200.
  const failureStatus = requestedErrors(c) ?? (hasDepth ? "ok" : failedCalls);
  return tellFailedCall(failureStatus, () => answerQuery(c, runId, { call, bytes }));
}

/** An ordered list of calls, as one group. */
async function batch(c: Context<AppEnv>, defaults: BatchDefaults): Promise<Response> {
  const runId = await dialectRun(c);
  const bytes = await dialectBytes(c);
  const named = await namedOf(c, bytes);
  const parsed = await inSlices(batchReading(bytes, DIALECT_BATCH), pause);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const errorStyle = parsed.value.errorStyle ?? defaults.errorStyle;
  const found = await batchWithContexts(c, runId, await batchWithTools(c, runId, parsed.value));
  const request = { ...found, errorStyle, concurrency: parsed.value.concurrency ?? defaults.concurrency };
  return tellFailedCall(requestedErrors(c) ?? defaults.failedCalls, () =>
    answerBatch(c, runId, { request, named, awaitsConfirmation: true }),
  );
}

/** `?errors=status`: a client whose only setting is its URL requests failures with an error's status there. */
function requestedErrors(c: Context<AppEnv>): FailedCalls | null {
  const requested = c.req.query("errors");
  if (requested === undefined) return null;
  if (requested === "status" || requested === "ok") return requested;
  throw new Refusal(invalid("errors", "expected status or ok").reason);
}
