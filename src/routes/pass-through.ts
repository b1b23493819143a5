/**
 * `/v1` endpoints that spend: the client's bytes go to the upstream and the upstream's come back, under the run's budget,
 * permits, log and retries. Executed by the Worker that holds the client; settled when the last byte has gone.
 */
import type { Context } from "hono";
import { RunCaller } from "../../durable-objects/again.ts";
import type { AcquireReply, KeptAnswer, SettleReply, SingleSettlement } from "../../durable-objects/run/rpc.ts";
import { requireRun } from "../auth/middleware.ts";
import { chargeOf } from "../budget/estimate.ts";
import { usdOf } from "../budget/money.ts";
import type { CallFacts, Lease, Outcome } from "../call.ts";
import type { AppEnv } from "../context.ts";
import { readJsonBytes } from "../contract/body.ts";
import { Refusal, type Reason } from "../errors.ts";
import { BODY_BYTES_MAX, PASS_QUEUE_MS_MAX, PASS_RETRY_AFTER_MS } from "../limits.ts";
import type { Upstream } from "../upstream/config.ts";
import { answerHeaders, endpointUrl, passHeaders } from "../upstream/endpoints.ts";
import { readRequest, type Endpoint, type RequestFacts } from "../upstream/json-request.ts";
import { member } from "../upstream/json-scan.ts";
import { rewriteRequest } from "../upstream/json-rewrite.ts";
import { pass } from "../upstream/pass.ts";
import type { PassEnd, Passed } from "../upstream/pass-job.ts";
import { priceOf } from "../upstream/registry.ts";
import { simulatedAnswer } from "../upstream/simulated.ts";
import { relayedError } from "./pass-error.ts";
import { acquire, beatingTimer, watchClient, type Settlements, type Watch } from "./permit.ts";
import { returnSettlements, settleSoon, takeSettlements } from "./settlements.ts";

type Call = { runId: string; run: RunCaller; callId: string; bytes: Uint8Array; facts: RequestFacts; watch: Watch };
type Granted = Extract<AcquireReply, { ok: true }>;

/** Answers a request to an endpoint of OpenAI's or Anthropic's API. */
export async function passThrough(c: Context<AppEnv>, endpoint: Endpoint): Promise<Response> {
  const runId = requireRun(c);
  const body = await readJsonBytes(c.req.raw, BODY_BYTES_MAX);
  if (!body.ok) throw new Refusal(body.reason);
  const read = readRequest(endpoint, body.value);
  if (!read.ok) throw new Refusal(read.reason);
  const run = new RunCaller(c.env, runId);
  const watch = watchClient(c.req.raw.signal);
  const call = { runId, run, callId: crypto.randomUUID(), bytes: body.value, facts: read.value, watch };
  const answering = answer(c, call);
  // If the client leaves, the attempt is stopped and must still be settled.
  c.executionCtx.waitUntil(answering.catch(() => undefined));
  return await answering;
}

async function answer(c: Context<AppEnv>, call: Call): Promise<Response> {
  const { run, callId, facts, watch } = call;
  const acceptedAtMs = Date.now();
  const callFacts = callFactsOf(facts);
  let parallelGroupId: string | null = null;
  for (let attempt = 1, delayMs = 0; ; attempt++) {
    const deadlineMs = Math.max(1, PASS_QUEUE_MS_MAX - (Date.now() - acceptedAtMs));
    const asked = { callId, attempt, facts: callFacts, delayMs, deadlineMs, onLost: "retry" as const, parallelGroupId };
    const granted = await acquire(run, asked, watch, settlementsOf(call.runId));
    if (granted === null) return new Response(null, { status: 499 });
    c.set("remainingNanoUsd", granted.remainingNanoUsd);
    if (granted.ok !== true) throw new Refusal(queueReason(granted.ok === false ? granted.reason : SHARED));
    const { passed, upstream } = await send(c, call, granted);
    if (passed.kind === "answered") return relay(c, call, granted, passed);
    const { attemptId } = granted.lease;
    const settled = await run.untilAnswered<SettleReply>((stub) => stub.settle(attemptId, passed.outcome));
    parallelGroupId ??= settled.parallelGroupId;
    c.set("remainingNanoUsd", settled.remainingNanoUsd);
    if (settled.retryInMs === null || watch.signal.aborted) return relayedError(passed, upstream);
    delayMs = settled.retryInMs;
  }
}

/** Calls that pass through have no key, so none is shared. */
const SHARED: Reason = { reason: "internal", message: "a call that passes through was answered by another" };

/** A client of these endpoints knows that a server which is busy says 503, and when to come again. */
function queueReason(reason: Reason): Reason {
  if (reason.reason !== "deadline_exceeded") return reason;
  const message = `no permit was free within ${PASS_QUEUE_MS_MAX} ms: the run has more calls waiting than it may make at once`;
  return { reason: "overloaded", message, retryAfterMs: PASS_RETRY_AFTER_MS };
}

function callFactsOf(facts: RequestFacts): CallFacts {
  const { promptBytes, messageCount, mediaParts, model, maxTokens, completions, promptTokenIds, unbounded } = facts;
  const read = { promptBytes, messageCount, mediaParts, model, maxTokens, priority: 2, timeoutMs: null } as const;
  return { ...read, completions, promptTokenIds, unbounded };
}

async function send(
  c: Context<AppEnv>,
  { run, bytes, facts, watch }: Call,
  { lease }: Granted,
): Promise<{ passed: Passed; upstream: Upstream | null }> {
  const upstream = c.get("config").upstreams.find(({ name }) => name === lease.upstream) ?? null;
  if (upstream === null) return { passed: notSent(goneReason(lease)), upstream };
  const { endpoint } = facts;
  const target = endpointUrl(upstream, endpoint);
  if (!target.ok) return { passed: notSent(target.reason), upstream };
  const controller = new AbortController();
  if (watch.signal.aborted) controller.abort();
  watch.controller = controller;
  const { model, capTokens: cap } = lease;
  const body = rewriteRequest(bytes, facts, { model, cap, capField: upstream.capField, includeUsage: true });
  const price = priceOf(upstream, model);
  const job = {
    upstream,
    lease,
    endpoint,
    url: `${target.url}${queryOf(c)}`,
    headers: passHeaders(upstream, (name) => c.req.header(name)),
    body,
    stream: facts.stream,
    usageChunk: usageChunkOf(facts),
    base64: facts.base64,
    costUsdOf: (usage: Parameters<typeof chargeOf>[0]) => usdOf(chargeOf(usage, price).usd),
  };
  const timer = beatingTimer(run, lease.attemptId, controller);
  const pipe = (): IdentityTransformStream => new IdentityTransformStream();
  const ask = upstream.kind === "simulated" ? simulated(endpoint, body, lease, controller.signal) : fetch;
  // Called on its own: workerd's fetch refuses to be a method of another object.
  const deps = { fetch: (url: string, init: RequestInit) => ask(url, init), now: Date.now, timer, controller, pipe };
  return { passed: await pass(job, deps), upstream };
}

/** Anthropic's clients mark their beta endpoints in the query; nothing else of it goes on. */
function queryOf(c: Context<AppEnv>): string {
  return c.req.query("beta") === "true" ? "?beta=true" : "";
}

function usageChunkOf({ endpoint, stream, includeUsage }: RequestFacts): "asked" | "injected" | "absent" {
  if (!stream || (endpoint !== "chat" && endpoint !== "completions")) return "absent";
  return includeUsage ? "asked" : "injected";
}

function simulated(endpoint: Endpoint, body: Uint8Array, lease: Lease, signal: AbortSignal) {
  const timer = (ms: number, elapsed: () => void): (() => void) => {
    const handle = setTimeout(elapsed, ms);
    return () => clearTimeout(handle);
  };
  const deps = { now: Date.now, timer, signal, attempt: lease.attempt ?? 1 };
  return (): Promise<Response> => simulatedAnswer(endpoint, new TextDecoder().decode(body), deps);
}

function goneReason(lease: Lease): Reason {
  const message = `upstream ${lease.upstream} is not configured any more`;
  return { reason: "misconfigured", variable: "UPSTREAMS", message };
}

function notSent(reason: Reason): Passed {
  const outcome: Outcome = { kind: "failure", class: "rejected", reason, retryAfterMs: null, latencyMs: 0 };
  return { kind: "failed", outcome, answer: null };
}

function relay(
  c: Context<AppEnv>,
  call: Call,
  { lease }: Granted,
  { status, headers, body, ended }: Extract<Passed, { kind: "answered" }>,
): Response {
  c.executionCtx.waitUntil(ended.then((end) => settleSoon(call.run, call.runId, settlementOf(call, lease, end))));
  return new Response(body, { status, headers: answerHeaders(headers) });
}

/** Responses are kept by their upstream unless the request says otherwise. */
function isKept(bytes: Uint8Array, { endpoint, object }: RequestFacts): boolean {
  const store = member(object, "store");
  return endpoint === "responses" && (store?.kind !== "boolean" || bytes[store.start] === LETTER_T);
}

/** `true` begins with it. */
const LETTER_T = 0x74;

function settlementsOf(runId: string): Settlements {
  return { take: () => takeSettlements(runId), putBack: (settlements) => returnSettlements(runId, settlements) };
}

function settlementOf({ facts, bytes }: Call, lease: Lease, { outcome, id }: PassEnd): SingleSettlement {
  const kept: KeptAnswer | null = id !== null && isKept(bytes, facts) ? { id, upstream: lease.upstream } : null;
  return { attemptId: lease.attemptId, outcome, kept };
}
