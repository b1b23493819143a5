/** `POST /tool_call`, and the call of a run's tool for the routes that speak other systems' dialects. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { Reason } from "../errors.ts";

/** What a tool call ended as: the tool's own result, or why there is none. */
export type ToolResult = { ok: true; result: unknown } | { ok: false; reason: Reason };

/** Calls a tool of a run with `input`. Never rejects for what the tool did; only if the run object is unreachable. */
export async function callTool(
  _c: Context<AppEnv>,
  _runId: string,
  name: string,
  _input: unknown,
): Promise<ToolResult> {
  return { ok: false, reason: { reason: "not_found", what: `tool "${name}"` } };
}
