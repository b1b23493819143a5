/**
 * A call of a tool as an executor makes it: for `POST /tool_call` and for tasks of graphs alike. Its permit comes from the run, so its
 * limits and its line in the log are the same, whoever calls.
 */
import type { CallBody, Classification, Usage } from "../call.ts";
import type { Reason } from "../errors.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { acquireTool } from "../objects/clients/tool-permit.ts";
import { failed } from "../providers/classify.ts";
import { makeToolCall, type ToolCallEnd } from "../tools/call.ts";
import type { ToolHost } from "../tools/hosts.ts";
import { inputOf, inputRefusal, parametersOf, typedInput } from "../tools/input.ts";
import type { Tool } from "../tools/tool.ts";
import { checkToolUrl } from "../tools/url.ts";
import type { ToolAttempt } from "./attempt.ts";
import { timerWithSocket } from "./permit.ts";

/** A call whose permit was granted. */
export type GrantedCall = { callId: string; tool: Tool; input: unknown };

/** Calls a tool whose permit was granted, and returns the permit. Rejects only if the run object is unreachable. */
export async function callGranted(
  run: RunCaller,
  { callId, tool, input }: GrantedCall,
  { toolHosts, controller }: { toolHosts: readonly ToolHost[]; controller: AbortController },
): Promise<ToolCallEnd> {
  const named = { callId, tool: tool.name };
  const body = JSON.stringify({ tool_name: tool.name, input });
  const refusal = inputRefusal(tool, input, body);
  const checked = checkToolUrl(tool.url, toolHosts);
  const renewed = (): Promise<boolean> => run.callOnce<boolean>((stub) => stub.heartbeatTool(named));
  const timer = timerWithSocket({ run, owner: { kind: "tool", ...named }, renewed, controller });
  const deps = { fetch, now: Date.now, timer, controller };
  const end =
    refusal !== null
      ? uncalled(tool, refusal)
      : checked.ok
        ? await makeToolCall({ ...tool, url: checked.url }, { body, runId: run.runId }, deps)
        : uncalled(tool, notAllowed(tool, checked.problem));
  await run.callWithRetry<void>((stub) => stub.endTool(callId, end.report));
  return end;
}

function uncalled({ name: tool }: Tool, reason: Reason): ToolCallEnd {
  return { value: null, report: { tool, reason, status: null, latencyMs: 0, bytes: 0, attempts: 0 } };
}

/** The configuration has changed since the tool was registered. */
function notAllowed({ name }: Tool, problem: string): Reason {
  const message = `tool "${name}" may not be called any more: its URL ${problem}`;
  return { reason: "misconfigured", variable: "TOOL_HOSTS", message };
}

/** The tool calls of a run's slots. They never reject. */
export function toolAttempts(run: RunCaller, toolHosts: readonly ToolHost[]): ToolAttempt {
  return async ({ lease, controller, timer, headersArrived }, body) => {
    // A tool has answered once its call ends; no other call of this executor waits for its headers.
    headersArrived?.();
    const startedMs = Date.now();
    const stopTimer = timer(lease.timeoutMs, () => controller.abort());
    try {
      const ended = await attemptTool(run, lease.model, body, { toolHosts, controller });
      return { ...ended, latencyMs: Math.max(0, Date.now() - startedMs) };
    } catch {
      const reason: Reason = {
        reason: "internal",
        message: "the run could not be reached for the permit of a tool call",
      };
      return { ...failed("unknown", reason), latencyMs: Math.max(0, Date.now() - startedMs) };
    } finally {
      stopTimer();
    }
  };
}

const NO_USAGE: Usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: 0 };

async function attemptTool(
  run: RunCaller,
  name: string,
  body: CallBody,
  deps: { toolHosts: readonly ToolHost[]; controller: AbortController },
): Promise<Classification> {
  const { signal } = deps.controller;
  const call = { callId: crypto.randomUUID(), tool: name };
  const granted = await acquireTool(run, call, signal);
  if (granted === null || (granted.ok && signal.aborted)) {
    await run.callWithRetry<void>((stub) => stub.endTool(call.callId, null));
    return failed("rejected", { reason: "cancelled", message: "the task was stopped before its tool was called" });
  }
  if (!granted.ok) return failed(granted.reason.reason === "overloaded" ? "transient" : "rejected", granted.reason);
  const { tool } = granted;
  const input = typedInput(inputOf(body), parametersOf(tool));
  const { value, report } = await callGranted(run, { callId: call.callId, tool, input }, deps);
  if (report.reason === null) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return { kind: "success", text, model: name, finishReason: "stop", usage: NO_USAGE };
  }
  // What a tool has done before it failed is not known: only one that may be repeated is called again.
  return failed(mayRepeat(tool, report.reason) ? "transient" : "rejected", report.reason);
}

function mayRepeat({ idempotent }: Tool, reason: Reason): boolean {
  if (!idempotent) return false;
  return reason.reason === "upstream_timeout" || (reason.reason === "upstream_error" && reason.retryable === true);
}
