/** A run's log: read it, follow it, add to it. And its counters: what it has used, shown from zero again. */
import type { Context } from "hono";
import type { StoredDocument } from "../../../objects/methods/runs.ts";
import type { AppendReply } from "../../../objects/methods/log.ts";
import { refuseViewers, requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import type { EventLine } from "../../../log/events.ts";
import { parseBody } from "../../../contract/body.ts";
import { clientEventsReading, parseAfter, parseLogLimit, parseUsageQuery } from "../../../contract/events.ts";
import type { UsageDocument } from "../../../contract/runs.ts";
import { Refusal } from "../../../errors.ts";
import { NDJSON, SSE } from "../../replies/batch-lines.ts";
import { savedPage } from "../../replies/saved-page.ts";
import { streamed } from "../../replies/stream.ts";
import { traceText } from "../../replies/trace.ts";
import { inSlices, pause } from "../../../text/bytes/slices.ts";
import { logBrokenOff } from "../../line-budget.ts";
import { bodyRoom } from "../../body-bound.ts";
import { LogReader } from "../../../objects/clients/log-reader.ts";
import { PAGE_FILES } from "../../discovery/page-files.mjs";
import { begin, events, followBySocket } from "./follow.ts";
import { outlineIn } from "../graph/outline.ts";
import { callerOf, lookAt, notFound, shown } from "../runs.ts";
import { settled } from "../../../objects/clients/settlements.ts";
import { subtreeOf } from "../../../objects/clients/subtree.ts";
import type { Handlers } from "../../handler.ts";
import { RunCaller, type RunStub } from "../../../objects/clients/caller.ts";

export const runLogHandlers = {
  "GET /runs/:id/log": async (c) => {
    const { limit: _, ...query } = c.req.query();
    const limit = parseLogLimit(c.req.query());
    if (!limit.ok) throw new Refusal(limit.reason);
    const { reader, after } = await readerOf(c, query);
    return streamAtPlace(c, reader, () => lines(reader.history(after), after, limit.value), NDJSON);
  },
  "GET /runs/:id/trace.json": async (c) => {
    const { reader } = await readerOf(c);
    const framing = { contentType: "application/json", keepAlive: " " };
    return streamAtPlace(c, reader, () => traceText(c.req.param("id"), reader.history(0)), framing);
  },
  "GET /runs/:id/page.html": async (c) => {
    const { reader } = await readerOf(c);
    const id = c.req.param("id");
    const document = await lookAt(c, id, callerOf(c));
    if (document === null) throw notFound(id);
    const outlineOf = (group: string): Promise<unknown> => outlineIn(new RunCaller(c.env, id), group).catch(goneIsNull);
    const run = { id, savedAt: new Date().toISOString(), document: shown(c, document), outlineOf };
    // A file to keep, and not a page of this gateway: what models wrote is in it.
    c.header("content-disposition", `attachment; filename="${document.id}.html"`);
    const framing = { contentType: "text/html; charset=utf-8", keepAlive: "" };
    return streamAtPlace(c, reader, () => savedPage(run, reader.history(0), PAGE_FILES), framing);
  },
  "POST /runs/:id/log": (c) => append(c, c.req.param("id")),
  "POST /log": (c) => append(c, requireRun(c)),
  "GET /runs/:id/events": follow,
  "GET /runs/:id/usage": (c) => usage(c, c.req.param("id")),
  "GET /usage": (c) => usage(c, requireRun(c)),
  "POST /runs/:id/stats/reset": async (c) => {
    const id = c.req.param("id");
    const run = new RunCaller(c.env, id);
    await settled(c.env, id);
    const document = await run.callWithRetry<StoredDocument | null>((stub) => stub.resetStats(callerOf(c)));
    if (document === null) throw notFound(id);
    return c.json(shown(c, document));
  },
  "POST /runs/:id/flush": async (c) => {
    const id = c.req.param("id");
    const run = new RunCaller(c.env, id);
    await settled(c.env, id);
    if (!(await run.callWithRetry<boolean>((stub) => stub.flushWindow(callerOf(c))))) throw notFound(id);
    return c.json({ object: "flush", flushed: true });
  },
} satisfies Partial<Handlers>;

async function usage(c: Context<AppEnv>, id: string): Promise<Response> {
  const query = parseUsageQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { reset, subtree } = query.value;
  if (reset) refuseViewers(c);
  const run = new RunCaller(c.env, id);
  const read = (stub: RunStub): PromiseLike<UsageDocument | null> => stub.usage(callerOf(c), reset);
  await settled(c.env, id);
  // A reset that is repeated would lose what was counted before it.
  const used = reset ? await run.callOnce(read) : await run.callWithRetry(read);
  if (used === null) throw notFound(id);
  return c.json(subtree ? { ...used, subtree: await subtreeUsage(c, id) } : used);
}

/** What a run and its child runs have used together. */
async function subtreeUsage(c: Context<AppEnv>, id: string): Promise<UsageDocument["subtree"]> {
  const { runs, complete, budget } = await subtreeOf(c.env, id);
  const { usd, calls, prompt_tokens, completion_tokens } = budget;
  const tokens = { input_tokens: prompt_tokens.spent, output_tokens: completion_tokens.spent };
  return { runs, complete, calls: calls.spent, ...tokens, cost: usd.spent };
}

async function append(c: Context<AppEnv>, id: string): Promise<Response> {
  const body = await parseBody(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = await inSlices(clientEventsReading(body.value), pause);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const events = parsed.value.map(({ event, json }) => ({ json, parallelGroupId: event.parallel_group_id ?? null }));
  const run = new RunCaller(c.env, id);
  // The client's events come after those of the calls whose answers it has.
  await settled(c.env, id);
  // Not repeated: the events would be in the log twice.
  const appended = await run.callOnce<AppendReply | null>((stub) => stub.appendLog(events, callerOf(c)));
  if (appended === null) throw notFound(id);
  if (!appended.ok) throw new Refusal(appended.reason);
  return c.json({ object: "log", appended: events.length, seq: appended.seq }, 201);
}

async function follow(c: Context<AppEnv>): Promise<Response> {
  const { reader, after } = await readerOf(c);
  if (c.req.method === "HEAD") return withoutBody(c, SSE);
  const following = await begin(c, reader, after);
  if (c.req.header("upgrade")?.toLowerCase() === "websocket") return followBySocket(c, following);
  return stream(c, events(following), SSE);
}

/** The reader of the run's log that the path names, and after which event it begins. */
async function readerOf(c: Context<AppEnv>, query = c.req.query()): Promise<{ reader: LogReader; after: number }> {
  const after = parseAfter(query, c.req.header("last-event-id"));
  if (!after.ok) throw new Refusal(after.reason);
  const id = c.req.param("id") ?? "";
  const reader = new LogReader(c.env, id, callerOf(c), c.get("principal").kind === "viewer");
  await settled(c.env, id);
  if (!(await reader.readable())) throw notFound(id);
  return { reader, after: after.value };
}

async function* lines(history: AsyncGenerator<EventLine[]>, after: number, limit: number): AsyncGenerator<string> {
  for await (const page of history) {
    const wanted = page.filter(({ seq }) => seq <= after + limit);
    yield wanted.map(({ json }) => `${json}\n`).join("");
    if ((page.at(-1)?.seq ?? 0) >= after + limit) return;
  }
}

type Framing = { contentType: string; keepAlive: string };

/** Streams the log so far at a place of its own. A token has few: one is free again when its client has the whole answer, or has left. */
async function streamAtPlace(
  c: Context<AppEnv>,
  reader: LogReader,
  piecesOf: () => AsyncGenerator<string>,
  framing: Framing,
): Promise<Response> {
  if (c.req.method === "HEAD") return withoutBody(c, framing);
  const place = await reader.place("reader", c.req.raw.signal);
  return stream(c, piecesOf(), framing, () => place.close());
}

function stream(
  c: Context<AppEnv>,
  pieces: AsyncGenerator<string>,
  { contentType, keepAlive }: Framing,
  ended: () => void = () => undefined,
): Response {
  const { body, pumped } = streamed(pieces, {
    keepAlive,
    failed: (error) => logBrokenOff("a log", error),
  });
  c.executionCtx.waitUntil(pumped.finally(ended));
  return c.body(body, 200, headersOf(contentType));
}

/** The answer to HEAD. A stream that nobody reads would keep its place. */
function withoutBody(c: Context<AppEnv>, { contentType }: Framing): Response {
  return c.body(null, 200, headersOf(contentType));
}

function headersOf(contentType: string): Record<string, string> {
  return { "content-type": contentType, "cache-control": "no-store" };
}

/** A file is not broken off because one of its graphs is gone. */
function goneIsNull(error: unknown): null {
  if (error instanceof Refusal) return null;
  throw error;
}
