/**
 * Tool calls in the run object: permits up to the run's width, and one line of the log for each call that had one. They
 * share no permits with LLM calls: a tool that asks this run for an answer would wait for the permit it holds.
 */
import type { ToolReport } from "../../src/engine/log.ts";
import type { Reason } from "../../src/errors.ts";
import type { GivenUp, ToolCallName } from "../../src/tools/permits.ts";
import type { RunCore } from "./core.ts";
import type { AcquireToolReply } from "./rpc.ts";
import { hasEnded } from "./settings.ts";

/** What tool calls need of the run. */
type ToolRun = Pick<RunCore, "settings" | "status" | "statusAt" | "state" | "tools" | "remainingNanoUsd">;

/** Wait advised to a tool call that found no permit, ms: tools take about as long. */
const AGAIN_MS = 1_000;

const LOST: Reason = { reason: "internal", message: "whoever made the call was lost, and what became of it" };

/** Puts a call in line for a permit, or takes up the place it has. `reply` is called when it is decided. */
export function askTool(
  core: ToolRun,
  call: ToolCallName,
  reply: (acquired: AcquireToolReply) => void,
  nowMs: number,
): void {
  const { settings, remainingNanoUsd } = core;
  const tool = settings.tools.find(({ name }) => name === call.tool);
  if (tool === undefined) {
    const names = settings.tools.map(({ name }) => name).join(", ");
    const what = `tool "${call.tool}" (this run has ${names === "" ? "none" : names})`;
    return reply({ ok: false, reason: { reason: "not_found", what }, remainingNanoUsd });
  }
  const decided = (granted: boolean): void => {
    const left = core.remainingNanoUsd;
    reply(
      granted
        ? { ok: true, tool, remainingNanoUsd: left }
        : { ok: false, reason: whyNot(core, nowMs), remainingNanoUsd: left },
    );
  };
  core.tools.ask(call, decided, nowMs);
}

function whyNot(core: ToolRun, nowMs: number): Reason {
  const status = core.statusAt(nowMs);
  if (hasEnded(status)) return { reason: "invalid_api_key", message: `the run is ${status}; open another` };
  const message = core.state.paused ? "the run is paused" : "too many tool calls of this run are in flight";
  return { reason: "overloaded", message, retryAfterMs: AGAIN_MS };
}

/** Keeps a call's permit alive. False: the call must stop. */
export function beatTool(core: ToolRun, call: ToolCallName, nowMs: number): boolean {
  return core.status !== "cancelled" && core.tools.beat(call, nowMs);
}

/** Takes a permit back and tells what the call came to; `report` null = it was never made. */
export function endTool(core: ToolRun, callId: string, report: ToolReport | null, nowMs: number): void {
  const isUntold = core.tools.end(callId);
  // The calls of a cancelled run were told when it was.
  if (isUntold && report !== null && core.status !== "cancelled") tell(core, report, nowMs);
}

/** What time and freed permits change, once in each turn. */
export function turnTools(core: ToolRun, nowMs: number): void {
  for (const call of core.tools.expire(nowMs)) tellGivenUp(core, call, LOST, nowMs);
  core.tools.grant(core.state.paused ? 0 : core.state.width, nowMs);
}

/** Gives up what is in flight. */
export function abortTools(core: ToolRun, reason: Reason, nowMs: number): void {
  for (const call of core.tools.abort(nowMs)) tellGivenUp(core, call, reason, nowMs);
}

function tellGivenUp(core: ToolRun, { tool, latencyMs }: GivenUp, reason: Reason, nowMs: number): void {
  tell(core, { tool, reason, status: null, latencyMs, bytes: 0, attempts: 1 }, nowMs);
}

function tell(core: ToolRun, report: ToolReport, nowMs: number): void {
  core.state.log.add({ event: "tool_called", ...report }, null, nowMs);
}
