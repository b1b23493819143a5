/**
 * `POST /tool_call`, and the call of a run's tool for the routes that speak other systems' dialects. The call is made by
 * its client's Worker; the run object grants the permit and can withdraw it.
 */
import type { Context } from "hono";
import { RunCaller } from "../../objects/clients/caller.ts";
import { settled } from "../../objects/clients/settlements.ts";
import { acquireTool } from "../../objects/clients/tool-permit.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf } from "../../contract/body.ts";
import { utf8Bytes } from "../../contract/text.ts";
import { parseToolCall, type ToolCall } from "../../contract/tools.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { TOOL_CALL_BYTES_MAX } from "../../limits.ts";
import { tellFailedCall } from "../dialect-error.ts";
import { dialectBytes } from "../dialect-request.ts";
import { callGranted } from "../../executors/tool-task.ts";
import type { Handlers } from "../handler.ts";

export const toolCallHandlers = {
  "POST /tool_call": (c) => answerToolCall(c, requireRun(c)),
} satisfies Partial<Handlers>;

/** Answers a request for a run's tool, failures with the statuses that its clients know. */
export function answerToolCall(c: Context<AppEnv>, runId: string): Promise<Response> {
  return tellFailedCall("status", async () => {
    const body = jsonOf(await dialectBytes(c));
    if (!body.ok) throw new Refusal(body.reason);
    const call = parseToolCall(body.value);
    if (!call.ok) throw new Refusal(call.reason);
    const ended = await callTool(c, runId, call.value.name, call.value.input);
    if (!ended.ok) throw new Refusal(ended.reason);
    return Response.json({ result: ended.result });
  });
}

/** What a tool call ended as: the tool's own result (any JSON value), or why it failed. */
export type ToolResult = { ok: true; result: unknown } | { ok: false; reason: Reason };

/**
 * Calls a tool of a run with `input`, any JSON value, and adds a line to the run's log. Never rejects for what the tool
 * did; only if the run object is unreachable. Costs no money and counts as no LLM call.
 */
export async function callTool(c: Context<AppEnv>, runId: string, name: string, input: unknown): Promise<ToolResult> {
  const call = parseToolCall({ tool_name: name, input });
  if (!call.ok) return call;
  const body = JSON.stringify({ tool_name: call.value.name, input: call.value.input });
  if (utf8Bytes(body) > TOOL_CALL_BYTES_MAX) {
    const what = "the tool call";
    return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: TOOL_CALL_BYTES_MAX, param: "input" } };
  }
  const calling = callUnderPermit(c, runId, call.value);
  // If the client leaves, the call is stopped and its permit must still be returned.
  c.executionCtx.waitUntil(calling.catch(() => undefined));
  return await calling;
}

async function callUnderPermit(c: Context<AppEnv>, runId: string, { name, input }: ToolCall): Promise<ToolResult> {
  const run = new RunCaller(c.env, runId);
  const call = { callId: crypto.randomUUID(), tool: name };
  const { signal } = c.req.raw;
  const withdraw = (): void => void run.notify((stub) => stub.endTool(call.callId, null));
  signal.addEventListener("abort", withdraw);
  await settled(c.env, runId);
  const granted = await acquireTool(run, call, signal);
  signal.removeEventListener("abort", withdraw);
  if (granted === null || (granted.ok && signal.aborted)) {
    await run.callWithRetry<void>((stub) => stub.endTool(call.callId, null));
    return { ok: false, reason: { reason: "cancelled", message: "the client left before the tool was called" } };
  }
  c.set("remainingNanoUsd", granted.remainingNanoUsd);
  if (!granted.ok) return granted;
  const controller = new AbortController();
  signal.addEventListener("abort", () => controller.abort());
  const { toolHosts } = c.get("config");
  const made = { callId: call.callId, tool: granted.tool, input };
  const { value, report } = await callGranted(run, made, { toolHosts, controller });
  return report.reason === null ? { ok: true, result: value } : { ok: false, reason: report.reason };
}
