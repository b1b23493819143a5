/** `POST /query`: one call, executed here while its client waits. */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, mediaType, readBytes, readJsonBytes, textOf, type BodyRoom } from "../../contract/body.ts";
import type { Parsed } from "../../contract/errors.ts";
import { parsePromptText, parseQuery, type QueryRequest } from "../../contract/query.ts";
import { prefersAsync } from "../../contract/groups.ts";
import { SharedPrefixes } from "../../contexts/shared-prefixes.ts";
import { hasCourse } from "../../run/continuations/table.ts";
import { Refusal } from "../../errors.ts";
import { spentBefore } from "../replies/usage.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { callWithContext } from "../contexts/find.ts";
import { bodyRoom } from "../body-bound.ts";
import { recordingOf } from "../recording.ts";
import { contentHash, dedupeKeyOf, hashOf } from "../../objects/clients/dedupe-key.ts";
import { panelFor } from "../../providers/panel.ts";
import { queryPanel } from "./combining/panel-query.ts";
import { namedOf } from "./idempotency.ts";
import { mayBeHedged } from "../../providers/target.ts";
import { queryReply, wantsText } from "./query-reply.ts";
import { callWithTools } from "./tool-use.ts";
import { makeCall } from "../../executors/single-call.ts";
import { storedQuery } from "./stored-query.ts";
import { clientTrace } from "../client-trace.ts";
import { remainingUsdText } from "../under-run.ts";
import type { Handlers } from "../handler.ts";

export const queryHandlers = {
  "POST /query": query,
} satisfies Partial<Handlers>;

async function query(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const read = await readCall(c.req.raw, bodyRoom(c));
  if (!read.ok) throw new Refusal(read.reason);
  return await answerQuery(c, runId, read.value);
}

/** A call with the bytes of its request, which an Idempotency-Key is bound to. */
export type RequestedCall = { call: QueryRequest; bytes: Uint8Array };

/** Makes a call under a run and answers with it. Throws a Refusal where the call fails. */
export async function answerQuery(
  c: Context<AppEnv>,
  runId: string,
  { call: requested, bytes }: RequestedCall,
): Promise<Response> {
  const call = await withPrefix(await callWithContext(c, runId, await callWithTools(c, runId, requested)));
  const run = new RunCaller(c.env, runId);
  const named = await namedOf(c, bytes);
  const panel = panelFor(c.get("config"), call.facts.model);
  if (panel !== null) return await queryPanel(c, runId, panel, { call, named });
  // The run object makes what may be more than one attempt in flight, or more than one answer.
  const hedge = call.facts.hedge ?? mayBeHedged(call.facts.model, c.get("config"));
  const isMore = hasCourse(call.facts) || hedge !== false;
  const isStored = named !== null || prefersAsync(c.req.header("prefer")) || isMore;
  if (isStored) return await storedQuery(c, { runId, run, call, named });
  const recording = await recordingOf(c, runId);
  const waitUntil = (promise: Promise<unknown>): void => c.executionCtx.waitUntil(promise);
  const recorded = recording === null ? call : await withContent(call, recording.epoch);
  const calling = makeCall(await withKey(recorded), {
    ...{ run, config: c.get("config"), signal: c.get("client"), waitUntil },
    ...clientTrace(c),
    acceptedAtMs: c.get("acceptedAtMs"),
  });
  // If the client leaves, the attempt is stopped and must still be settled.
  waitUntil(calling.catch(() => undefined));
  const end = await calling;
  c.set("remainingNanoUsd", end.remainingNanoUsd);
  if (!end.outcome.ok) throw new Refusal(end.outcome.reason, spentBefore(end, end.outcome.reason));
  const asText = wantsText(c);
  const body = asText ? end.outcome.text : queryReply(c.get("requestId"), end, end.outcome);
  // All headers at once: each one set later costs as much as the first five here.
  const response = new Response(body, {
    headers: {
      "content-type": asText ? "text/plain; charset=utf-8" : "application/json",
      "x-request-id": c.get("requestId"),
      "x-fanout-run": runId,
      "x-fanout-budget-remaining-usd": remainingUsdText(end.remainingNanoUsd),
    },
  });
  c.set("isNamed", true);
  return response;
}

/** The call that a request makes, with the bytes that it came as. */
async function readCall(request: Request, room: BodyRoom): Promise<Parsed<RequestedCall>> {
  const isText = mediaType(request) === "text/plain";
  const bytes = isText ? await readBytes(request, room) : await readJsonBytes(request, room);
  if (!bytes.ok) return bytes;
  const call = isText ? textCall(bytes.value) : jsonCall(bytes.value);
  return call.ok ? { ok: true, value: { call: call.value, bytes: bytes.value } } : call;
}

function textCall(bytes: Uint8Array): Parsed<QueryRequest> {
  const text = textOf(bytes);
  return text.ok ? parsePromptText(text.value) : text;
}

function jsonCall(bytes: Uint8Array): Parsed<QueryRequest> {
  const body = jsonOf(bytes);
  return body.ok ? parseQuery(body.value) : body;
}

/** The call with the beginning that it may share with others of its run. */
async function withPrefix(call: QueryRequest): Promise<QueryRequest> {
  return call.cache === undefined ? call : (await SharedPrefixes.of(call.body, hashOf)).markLone(call);
}

/** The call with what its answer is recorded under. */
async function withContent(call: QueryRequest, epoch: string): Promise<QueryRequest & { epoch: string }> {
  return { ...call, epoch, facts: { ...call.facts, content: await contentHash(call.body, call.facts) } };
}

/** The call with the key under which it is shared, if it may be. */
async function withKey<T extends QueryRequest>(call: T): Promise<T> {
  if (!call.dedupe) return call;
  return { ...call, facts: { ...call.facts, dedupeKey: await dedupeKeyOf(call.body, call.facts) } };
}
