/**
 * One call of a tool: its request, the bounded answer, its result. The tool is sent its name, its input and the run's id, and
 * nothing else of the caller; redirects are not followed, because their targets are not checked.
 */
import { utf8Bytes } from "../contract/text.ts";
import type { ToolReport } from "../run/log.ts";
import type { Reason } from "../errors.ts";
import { TOOL_REPLY_BYTES_MAX } from "../limits.ts";
import type { StartTimer } from "../providers/exchange.ts";
import { discard, readBody } from "../providers/read-body.ts";
import { shownMessage } from "../providers/redact.ts";
import { readReply } from "./reply.ts";
import type { Tool } from "./tool.ts";

export type ToolCallDeps = {
  fetch: typeof fetch;
  /** Wall clock, ms since 1970. */
  now: () => number;
  timer: StartTimer;
  /** Ends the call when it is aborted: its client has gone, or its run was cancelled. */
  controller: AbortController;
};

/** The call's JSON body, and the run it is made for. */
export type ToolRequest = { body: string; runId: string };

/** What a call ended as: `value` is the tool's result if `report.reason` is null. */
export type ToolCallEnd = { value: unknown; report: ToolReport };

/** Tries of an idempotent tool's call when connections are lost. */
const TRIES_IDEMPOTENT = 2;

/** The result of one try. */
type Tried = { reason: Reason | null; value?: unknown; status: number | null; bytes: number; isLost?: boolean };

type Stop = "timeout" | "cancelled";

/** Calls a tool. Never rejects, and ends by the tool's time limit or the controller even if `fetch` heeds neither. */
export async function makeToolCall(tool: Tool, request: ToolRequest, deps: ToolCallDeps): Promise<ToolCallEnd> {
  const { controller } = deps;
  const startedMs = deps.now();
  const { promise: stopped, resolve } = Promise.withResolvers<Stop>();
  const cancel = (): void => resolve("cancelled");
  if (controller.signal.aborted) cancel();
  controller.signal.addEventListener("abort", cancel);
  const stopTimer = deps.timer(tool.timeoutMs, () => {
    resolve("timeout");
    controller.abort();
  });
  let attempts = 0;
  let tried: Tried | Stop;
  try {
    do {
      attempts += 1;
      tried = await Promise.race([tryOnce(tool, request, deps), stopped]);
    } while (typeof tried !== "string" && tried.isLost === true && tool.idempotent && attempts < TRIES_IDEMPOTENT);
  } finally {
    stopTimer();
    controller.signal.removeEventListener("abort", cancel);
  }
  const { reason, value, status, bytes } = typeof tried === "string" ? stoppedCall(tool, tried) : tried;
  const latencyMs = Math.max(0, deps.now() - startedMs);
  const report: ToolReport = { tool: tool.name, reason, status, latencyMs, bytes, attempts };
  return { value, report };
}

/** Never rejects: what `fetch` throws is a lost connection, or the abort that its caller knows of. */
async function tryOnce(tool: Tool, { body, runId }: ToolRequest, deps: ToolCallDeps): Promise<Tried> {
  const { signal } = deps.controller;
  // Called on its own: workerd's fetch refuses to be a method of another object.
  const { fetch } = deps;
  try {
    const response = await fetch(tool.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", "x-fanout-run": runId },
      body,
      redirect: "manual",
      signal,
    });
    if (signal.aborted) {
      await discard(response);
      return lost(tool);
    }
    return await read(tool, response);
  } catch {
    // What was thrown is not shown: runtimes quote addresses in it.
    return lost(tool);
  }
}

/** Rejects when the connection is lost before the answer's end. */
async function read(tool: Tool, response: Response): Promise<Tried> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await discard(response);
    return failed(tool, `answered with a redirect (${status}), which is not followed`, status);
  }
  const body = await readBody(response, TOOL_REPLY_BYTES_MAX);
  if (!body.ok) {
    const problem = body.why === "too_large" ? `more than ${TOOL_REPLY_BYTES_MAX} bytes` : "what is not UTF-8";
    return failed(tool, `answered with ${problem}`, status);
  }
  const bytes = utf8Bytes(body.text);
  if (!response.ok) return { ...failed(tool, `answered ${status}${excerptOf(body.text)}`, status), bytes };
  const reply = readReply(body.text, headers.get("content-type"));
  if (!reply.ok) return { ...failed(tool, reply.problem, status), bytes };
  return { reason: null, value: reply.result, status, bytes };
}

function excerptOf(text: string): string {
  const excerpt = shownMessage(text.replaceAll(/\p{Cc}/gu, " "), { apiKey: null, headers: {} });
  return excerpt === "" ? "" : `: ${excerpt}`;
}

function lost(tool: Tool): Tried {
  return { ...failed(tool, "lost the connection before it answered", null), isLost: true };
}

function failed({ name, idempotent }: Tool, problem: string, status: number | null): Tried {
  const retryable = idempotent && (status === null || status >= 500 || status === 429);
  const message = `tool "${name}" ${problem}`;
  return {
    reason: { reason: "upstream_error", upstream: labelOf(name), status, message, retryable },
    status,
    bytes: 0,
  };
}

function stoppedCall({ name, timeoutMs }: Tool, stop: Stop): Tried {
  const reason: Reason =
    stop === "timeout"
      ? { reason: "upstream_timeout", upstream: labelOf(name), timeoutMs }
      : { reason: "cancelled", message: "the tool call was cancelled while the tool worked on it" };
  return { reason, status: null, bytes: 0 };
}

/** How errors name a tool where others name an upstream. */
function labelOf(name: string): string {
  return `tool ${name}`;
}
