/**
 * A call of a tool as an executor makes it: for `POST /tool_call`, for tasks of graphs and for models alike. Its permit comes from the run, so its
 * limits and its line in the log are the same, whoever calls.
 */
import type { AskedCall, CallBody, Classification, Outcome, ToolRound, Usage } from "../call.ts";
import { toWire, type Reason } from "../errors.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { UNKNOWN_RESULT } from "../run/continuations/tools.ts";
import { LOST } from "../run/gates/retry.ts";
import { acquireTool } from "../objects/clients/tool-permit.ts";
import { failed } from "../providers/classify.ts";
import { cutResult, readArguments } from "../tools/asked.ts";
import { makeToolCall, type ToolCallEnd } from "../tools/call.ts";
import type { ToolHost } from "../tools/hosts.ts";
import { inputOf, inputRefusal, parametersOf, typedInput } from "../tools/input.ts";
import type { Tool } from "../tools/tool.ts";
import { checkToolUrl } from "../tools/url.ts";
import type { Attempt, ToolAttempts } from "./attempt.ts";
import { timerWithSocket } from "./permit.ts";

type ToolDeps = { toolHosts: readonly ToolHost[]; controller: AbortController };

/** A call whose permit was granted. */
export type GrantedCall = { callId: string; tool: Tool; input: unknown };

/** Calls a tool whose permit was granted, and returns the permit. Rejects only if the run object is unreachable. */
export async function callGranted(
  run: RunCaller,
  { callId, tool, input }: GrantedCall,
  deps: ToolDeps,
): Promise<ToolCallEnd> {
  const end = await madeCall(run, { callId, tool, input }, deps);
  await run.callWithRetry<void>((stub) => stub.endTool(callId, end.report));
  return end;
}

/** Calls a tool whose permit was granted. The permit is the caller's to return. */
async function madeCall(
  run: RunCaller,
  { callId, tool, input }: GrantedCall,
  { toolHosts, controller }: ToolDeps,
): Promise<ToolCallEnd> {
  const named = { callId, tool: tool.name };
  const body = JSON.stringify({ tool_name: tool.name, input });
  const refusal = inputRefusal(tool, input, body);
  const checked = checkToolUrl(tool.url, toolHosts);
  const renewed = (): Promise<boolean> => run.callOnce<boolean>((stub) => stub.heartbeatTool(named));
  const timer = timerWithSocket({ run, owner: { kind: "tool", ...named }, renewed, controller });
  const deps = { fetch, now: Date.now, timer, controller };
  if (refusal !== null) return uncalled(tool, refusal);
  if (!checked.ok) return uncalled(tool, notAllowed(tool, checked.problem));
  return await makeToolCall({ ...tool, url: checked.url }, { body, runId: run.runId }, deps);
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
export function toolAttempts(run: RunCaller, toolHosts: readonly ToolHost[]): ToolAttempts {
  return {
    task: (attempt, body) => timed(attempt, (controller) => attemptTask(run, attempt, body, { toolHosts, controller })),
    round: (attempt, round) =>
      timed(attempt, (controller, isLate) => attemptRound(run, round, { toolHosts, controller, isLate })),
  };
}

/** Makes an attempt that calls tools, within the time of its lease. */
async function timed(
  { lease, controller, timer, headersArrived }: Attempt,
  make: (controller: AbortController, isLate: () => boolean) => Promise<Classification>,
): Promise<Outcome> {
  // A tool has answered once its call ends; no other call of this executor waits for its headers.
  headersArrived?.();
  const startedMs = Date.now();
  let isLate = false;
  const stopTimer = timer(lease.timeoutMs, () => {
    isLate = true;
    controller.abort();
  });
  try {
    const ended = await make(controller, () => isLate);
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
}

/** Makes the calls that a model asks for, side by side, each under a permit of its own. What fails is told to the model. */
async function attemptRound(
  run: RunCaller,
  { calls, isRepeated, resultBytesMax }: ToolRound,
  { isLate, ...deps }: ToolDeps & { isLate: () => boolean },
): Promise<Classification> {
  const results = await Promise.all(calls.map((call) => resultOf(run, call, isRepeated, deps)));
  const made = results.filter((each) => each !== null);
  if (made.length < calls.length || deps.controller.signal.aborted) {
    // Tools may have been called: what they have done is not known to the slot. Nobody has cancelled a round that took too long.
    return failed(
      "unknown",
      isLate() ? LOST : { reason: "cancelled", message: "the tool calls of this answer were stopped" },
    );
  }
  const text = JSON.stringify(made.map((result) => cutResult(result, resultBytesMax)));
  return { kind: "success", text, model: "", finishReason: "stop", usage: NO_USAGE };
}

/** The result of one call as the model reads it; null = it was stopped. */
async function resultOf(
  run: RunCaller,
  { name, arguments: written }: AskedCall,
  isRepeated: boolean,
  deps: ToolDeps,
): Promise<string | null> {
  const { signal } = deps.controller;
  const input = readArguments(written);
  if (input === null) return `Error: the arguments of "${name}" are not a JSON object`;
  for (;;) {
    const call = { callId: crypto.randomUUID(), tool: name };
    const granted = await acquireTool(run, call, signal);
    const isStopped = granted === null || signal.aborted;
    const isRefused = granted?.ok === false;
    const mayCall = !isStopped && granted.ok && !(isRepeated && !granted.tool.idempotent);
    if (mayCall) {
      const { value, report } = await madeCall(run, { callId: call.callId, tool: granted.tool, input }, deps);
      // The model need not wait for the line in the log; a permit that is not returned ends by itself, with a line.
      run.callWithRetry<void>((stub) => stub.endTool(call.callId, report)).catch(() => undefined);
      if (report.reason !== null) return `Error: ${toWire(report.reason).error.message}`;
      return textOf(value);
    }
    if (!isRefused) await run.callWithRetry<void>((stub) => stub.endTool(call.callId, null));
    if (isStopped) return null;
    if (granted.ok) return UNKNOWN_RESULT;
    const { reason } = granted;
    if (reason.reason !== "overloaded") return `Error: ${toWire(reason).error.message}`;
    // The other calls of this run hold all permits: this one waits, until the time of its attempt is over.
    await scheduler.wait(reason.retryAfterMs);
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const NO_USAGE: Usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: 0 };

async function attemptTask(
  run: RunCaller,
  { lease: { model: name } }: Attempt,
  body: CallBody,
  deps: ToolDeps,
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
    return { kind: "success", text: textOf(value), model: name, finishReason: "stop", usage: NO_USAGE };
  }
  // What a tool has done before it failed is not known: only one that may be repeated is called again.
  return failed(mayRepeat(tool, report.reason) ? "transient" : "rejected", report.reason);
}

function mayRepeat({ idempotent }: Tool, reason: Reason): boolean {
  if (!idempotent) return false;
  return reason.reason === "upstream_timeout" || (reason.reason === "upstream_error" && reason.retryable === true);
}
