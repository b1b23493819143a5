/**
 * Tool calls in the run object: permits up to the run's width, and one log event for each call that had a permit. They
 * share no permits with LLM calls: a tool that calls this run back would wait for the permit that its own call holds.
 */
import type { ToolReport } from "../../src/run/log.ts";
import type { Reason } from "../../src/errors.ts";
import { RUN_FULL_RETRY_AFTER_MS } from "../../src/limits.ts";
import type { AcquireToolReply, ToolCallName, ToolCallRequest } from "../../src/objects/methods/calls.ts";
import type { RevokedCall, ToolDecision } from "./memory/tool-permits.ts";
import type { RunState } from "./state.ts";
import { hasEnded } from "./status.ts";

/** What tool calls need of the run. */
type ToolRun = Pick<
  RunState,
  "settings" | "status" | "statusAt" | "engine" | "toolPermits" | "remainingNanoUsd" | "addSignal"
>;

const LOST: Reason = {
  reason: "internal",
  message: "the Worker that made the tool call was lost, and its result with it",
};

/** Queues a call for a permit; a call that is queued already keeps its position. `reply` is called with the decision. */
export function acquireTool(
  run: ToolRun,
  call: ToolCallRequest,
  reply: (acquired: AcquireToolReply) => void,
  nowMs: number,
): void {
  const { settings, remainingNanoUsd } = run;
  const tool = settings.tools.find(({ name }) => name === call.tool);
  if (tool === undefined) {
    const names = settings.tools.map(({ name }) => name).join(", ");
    const hint = `this run has ${names === "" ? "no tools" : names}`;
    return reply({ ok: false, reason: { reason: "not_found", what: `tool "${call.tool}"`, hint }, remainingNanoUsd });
  }
  const decided = (decision: ToolDecision): void => {
    const left = run.remainingNanoUsd;
    if (decision === "waits") reply({ ok: "wait" });
    else if (decision === "granted") reply({ ok: true, tool, remainingNanoUsd: left });
    else reply({ ok: false, reason: refusalReason(run, nowMs), remainingNanoUsd: left });
  };
  run.toolPermits.request(call, decided, nowMs);
}

function refusalReason(run: ToolRun, nowMs: number): Reason {
  const status = run.statusAt(nowMs);
  if (hasEnded(status)) return { reason: "invalid_api_key", message: `the run is ${status}; open another` };
  const message = run.engine.isPaused ? "the run is paused" : "too many tool calls of this run are in flight";
  return { reason: "overloaded", message, retryAfterMs: RUN_FULL_RETRY_AFTER_MS };
}

/** Renews a call's permit. False: the call must stop. */
export function renewToolPermit(
  run: Pick<ToolRun, "status" | "toolPermits">,
  call: ToolCallName,
  nowMs: number,
): boolean {
  return run.status !== "cancelled" && run.toolPermits.renew(call, nowMs);
}

/** Returns a permit and logs the call's result; `report` null = the call was never made. */
export function endTool(run: ToolRun, callId: string, report: ToolReport | null, nowMs: number): void {
  const isUnlogged = run.toolPermits.end(callId);
  // The calls of a cancelled run were logged when it was cancelled.
  if (isUnlogged && report !== null && run.status !== "cancelled") logCall(run, report, nowMs);
}

/** Applies what time and freed permits change, once in each turn. */
export function advanceTools(run: ToolRun, nowMs: number): void {
  for (const call of run.toolPermits.expire(nowMs)) logRevoked(run, call, LOST, nowMs);
  makeRepeat(run, run.toolPermits.grant(run.engine.isPaused ? 0 : run.engine.width, nowMs));
}

/** Refuses all calls that wait for a permit. */
export function refuseWaitingTools(run: Pick<ToolRun, "toolPermits" | "addSignal">): void {
  makeRepeat(run, run.toolPermits.refuseWaiting());
}

/** Makes Workers that wait at their sockets repeat their requests, which are decided by now. */
function makeRepeat(run: Pick<ToolRun, "addSignal">, calls: readonly ToolCallName[]): void {
  for (const call of calls) run.addSignal({ kind: "tool-permit", ...call }, { type: "again" });
}

/** Revokes the permits of all calls in flight. */
export function abortTools(run: ToolRun, reason: Reason, nowMs: number): void {
  for (const call of run.toolPermits.abort(nowMs)) logRevoked(run, call, reason, nowMs);
}

function logRevoked(run: ToolRun, { callId, tool, latencyMs }: RevokedCall, reason: Reason, nowMs: number): void {
  run.addSignal({ kind: "tool", callId, tool }, { type: "abort" });
  logCall(run, { tool, reason, status: null, latencyMs, bytes: 0, attempts: 1 }, nowMs);
}

function logCall(run: ToolRun, report: ToolReport, nowMs: number): void {
  run.engine.log.add({ event: "tool_called", ...report }, null, nowMs);
}
