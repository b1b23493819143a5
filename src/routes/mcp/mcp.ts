/**
 * `POST /mcp`: the gateway as a server of the Model Context Protocol, over streamable HTTP and without sessions: each request
 * stands for itself, with a run token as its credential, and is answered with JSON.
 */
import type { Context, Hono } from "hono";
import { requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { parseBody } from "../../contract/body.ts";
import { zodReason } from "../../contract/errors.ts";
import {
  initializeParams,
  isToolName,
  MCP_ARGUMENTS,
  MCP_VERSIONS,
  mcpMessage,
  toolCallParams,
  type McpAnswer,
  type McpMessage,
} from "../../contract/mcp/messages.ts";
import { Refusal } from "../../errors.ts";
import { VERSION } from "../../version.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Protection } from "../under-run.ts";
import { callTool, listedTools, type Ask } from "./tools.ts";

/** Codes of JSON-RPC. */
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

export function mountMcp(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/mcp", ...protect, async (c) => {
    requireRun(c);
    const body = await parseBody(c.req.raw, bodyRoom(c));
    if (!body.ok) throw new Refusal(body.reason);
    const message = mcpMessage.safeParse(body.value);
    if (!message.success) {
      // A client's answer to a request of the server: there are none.
      if (isAnswer(body.value)) return c.body(null, 202);
      throw new Refusal(zodReason(message.error));
    }
    if (message.data.id === undefined) return c.body(null, 202);
    const answer = await answerTo(message.data, askOf(app, c));
    return c.json({ jsonrpc: "2.0", id: message.data.id, ...answer });
  });
}

function isAnswer(value: unknown): boolean {
  return typeof value === "object" && value !== null && !("method" in value) && ("result" in value || "error" in value);
}

type Answer = Pick<McpAnswer, "result" | "error">;

async function answerTo({ method, params = {} }: McpMessage, ask: Ask): Promise<Answer> {
  if (method === "initialize") return initialized(params);
  if (method === "ping") return { result: {} };
  if (method === "tools/list") return { result: { tools: listedTools() } };
  if (method !== "tools/call")
    return { error: { code: METHOD_NOT_FOUND, message: `there is no method ${method.slice(0, 100)}` } };
  const call = toolCallParams.safeParse(params);
  if (!call.success) return { error: { code: INVALID_PARAMS, message: "expected params with a name and arguments" } };
  const { name, arguments: given = {} } = call.data;
  if (!isToolName(name)) return { error: { code: INVALID_PARAMS, message: `there is no tool ${name.slice(0, 100)}` } };
  const args = MCP_ARGUMENTS[name].safeParse(given);
  if (!args.success) {
    const reason = zodReason(args.error);
    return { error: { code: INVALID_PARAMS, message: "message" in reason ? reason.message : "invalid arguments" } };
  }
  return { result: await callTool(name, args.data, ask) };
}

/** A client that speaks none of our versions gets the newest, and decides. */
function initialized(params: unknown): Answer {
  const asked = initializeParams.safeParse(params);
  const known = MCP_VERSIONS.find((version) => asked.success && version === asked.data.protocolVersion);
  const instructions =
    "Calls of these tools spend the budget of one run. Use llm_batch for independent prompts: they run at the same time.";
  return {
    result: {
      protocolVersion: known ?? MCP_VERSIONS[0],
      capabilities: { tools: {} },
      serverInfo: { name: "fanout", version: VERSION },
      instructions,
    },
  };
}

/** Requests to this application itself, for the caller's run; they end when the caller leaves. */
function askOf(app: Hono<AppEnv>, c: Context<AppEnv>): Ask {
  const headers = new Headers({ "content-type": "application/json" });
  for (const name of ["authorization", "x-api-key", "x-fanout-run"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  return async (path, body) => {
    const init = { method: body === undefined ? "GET" : "POST", headers, signal: c.req.raw.signal };
    const request = new Request(
      new URL(path, c.req.url),
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    );
    return await app.fetch(request, c.env, c.executionCtx);
  };
}
