/**
 * `POST /mcp`: the gateway as a server of the Model Context Protocol, over streamable HTTP and without sessions: each request
 * stands for itself, with a run token as its credential, and is answered with JSON. The protocol is the SDK's, in all its
 * revisions; what is here is who may call, how large a body may be, and where the tools lead.
 */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import { isAllowedOrigin } from "../auth/origins.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, readJsonBytes, shapeFault } from "../../contract/body.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { JSON_VALUES_MAX } from "../../limits.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Gateway, Handlers } from "../handler.ts";
import type { Ask } from "./tools.ts";

/** Code of JSON-RPC. */
const PARSE_ERROR = -32_700;

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
    if (Array.isArray(body.value)) throw new Refusal(SEVERAL);
    // At the first message: the SDK builds thousands of schemas when it is evaluated, and most isolates serve no message.
    const { answerTo } = await import("./answer.ts");
    return await answerTo(withoutBody(c), body.value, askOf(gateway, c));
  },
} satisfies Partial<Handlers>;

/** The protocol demands it of servers that a page could reach under another name: a page of a strange origin is refused. */
function checkOrigin(c: Context<AppEnv>): void {
  const origin = c.req.header("origin");
  if (origin === undefined || isAllowedOrigin(c.get("config").corsOrigins, origin)) return;
  const message = "pages of this origin may not call the gateway; the operator lists those that may in CORS_ORIGINS";
  throw new Refusal({ reason: "forbidden", message });
}

function parseError(reason: Reason): { code: number; message: string } {
  return { code: PARSE_ERROR, message: "message" in reason ? reason.message : "the body is not JSON" };
}

/** Each message of a list would be a request to this gateway, so that one small body could start thousands of them. */
const SEVERAL: Reason = {
  reason: "invalid_request",
  message:
    "expected one message, not a list of them; send each in a request of its own, or many prompts with llm_batch",
  param: null,
};

/** The request without its body, which is read. It takes any answer: clients that name none get JSON too. */
function withoutBody(c: Context<AppEnv>): Request {
  const headers = new Headers(c.req.raw.headers);
  headers.set("accept", "application/json, text/event-stream");
  headers.set("content-type", "application/json");
  return new Request(c.req.url, { method: "POST", headers, signal: c.req.raw.signal });
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
