/** `POST /batch`: an ordered list of calls, opened as one group and answered as JSON, NDJSON or server-sent events. */
import type { Context, Hono } from "hono";
import { laneOf, runOf } from "../../durable-objects/address.ts";
import { RunCaller } from "../../durable-objects/again.ts";
import type { OpenGroupReply, OpenGroupRequest, Refused } from "../../durable-objects/run/rpc.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { parseQuote, type BatchRequest } from "../contract/batch.ts";
import { readJsonBytes } from "../contract/body.ts";
import type { ErrorStyle } from "../contract/fields.ts";
import { readBatch } from "../contract/large-batch.ts";
import { PageBuilder, type Page } from "../engine/page.ts";
import { Refusal, type Reason } from "../errors.ts";
import { BODY_BYTES_MAX, GROUP_CHARS_MAX, PAGES_CALL_CHARS_MAX } from "../limits.ts";
import { batchJson, emptyBatch } from "../respond/batch-json.ts";
import {
  completedEvent,
  emptyEvent,
  NDJSON,
  slotEvent,
  SSE,
  startedEvent,
  type Framing,
} from "../respond/batch-lines.ts";
import { slotError } from "../respond/slot.ts";
import { streamed } from "../respond/stream.ts";
import { GroupReader } from "./group-reader.ts";
import { quoteBatch } from "./quote.ts";
import { remainingUsdText, type Protection } from "./under-run.ts";

type Opened = Extract<OpenGroupReply, { ok: true }> & { count: number };

export function mountBatch(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/batch", ...protect, batch);
}

async function batch(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const isQuote = parseQuote(c.req.query("quote"));
  if (!isQuote.ok) throw new Refusal(isQuote.reason);
  const body = await readJsonBytes(c.req.raw, BODY_BYTES_MAX);
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = readBatch(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const request = parsed.value;
  if (isQuote.value) return quoteBatch(c, runId, request);
  const settings = await runOf(c.env, runId).answerSettings();
  if (!settings.ok) throw new Refusal(settings.reason);
  const style = request.errorStyle ?? settings.errorStyle;
  if (request.calls.length === 0)
    return answerEmpty(c, Math.min(request.concurrency ?? settings.width, settings.width));

  const { ids } = request;
  const opened = await openGroup(c, runId, request);
  c.set("remainingNanoUsd", opened.remainingNanoUsd);
  const reader = new GroupReader(new RunCaller(c.env, runId), opened.seq);
  return answer(c, { runId, opened, reader, style, idOf: (index) => ids[index] ?? null });
}

/** No calls: no group, no cost, and nothing that starts; a stream tells its end only. */
function answerEmpty(c: Context<AppEnv>, effectiveParallel: number): Response {
  const framing = framingOf(c.req.header("accept"));
  if (framing === null) return c.json(emptyBatch(effectiveParallel));
  const event = emptyEvent(effectiveParallel);
  const headers = { "content-type": framing.contentType, "cache-control": "no-store" };
  return c.body(framing.frame(event.type, 1, JSON.stringify(event)), 200, headers);
}

/** Opens the group and sees to it that its lanes run. Large batches reach the run object in several calls. */
async function openGroup(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<Opened> {
  const count = request.calls.length;
  const run = runOf(c.env, runId);
  const builder = new PageBuilder(request.defaults);
  let pages: Page[] = [];
  let chars = 0;
  let staged: number | null = null;
  for (const call of request.calls) {
    const page = builder.add(call);
    if (builder.totalChars > GROUP_CHARS_MAX) {
      throw new Refusal({
        reason: "payload_too_large",
        what: "the batch with its shared settings",
        bytesMax: GROUP_CHARS_MAX,
        param: null,
      });
    }
    if (page === null) continue;
    if (chars + page.calls.length > PAGES_CALL_CHARS_MAX) {
      const reply: number | Refused = await run.stagePages(pages, staged);
      if (typeof reply !== "number") throw new Refusal(reply.reason);
      staged = reply;
      pages = [];
      chars = 0;
    }
    pages.push(page);
    chars += page.calls.length;
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  const { concurrency, onError, split, deadlineMs } = request;
  const header: OpenGroupRequest = {
    count,
    concurrency,
    onError,
    split,
    deadlineMs,
    models: builder.models,
    defaultsJson: JSON.stringify(request.defaults),
  };
  const opened = await run.openGroup(header, pages, staged);
  if (!opened.ok) throw new Refusal(opened.reason);
  const starting = opened.lanes.map((lane) => laneOf(c.env, runId, lane).start(runId, lane));
  // A lane that does not start is started again by the run's alarm.
  c.executionCtx.waitUntil(Promise.allSettled(starting));
  return { ...opened, count };
}

type Answering = {
  runId: string;
  opened: Opened;
  reader: GroupReader;
  style: ErrorStyle;
  idOf: (index: number) => string | null;
};

async function answer(c: Context<AppEnv>, answering: Answering): Promise<Response> {
  const { runId, opened, reader, style } = answering;
  const headers = {
    "x-request-id": c.get("requestId"),
    "x-fanout-run": runId,
    "x-fanout-budget-remaining-usd": remainingUsdText(opened.remainingNanoUsd),
    "cache-control": "no-store",
  };
  const respond = (pieces: AsyncGenerator<string>, contentType: string, keepAlive: string): Response => {
    const { body, pumped } = streamed(pieces, {
      keepAlive,
      failed: (error) => console.error("an answer broke off", error),
    });
    c.executionCtx.waitUntil(pumped);
    return new Response(body, { headers: { ...headers, "content-type": contentType } });
  };
  const framing = framingOf(c.req.header("accept"));
  if (framing !== null) return respond(events(answering, framing), framing.contentType, framing.keepAlive);
  if (style === "throw") {
    // The status depends on how the group ends, so nothing can be sent before.
    await reader.ended();
    const reason = await firstFailure(reader, opened.count);
    if (reason !== null) throw new Refusal(reason);
  }
  return respond(json(answering), "application/json", " ");
}

async function* json({ reader, style, idOf }: Answering): AsyncGenerator<string> {
  const group = await reader.ended();
  yield* batchJson({ group, style, idOf, slotsFrom: (index) => reader.slotsFrom(index) });
}

async function* events({ opened, reader, style, idOf }: Answering, { frame }: Framing): AsyncGenerator<string> {
  let id = 1;
  const framed = (event: { type: string }): string => frame(event.type, id++, JSON.stringify(event));
  yield framed(startedEvent(opened));
  for await (const slot of reader.slotsAsTheyEnd()) yield framed(slotEvent(opened.id, slot, style, idOf(slot.index)));
  yield framed(completedEvent(await reader.ended()));
}

function framingOf(accept: string | undefined): Framing | null {
  if (accept === undefined) return null;
  if (accept.includes("application/x-ndjson")) return NDJSON;
  return accept.includes("text/event-stream") ? SSE : null;
}

/** The failure of the first slot, in input order, that did not complete. */
async function firstFailure(reader: GroupReader, count: number): Promise<Reason | null> {
  for (let from = 0; from < count;) {
    const slots = await reader.slotsFrom(from);
    for (const slot of slots) if (slotError(slot) !== null) return slot.reason;
    if (slots.length === 0) return null;
    from += slots.length;
  }
  return null;
}
