/**
 * `POST /mcp`: the gateway as a server of the Model Context Protocol, over streamable HTTP and without sessions: each request
 * stands for itself, with a run token as its credential, and is answered with JSON.
 */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import { isAllowedOrigin } from "../auth/origins.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, readJsonBytes, shapeFault } from "../../contract/body.ts";
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
} from "../../contract/mcp.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { JSON_VALUES_MAX } from "../../limits.ts";
import { VERSION } from "../../version.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Gateway, Handlers } from "../handler.ts";
import { callTool, listedTools, type Ask } from "./tools.ts";

/** Codes of JSON-RPC. */
const PARSE_ERROR = -32_700;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

export const mcpHandlers = {
  "POST /mcp": async (c, gateway) => {
    requireRun(c);
    checkOrigin(c);
    const bytes = await readJsonBytes(c.req.raw, bodyRoom(c));
    if (!bytes.ok) throw new Refusal(bytes.reason);
    const unfit = shapeFault(bytes.value, JSON_VALUES_MAX);
    if (unfit !== null) throw new Refusal(unfit.reason);
    const body = jsonOf(bytes.value);
    if (!body.ok) return c.json({ jsonrpc: "2.0", id: null, error: parseError(body.reason) }, 400);
    const message = mcpMessage.safeParse(body.value);
    if (!message.success) {
      // A client's answer to a request of the server: there are none.
      if (isAnswer(body.value)) return c.body(null, 202);
      throw new Refusal(zodReason(message.error));
    }
    checkVersion(c, message.data);
    if (message.data.id === undefined) return c.body(null, 202);
    const answer = await answerTo(message.data, askOf(gateway, c));
    return c.json({ jsonrpc: "2.0", id: message.data.id, ...answer });
  },
} satisfies Partial<Handlers>;

/** The protocol demands it of servers that a page could reach under another name: a page of a strange origin is refused. */
function checkOrigin(c: Context<AppEnv>): void {
  const origin = c.req.header("origin");
  if (origin === undefined || isAllowedOrigin(c.get("config").corsOrigins, origin)) return;
  const message = "pages of this origin may not call the gateway; the operator lists those that may in CORS_ORIGINS";
  throw new Refusal({ reason: "forbidden", message });
}

/** The header names the version that was agreed on. Clients of the first versions send none; an `initialize` agrees on it. */
function checkVersion(c: Context<AppEnv>, { method }: McpMessage): void {
  const version = c.req.header(VERSION_HEADER);
  if (version === undefined || method === "initialize" || MCP_VERSIONS.some((known) => known === version)) return;
  const message = `${VERSION_HEADER}: is not spoken here; expected ${MCP_VERSIONS.join(", ")}`;
  throw new Refusal({ reason: "invalid_request", message, param: VERSION_HEADER });
}

const VERSION_HEADER = "mcp-protocol-version";

function parseError(reason: Reason): NonNullable<McpAnswer["error"]> {
  return { code: PARSE_ERROR, message: "message" in reason ? reason.message : "the body is not JSON" };
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
function askOf(gateway: Gateway, c: Context<AppEnv>): Ask {
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
    return await gateway.fetch(request, c.env, c.executionCtx);
  };
}
