/** `POST /query`: one call, executed here while its client waits. */
import type { Context, Hono } from "hono";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { mediaType, parseBody, readText } from "../contract/body.ts";
import type { Parsed } from "../contract/errors.ts";
import { parsePromptText, parseQuery, type QueryReply, type QueryRequest } from "../contract/query.ts";
import { Refusal } from "../errors.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import { usageOf } from "../respond/usage.ts";
import { RunCaller } from "../../durable-objects/again.ts";
import { makeCall, type CallEnd } from "./single-call.ts";
import { remainingUsdText, type Protection } from "./under-run.ts";

export function mountQuery(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/query", ...protect, query);
}

async function query(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const parsed = await readCall(c.req.raw);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const { upstreams } = c.get("config");
  const { signal } = c.req.raw;
  const calling = makeCall(parsed.value, { run: new RunCaller(c.env, runId), upstreams, signal });
  // If the client leaves, the attempt is stopped and must still be settled.
  c.executionCtx.waitUntil(calling.catch(() => undefined));
  const end = await calling;
  c.set("remainingNanoUsd", end.remainingNanoUsd);
  if (!end.outcome.ok) throw new Refusal(end.outcome.reason);
  const asText = wantsText(c);
  const body = asText ? end.outcome.text : JSON.stringify(replyOf(c.get("requestId"), end, end.outcome));
  // All headers at once: each one set later costs as much as the first five here.
  return new Response(body, {
    headers: {
      "content-type": asText ? "text/plain; charset=utf-8" : "application/json",
      "x-request-id": c.get("requestId"),
      "x-fanout-run": runId,
      "x-fanout-budget-remaining-usd": remainingUsdText(end.remainingNanoUsd),
    },
  });
}

async function readCall(request: Request): Promise<Parsed<QueryRequest>> {
  if (mediaType(request) === "text/plain") {
    const text = await readText(request, BODY_BYTES_MAX);
    return text.ok ? parsePromptText(text.value) : text;
  }
  const body = await parseBody(request, BODY_BYTES_MAX);
  return body.ok ? parseQuery(body.value) : body;
}

function wantsText(c: Context<AppEnv>): boolean {
  return (c.req.header("accept") ?? "").startsWith("text/plain");
}

function replyOf(
  requestId: string,
  end: CallEnd,
  { text, model, finishReason }: { text: string; model: string; finishReason: string | null },
): QueryReply {
  return {
    id: requestId,
    text,
    result: text,
    response: text,
    model,
    usage: usageOf(end),
    attempts: end.attempts,
    latency_ms: end.latencyMs,
    queued_ms: end.queuedMs,
    parallel_group_id: end.parallelGroupId,
    finish_reason: finishReason,
  };
}
