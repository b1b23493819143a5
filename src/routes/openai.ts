/** OpenAI's API under a run token: what spends passes through, what an upstream keeps is asked of the one that keeps it. */
import type { Context, Hono } from "hono";
import { runOf } from "../../durable-objects/address.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../errors.ts";
import { NAME_CHARS_MAX } from "../limits.ts";
import { answerHeaders, passHeaders } from "../upstream/endpoints.ts";
import { passThrough } from "./pass-through.ts";
import { redactedStream } from "../upstream/pass-redact.ts";
import type { Protection } from "./under-run.ts";

export function mountOpenAi(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/v1/chat/completions", ...protect, (c) => passThrough(c, "chat"));
  app.post("/v1/completions", ...protect, (c) => passThrough(c, "completions"));
  app.post("/v1/embeddings", ...protect, (c) => passThrough(c, "embeddings"));
  app.post("/v1/responses", ...protect, (c) => passThrough(c, "responses"));
  app.get("/v1/responses/:id", ...protect, (c) => askKeeper(c, "GET", ""));
  app.delete("/v1/responses/:id", ...protect, (c) => askKeeper(c, "DELETE", ""));
  app.post("/v1/responses/:id/cancel", ...protect, (c) => askKeeper(c, "POST", "/cancel"));
  app.get("/v1/responses/:id/input_items", ...protect, (c) => askKeeper(c, "GET", "/input_items"));
}

/** Query parameters of a kept response that mean something to its upstream. */
const QUERY = ["after", "include", "include[]", "include_obfuscation", "limit", "order", "starting_after", "stream"];

/** Asks the upstream that keeps a response of this run's. It costs nothing there, so nothing is reserved. */
async function askKeeper(c: Context<AppEnv>, method: "GET" | "DELETE" | "POST", rest: string): Promise<Response> {
  const runId = requireRun(c);
  const id = c.req.param("id") ?? "";
  const keeper = await keeperOf(c, runId, id);
  const upstream = c.get("config").upstreams.find(({ name }) => name === keeper);
  if (upstream === undefined)
    throw new Refusal({ reason: "not_found", what: `response ${id.slice(0, NAME_CHARS_MAX)}` });
  const url = new URL(`${upstream.baseUrl}/responses/${encodeURIComponent(id)}${rest}`);
  for (const name of QUERY) for (const value of c.req.queries(name) ?? []) url.searchParams.append(name, value);
  const headers = passHeaders(upstream, (name) => c.req.header(name));
  let answer: Response;
  try {
    answer = await fetch(url, { method, headers, redirect: "manual", signal: c.req.raw.signal });
  } catch {
    const message = `${upstream.name} could not be asked for the response that it keeps`;
    throw new Refusal({ reason: "upstream_error", upstream: upstream.name, status: null, message, retryable: true });
  }
  const { status } = answer;
  if (status === 401 || status === 403 || status < 200 || (status >= 300 && status < 400)) {
    await answer.body?.cancel();
    const message = `${upstream.name} refused the gateway's request for a response that it keeps (status ${status})`;
    throw new Refusal({ reason: "upstream_error", upstream: upstream.name, status, message, retryable: false });
  }
  const body = answer.body === null ? null : redactedStream(answer.body, upstream);
  return new Response(body, { status, headers: answerHeaders(answer.headers) });
}

/** Pauses between looks for a response that may be about to be noted, ms: noting one takes a few, on a busy machine more. */
const LOOK_AGAIN_MS = [10, 25, 50, 100, 200, 400];

/**
 * The upstream that keeps a response; null where none does. A call is settled a moment after its last byte, and its client
 * may ask for what it made at once: so the answer is no only when nothing is in flight.
 */
async function keeperOf(c: Context<AppEnv>, runId: string, id: string): Promise<string | null> {
  const run = runOf(c.env, runId);
  let keeper = await run.keptAt(id);
  for (const pauseMs of LOOK_AGAIN_MS) {
    if (keeper !== null) return keeper;
    const inFlight = (await run.budget())?.calls.reserved ?? 0;
    if (inFlight > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    keeper = await run.keptAt(id);
    if (inFlight === 0) return keeper;
  }
  return keeper;
}
