/** The routes of pull workers: they take items of a run, keep their leases, and deliver answers. */
import type { Context } from "hono";
import { signWorkerToken } from "../auth/worker-token.ts";
import type { AppEnv } from "../context.ts";
import { parseBody } from "../../contract/body.ts";
import type { Parsed } from "../../contract/errors.ts";
import {
  parseClaim,
  parseComplete,
  parseHeartbeat,
  type CompleteBody,
  type HeartbeatDocument,
  type PullItemDocument,
} from "../../contract/pull.ts";
import type { RunDocument } from "../../contract/runs.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { ISOLATE, SliceQueue } from "../../text/bytes/slices.ts";
import { tryParse } from "../../text/json/parse.ts";
import { isRecord } from "../../text/json/record.ts";
import { LONG_POLL_MS, NEEDLESS_COMPLETION_RETRY_AFTER_MS, NEEDLESS_COMPLETIONS_WAITING_MAX } from "../../limits.ts";
import { answerFor, type Completed } from "../../run/pull/answer.ts";
import type { PullItem } from "../../run/pull/board.ts";
import type { PullDone, PullRequest } from "../../objects/methods/pull.ts";
import type { Refused } from "../../objects/methods/types.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Handlers } from "../handler.ts";
import { callerOf, documentOf, notFound } from "./runs.ts";

export const pullHandlers = {
  "POST /runs/:id/worker-token": makeToken,
  "POST /runs/:id/claim": claim,
  "POST /runs/:id/heartbeat": heartbeat,
  "POST /runs/:id/complete": complete,
} satisfies Partial<Handlers>;

/** A token for a program that shall do the work of a run, but not spend its budget otherwise. */
async function makeToken(c: Context<AppEnv>): Promise<Response> {
  const { id, status, expires_at } = await documentOf(c, c.req.param("id") ?? "");
  if (!TAKES_WORK.includes(status)) throw new Refusal({ reason: "invalid_api_key", message: `the run is ${status}` });
  const claims = { runId: id, expiresAtMs: Date.parse(expires_at) };
  const token = await signWorkerToken(c.get("keys").signing, claims);
  return c.json({ object: "worker_token", run_id: id, token, expires_at }, 201);
}

const TAKES_WORK: readonly RunDocument["status"][] = ["active", "paused", "escalated"];

async function claim(c: Context<AppEnv>): Promise<Response> {
  const { max, wait_ms, lease_ms, models } = await bodyOf(c, parseClaim);
  const untilMs = Date.now() + wait_ms;
  for (;;) {
    const leftMs = Math.max(0, untilMs - Date.now());
    const waitMs = Math.min(leftMs, LONG_POLL_MS);
    // Items whose reply is lost stay leased until their leases expire.
    const done = await served(c, { kind: "claim", models: models ?? null, max, leaseMs: lease_ms, waitMs });
    const items = done.kind === "claim" ? done.items : [];
    if (items.length === 0 && leftMs > LONG_POLL_MS && !c.req.raw.signal.aborted) continue;
    return c.json({ object: "list", items: items.map(shownItem) });
  }
}

async function heartbeat(c: Context<AppEnv>): Promise<Response> {
  const { lease_ids, lease_ms } = await bodyOf(c, parseHeartbeat);
  const done = await served(c, { kind: "renew", leaseIds: lease_ids, leaseMs: lease_ms });
  const renewed = done.kind === "renew" ? done.leases : [];
  const leases: HeartbeatDocument["leases"] = renewed.map(({ leaseId, state }) =>
    typeof state === "number"
      ? { lease_id: leaseId, state: "active", lease_expires_at: new Date(state).toISOString() }
      : { lease_id: leaseId, state, lease_expires_at: null },
  );
  return c.json({ object: "list", leases });
}

/** The order of completions that settle nothing. It is not that of slices: each slice of a large request would wait for all that are here. */
const needless = new SliceQueue(ISOLATE);

/**
 * What settles nothing may be sent again and again, by hundreds of workers at once: it is answered one at a time, with other requests between
 * any two of them. What a completion settled is not undone: a worker whose repeated one is refused asks again, and learns it.
 */
async function complete(c: Context<AppEnv>): Promise<Response> {
  try {
    const reply = await completion(c);
    if (reply.repeated) await needlessTurn();
    return c.json(reply);
  } catch (error) {
    await needlessTurn();
    throw error;
  }
}

/** Waits for the turn of a completion that settles nothing. Throws a Refusal if too many wait already. */
async function needlessTurn(): Promise<void> {
  if (needless.waiting >= NEEDLESS_COMPLETIONS_WAITING_MAX) throw new Refusal(TOO_MANY_WAIT);
  await needless.next();
}

const TOO_MANY_WAIT: Reason = {
  reason: "overloaded",
  message: "too many completions wait that settled nothing: refused ones, and repeated ones; retry later",
  retryAfterMs: NEEDLESS_COMPLETION_RETRY_AFTER_MS,
};

async function completion(c: Context<AppEnv>) {
  const body = await bodyOf(c, parseComplete);
  const { lease_id } = body;
  const completed = completedOf(body);
  const usage = "error" in completed || completed.usage === null ? {} : { usage: completed.usage };
  const done = await served(c, { kind: "complete", leaseId: lease_id, answer: answerFor(completed), ...usage });
  return { lease_id, status: "completed", repeated: done.kind === "complete" && done.repeated };
}

function completedOf({ text, json, message: sent, finish_reason, usage, error }: CompleteBody): Completed {
  if (error !== undefined) return { error };
  const { prompt_tokens, completion_tokens, cost } = usage ?? {};
  const used =
    prompt_tokens === undefined || completion_tokens === undefined
      ? null
      : {
          promptTokens: prompt_tokens,
          completionTokens: completion_tokens,
          ...(cost === undefined ? {} : { costUsd: cost }),
        };
  const message = sent ?? { role: "assistant", content: text ?? JSON.stringify(json) };
  const calls = sent?.["tool_calls"];
  const ended = Array.isArray(calls) && calls.length > 0 ? "tool_calls" : "stop";
  return { message, finishReason: finish_reason ?? ended, usage: used };
}

function shownItem({
  leaseId,
  attemptId,
  upstream,
  model,
  requestJson,
  expiresAtMs,
  dueMs,
}: PullItem): PullItemDocument {
  const parsed = tryParse(requestJson);
  const request = isRecord(parsed) ? parsed : {};
  return {
    lease_id: leaseId,
    upstream,
    model,
    attempt_id: attemptId,
    prompt: promptOf(request["messages"]),
    request,
    lease_expires_at: new Date(expiresAtMs).toISOString(),
    deadline: new Date(dueMs).toISOString(),
  };
}

function promptOf(messages: unknown): string | null {
  const [only, ...others]: readonly unknown[] = Array.isArray(messages) ? messages : [];
  const isPrompt = others.length === 0 && isRecord(only) && only["role"] === "user";
  return isPrompt && typeof only["content"] === "string" ? only["content"] : null;
}

async function bodyOf<T>(c: Context<AppEnv>, parse: (value: unknown) => Parsed<T>): Promise<T> {
  const body = await parseBody(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = parse(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  return parsed.value;
}

/** What the run has done for the worker. Throws if there is no such run, the caller may not, or it refuses. */
async function served(c: Context<AppEnv>, request: PullRequest): Promise<PullDone> {
  const id = c.req.param("id") ?? "";
  const run = new RunCaller(c.env, id);
  const done = await run.callWithRetry<PullDone | Refused | null>((stub) => stub.pull(request, callerOf(c)));
  if (done === null) throw notFound(id);
  if (!done.ok) throw new Refusal(done.reason);
  return done;
}
