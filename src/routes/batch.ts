/** `POST /batch`: an ordered list of calls, opened as one group. */
import type { Context, Hono } from "hono";
import { runOf } from "../../durable-objects/address.ts";
import { RunCaller } from "../../durable-objects/again.ts";
import type { GroupView, Named } from "../../durable-objects/run/rpc.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { parseQuote, type BatchRequest } from "../contract/batch.ts";
import { readJsonBytes } from "../contract/body.ts";
import { prefersAsync } from "../contract/groups.ts";
import { readBatch } from "../contract/large-batch.ts";
import { Refusal } from "../errors.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import { emptyBatch } from "../respond/batch-json.ts";
import { emptyEvent } from "../respond/batch-lines.ts";
import { answerAccepted, answerGroup, framingOf, type GroupAnswer } from "./group-answer.ts";
import { openGroup, type Opened } from "./group-opening.ts";
import { GroupReader } from "./group-reader.ts";
import { namedOf } from "./idempotency.ts";
import { quoteBatch } from "./quote.ts";
import type { Protection } from "./under-run.ts";

export function mountBatch(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/batch", ...protect, batch);
}

async function batch(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const isQuote = parseQuote(c.req.query("quote"));
  if (!isQuote.ok) throw new Refusal(isQuote.reason);
  const body = await readJsonBytes(c.req.raw, BODY_BYTES_MAX);
  if (!body.ok) throw new Refusal(body.reason);
  const named = await namedOf(c, body.value);
  const parsed = readBatch(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const request = parsed.value;
  if (isQuote.value) return quoteBatch(c, runId, request);
  return answerBatch(c, runId, { request, named });
}

/** A batch as it is to be opened; `named` where it has an Idempotency-Key. */
export type AskedBatch = { request: BatchRequest; named: Named | null };

/** Opens a batch under a run and answers with it as the client asks: whole, as events, or by telling where it is. */
export async function answerBatch(c: Context<AppEnv>, runId: string, asked: AskedBatch): Promise<Response> {
  if (asked.request.calls.length === 0) return answerEmpty(c, runId, asked.request);
  const group = await openBatch(c, runId, asked);
  if (prefersAsync(c.req.header("prefer"))) return answerAccepted(c, group, await group.reader.look());
  return answerGroup(c, group);
}

/** Opens a batch that has calls, or finds the group that its key has opened. */
export async function openBatch(
  c: Context<AppEnv>,
  runId: string,
  { request, named }: AskedBatch,
): Promise<GroupAnswer> {
  const run = new RunCaller(c.env, runId);
  const opened = await openGroup(c, runId, run, openingOf(request, named));
  // Its client's leaving is all that ends it, so it is listened for as long as anybody answers.
  if (!request.detach && !prefersAsync(c.req.header("prefer"))) endWithClient(c, run, opened.seq);
  return groupAnswer(runId, opened, new GroupReader(run, opened.seq));
}

function openingOf(request: BatchRequest, named: Named | null) {
  const { calls, ids, defaults, dedupe, concurrency, onError, onLost, split, deadlineMs, detach, errorStyle } = request;
  const rules = { named, count: calls.length, single: false, background: false, namesCalls: ids.length > 0 };
  const asked = { concurrency, onError, onLost, split, deadlineMs, detach, errorStyle };
  return { calls, defaults, dedupe, rules: { ...rules, ...asked } };
}

/** What a group that was just opened, or found, is answered with. */
export function groupAnswer(runId: string, opened: Opened, reader: GroupReader): GroupAnswer {
  const { id, count, effectiveParallel, errorStyle: style, remainingNanoUsd, replayed } = opened;
  const headers: Record<string, string> = replayed ? { "idempotent-replayed": "true" } : {};
  return { runId, id, count, effectiveParallel, reader, style, remainingNanoUsd, headers };
}

function endWithClient(c: Context<AppEnv>, run: RunCaller, seq: number): void {
  c.req.raw.signal.addEventListener("abort", () => {
    const cancelled = run.untilAnswered<GroupView | null>((stub) => stub.cancelGroup(seq));
    // Should this Worker end as well, the run object misses its followers and cancels the group itself.
    c.executionCtx.waitUntil(cancelled.catch(() => undefined));
  });
}

/** No calls: no group, no cost, and nothing that starts; a stream tells its end only. */
async function answerEmpty(c: Context<AppEnv>, runId: string, { concurrency }: BatchRequest): Promise<Response> {
  const width = await widthOf(c, runId);
  const effectiveParallel = Math.min(concurrency ?? width, width);
  const framing = framingOf(c.req.header("accept"));
  if (framing === null) return c.json(emptyBatch(effectiveParallel, new Date().toISOString()));
  const event = emptyEvent(effectiveParallel);
  const headers = { "content-type": framing.contentType, "cache-control": "no-store" };
  return c.body(framing.frame(event.type, 1, JSON.stringify(event)), 200, headers);
}

/** How wide a run is now. Throws a Refusal where it takes no calls. */
export async function widthOf(c: Context<AppEnv>, runId: string): Promise<number> {
  const settings = await runOf(c.env, runId).answerSettings();
  if (!settings.ok) throw new Refusal(settings.reason);
  return settings.width;
}
