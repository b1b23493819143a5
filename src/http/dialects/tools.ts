/** `POST /rollout/:id/v1/rlm/tools`: `llm_batch` as a group of the run, and the run's own tools. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { IdempotencyKey } from "../../objects/methods/types.ts";
import { jsonOf } from "../../contract/body.ts";
import {
  parseLlmBatch,
  parseDialectToolCall,
  toolInput,
  type DialectToolCall,
  type LlmBatch,
} from "../../contract/dialects/tools.ts";
import { Refusal } from "../../errors.ts";
import { DIALECT_CONCURRENCY, NAME_CHARS_MAX } from "../../limits.ts";
import { llmBatchJson } from "../replies/dialect-tool.ts";
import { openBatch, widthOf } from "../native/batch.ts";
import { tellFailedCall } from "../dialect-error.ts";
import { dialectBytes, dialectRun } from "../dialect-request.ts";
import { JSON_PIECES, streamPieces } from "../native/group-answer.ts";
import { namedOf } from "../native/idempotency.ts";
import { callTool } from "../native/tool-call.ts";

export async function callRolloutTool(c: Context<AppEnv>): Promise<Response> {
  const runId = await dialectRun(c);
  const bytes = await dialectBytes(c);
  const body = jsonOf(bytes);
  const parsed = body.ok ? parseDialectToolCall(body.value) : body;
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const call = parsed.value;
  if (call.name !== "llm_batch") return tellFailedCall("status", () => answerTool(c, runId, call));
  const named = await namedOf(c, bytes);
  const batch = parseLlmBatch(call);
  if (!batch.ok) throw new Refusal(batch.reason);
  return tellFailedCall("status", () => answerLlmBatch(c, runId, { ...batch.value, named }));
}

async function answerLlmBatch(
  c: Context<AppEnv>,
  runId: string,
  { request, count, indexes, named }: LlmBatch & { named: IdempotencyKey | null },
): Promise<Response> {
  if (indexes.length === 0) return answerUnsent(c, runId, count);
  const concurrency = request.concurrency ?? DIALECT_CONCURRENCY.verifiers;
  const opened = await openBatch(c, runId, { request: { ...request, concurrency }, named });
  const { reader } = opened;
  async function* pieces(): AsyncGenerator<string> {
    const group = await reader.ended();
    yield* llmBatchJson({ count, indexes, group, slotsFrom: (index) => reader.slotsFrom(index) });
  }
  return streamPieces(c, opened, pieces(), JSON_PIECES);
}

/** A list in which no prompt is a text: nothing starts, but the run must not have ended. */
async function answerUnsent(c: Context<AppEnv>, runId: string, count: number): Promise<Response> {
  await widthOf(c, runId);
  const slotsFrom = () => Promise.resolve([]);
  let json = "";
  for await (const piece of llmBatchJson({ count, indexes: [], group: null, slotsFrom })) json += piece;
  return c.body(json, 200, { "content-type": JSON_PIECES.contentType });
}

async function answerTool(c: Context<AppEnv>, runId: string, call: DialectToolCall): Promise<Response> {
  const called = await callTool(c, runId, call.name, toolInput(call));
  if (called.ok) return c.json({ result: called.result ?? null });
  // In their words, whatever a tool that is not there is called elsewhere.
  if (called.reason.reason !== "not_found") throw new Refusal(called.reason);
  throw new Refusal({ reason: "not_found", what: `Tool '${call.name.slice(0, NAME_CHARS_MAX)}'` });
}
