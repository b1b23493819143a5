/** Runs: open one, look at one, list them, change one, end one, and what is left of one's budget. */
import type { Context } from "hono";
import { newRunId } from "../../objects/address.ts";
import type { DayReservation } from "../../objects/methods/directory-api.ts";
import type { StoredDocument } from "../../objects/methods/runs.ts";
import type { IdempotencyKey } from "../../objects/methods/types.ts";
import type { OpenChildReply, PatchReply, RunInput } from "../../objects/methods/runs.ts";
import type { EndStatus, RunSettings } from "../../objects/methods/runs.ts";
import { requireRun } from "../auth/middleware.ts";
import { signRunToken } from "../auth/token.ts";
import type { AppEnv } from "../context.ts";
import { jsonOf, parseBody, readJsonBytes } from "../../contract/body.ts";
import { isInside, regionsInside } from "../../jurisdiction.ts";
import { regionOf } from "./client-region.ts";
import { parsePatch, parseRun, parseRunLookQuery, type RunRequest, type BudgetDocument } from "../../contract/runs.ts";
import { Refusal } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import type { ReplaySource } from "../../objects/methods/replay.ts";
import { bodyRoom } from "../body-bound.ts";
import { clientTrace } from "../client-trace.ts";
import { namedOf } from "./idempotency.ts";
import { patchOf } from "./run-patch.ts";
import { requireWebhook } from "./webhook-rule.ts";
import { askedOf, rootSettings } from "./run-request.ts";
import type { RunDocument } from "../../contract/runs.ts";
import { refuseTools, shownTools, toolsOf } from "./run-tools.ts";
import type { QueueLook } from "../../run/steps/queue-look.ts";
import { shownWaits } from "../replies/waiting.ts";
import { ListOrder } from "../../objects/clients/directory.ts";
import { openWhenFree } from "../../objects/clients/open-when-free.ts";
import { openRootRun } from "../../objects/clients/open-run.ts";
import { settled } from "../../objects/clients/settlements.ts";
import { subtreeOf } from "../../objects/clients/subtree.ts";
import type { Handlers } from "../handler.ts";
import { RunCaller, type RunStub } from "../../objects/clients/caller.ts";

export const runHandlers = {
  "POST /runs": openRun,
  "GET /runs/:id": async (c) => {
    const query = parseRunLookQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const document = shown(c, await documentOf(c, c.req.param("id")));
    const { subtree, queue } = query.value;
    return c.json({
      ...document,
      ...(subtree ? { subtree: await subtreeOf(c.env, document.id) } : {}),
      ...(queue ? { queue: await queueOf(c, document.id) } : {}),
    });
  },
  "PATCH /runs/:id": patchRun,
  "POST /runs/:id/close": (c) => endRun(c, c.req.param("id"), "closed"),
  "DELETE /runs/:id": (c) => endRun(c, c.req.param("id"), "cancelled"),
  "GET /run": async (c) => c.json(shown(c, await documentOf(c, requireRun(c)))),
  "GET /budget": async (c) => {
    const runId = requireRun(c);
    await settled(c.env, runId);
    const budget = await new RunCaller(c.env, runId).callWithRetry<BudgetDocument | null>((run) => run.budget());
    if (budget === null) throw notFound(runId);
    return c.json(budget);
  },
} satisfies Partial<Handlers>;

/** What the calls of a run wait for that have not ended. Who may see its document may see this. */
async function queueOf(c: Context<AppEnv>, runId: string): Promise<object> {
  const look = await new RunCaller(c.env, runId).callWithRetry<QueueLook | null>((run) => run.queueLook());
  if (look === null) throw notFound(runId);
  const { inFlight, queued, waits, narrowedBy } = look;
  const narrowed = narrowedBy === undefined ? {} : { narrowed_by: narrowedBy };
  return { in_flight: inFlight, queued, waiting_for: shownWaits(waits), ...narrowed };
}

/** Opens a root run for the operator, or a child run inside the run whose token the request has. */
async function openRun(c: Context<AppEnv>): Promise<Response> {
  const principal = c.get("principal");
  const bytes = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!bytes.ok) throw new Refusal(bytes.reason);
  const body = jsonOf(bytes.value);
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = parseRun(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const parentId = principal.kind === "run" || c.req.header("x-fanout-run") !== undefined ? requireRun(c) : null;
  const named = await namedOf(c, bytes.value);
  if (parsed.value.replay_from !== undefined) await requireSource(c, parsed.value.replay_from);
  const document =
    parentId === null
      ? await openRoot(c, parsed.value, named)
      : await openChild(c, { parentId, request: parsed.value, named });
  c.set("spans", { runId: document.id, traceId: document.traceId ?? null });
  return c.json({ ...shown(c, document), token: await tokenOf(c, document) }, 201);
}

/** Refuses to replay a run that the caller may not read, or that has recorded nothing. */
async function requireSource(c: Context<AppEnv>, from: string): Promise<void> {
  const source = await new RunCaller(c.env, from).callWithRetry<ReplaySource>((run) => run.replaySource(callerOf(c)));
  if (source === null) throw notFound(from.slice(0, NAME_CHARS_MAX));
  if (source.records) return;
  const message = 'replay_from: the run records no answers; expected one that was opened with "replay": "run"';
  throw new Refusal({ reason: "invalid_request", message, param: "replay_from" });
}

async function openRoot(
  c: Context<AppEnv>,
  request: RunRequest,
  named: IdempotencyKey | null,
): Promise<StoredDocument> {
  if (request.wait_ms !== undefined) {
    const message = "wait_ms: only a child run waits for room; a root run has no parent";
    throw new Refusal({ reason: "invalid_request", message, param: "wait_ms" });
  }
  if (named !== null) {
    const message = "idempotency-key: only child runs take one; a root run reserves nothing in a parent";
    throw new Refusal({ reason: "invalid_request", message, param: "idempotency-key" });
  }
  const id = newRunId(c.env);
  const { budgets, toolHosts } = c.get("config");
  const nowMs = Date.now();
  const tools = toolsOf(request, toolHosts);
  const asked = { ...askedOf(request), ...clientTrace(c) };
  requireWebhook(c, asked);
  requireInside(c, asked);
  const region = asked.region ?? regionOf(c.req.raw.cf, c.get("config").jurisdiction);
  const settings = { ...rootSettings(asked, id, budgets, nowMs), region, tools };
  return await openRootRun(settings, dayHold(settings, budgets.rootNanoUsdPerDay, nowMs), {
    objects: c.env,
    openedAt: listOrder.next(nowMs),
    waitUntil: (promise) => c.executionCtx.waitUntil(promise),
    signal: c.get("client"),
  });
}

/** A run of a jurisdiction begins nowhere else. */
function requireInside(c: Context<AppEnv>, { region }: Pick<RunInput, "region">): void {
  const { jurisdiction } = c.get("config");
  if (region === null || jurisdiction === null || isInside(region, jurisdiction)) return;
  const message = `region: this gateway keeps its runs in the jurisdiction ${jurisdiction}; expected ${regionsInside(jurisdiction)}`;
  throw new Refusal({ reason: "invalid_request", message, param: "region" });
}

const listOrder = new ListOrder();

function dayHold(settings: RunSettings, limitNanoUsd: number | null, nowMs: number): DayReservation | null {
  if (limitNanoUsd === null) return null;
  return { day: new Date(nowMs).toISOString().slice(0, 10), nanoUsd: settings.limits.usd ?? 0, limitNanoUsd };
}

type ChildRequest = { parentId: string; request: RunRequest; named: IdempotencyKey | null };

async function openChild(c: Context<AppEnv>, { parentId, request, named }: ChildRequest): Promise<StoredDocument> {
  refuseTools(request, c.get("principal"));
  const run = new RunCaller(c.env, parentId);
  // What answered calls have left of their reservations is free for the child.
  await settled(c.env, parentId);
  const settings = { ...askedOf(request), ...clientTrace(c) };
  requireWebhook(c, settings);
  requireInside(c, settings);
  const id = newRunId(c.env);
  const opened =
    request.wait_ms === undefined
      ? await openAtOnce(run, { settings, id, named })
      : await openWaiting(c, run, { settings, id, named }, request.wait_ms);
  if (!opened.ok) throw new Refusal(opened.reason);
  c.set("remainingNanoUsd", opened.remainingNanoUsd);
  if (!opened.replayed || named === null) return opened.document;
  c.header("idempotent-replayed", "true");
  // It may have made calls since, whose settlements this isolate still has.
  return (await lookAt(c, opened.document.id, null)) ?? opened.document;
}

type ChildToOpen = { settings: RunInput; id: string; named: IdempotencyKey | null };

function openAtOnce(run: RunCaller, { settings, id, named }: ChildToOpen): Promise<OpenChildReply> {
  const open = (stub: RunStub): Promise<OpenChildReply> => stub.openChild(settings, id, named);
  // Without a key a second request would open a second child.
  return named === null ? run.callOnce(open) : run.callWithRetry(open);
}

async function openWaiting(
  c: Context<AppEnv>,
  run: RunCaller,
  child: ChildToOpen,
  waitMs: number,
): Promise<OpenChildReply> {
  const { signal } = c.req.raw;
  const opening = openWhenFree({ run, objects: c.env, now: Date.now, signal }, child, waitMs);
  // A client that leaves must not leave behind a child that nobody has the token of.
  c.executionCtx.waitUntil(opening.catch(() => undefined));
  return await opening;
}

async function endRun(c: Context<AppEnv>, runId: string, status: EndStatus): Promise<Response> {
  const run = new RunCaller(c.env, runId);
  // A call that was answered is not cancelled.
  await settled(c.env, runId);
  const document = await run.callWithRetry<StoredDocument | null>((stub) => stub.endAndWait(status, callerOf(c)));
  if (document === null) throw notFound(runId);
  return c.json(shown(c, document));
}

async function patchRun(c: Context<AppEnv>): Promise<Response> {
  const body = await parseBody(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const patch = parsePatch(body.value);
  if (!patch.ok) throw new Refusal(patch.reason);
  const current = await documentOf(c, c.req.param("id") ?? "");
  const isRoot = current.parent_id === null;
  const change = patchOf(patch.value, c.get("config").budgets, { isRoot, nowMs: Date.now() });
  if (change.expiresAtMs !== undefined) await refuseLaterThanParent(c, current, change.expiresAtMs);
  const patched = await new RunCaller(c.env, current.id).callWithRetry<PatchReply | null>((run) => run.patch(change));
  if (patched === null) throw notFound(current.id);
  if (!patched.ok) throw new Refusal(patched.reason);
  const document = shown(c, patched.document);
  if (change.expiresAtMs === undefined) return c.json(document);
  return c.json({ ...document, token: await tokenOf(c, patched.document) });
}

/** A run ends with its parent: a later expiry would be a promise that is not kept. */
async function refuseLaterThanParent(c: Context<AppEnv>, run: StoredDocument, expiresAtMs: number): Promise<void> {
  const parent = run.parent_id === null ? null : await lookAt(c, run.parent_id, null);
  if (parent === null || expiresAtMs <= Date.parse(parent.expires_at)) return;
  const message = `expires_in_s: the parent run expires at ${parent.expires_at}, and a child run with it; extend the parent first`;
  throw new Refusal({ reason: "invalid_request", message, param: "expires_in_s" });
}

function tokenOf(
  c: Context<AppEnv>,
  { id: runId, depth, expires_at, replay, traceId }: StoredDocument,
): Promise<string> {
  const records = replay === "run" ? { records: true as const } : {};
  const traced = traceId === undefined ? {} : { traceId };
  return signRunToken(c.get("keys").signing, {
    runId,
    depth,
    expiresAtMs: Date.parse(expires_at),
    ...records,
    ...traced,
  });
}

/** A run's document. Another run's things are not found, rather than forbidden: a token learns nothing of what exists. */
export async function documentOf(c: Context<AppEnv>, runId: string): Promise<StoredDocument> {
  const document = await lookAt(c, runId, callerOf(c));
  if (document === null) throw notFound(runId);
  return document;
}

export async function lookAt(c: Context<AppEnv>, runId: string, caller: string | null): Promise<StoredDocument | null> {
  await settled(c.env, runId);
  return await new RunCaller(c.env, runId).callWithRetry<StoredDocument | null>((run) => run.document(caller));
}

/** The run whose token the request has; null = the operator. */
export function callerOf(c: Context<AppEnv>): string | null {
  const principal = c.get("principal");
  return principal.kind === "run" ? principal.runId : null;
}

/** A run's document as its reader may see it. The client's metadata is stored as text; here it becomes an object again. */
export function shown(
  c: Context<AppEnv>,
  { metadataJson, blocked = null, replay = null, replay_from = null, webhook = null, ...stored }: StoredDocument,
): Omit<StoredDocument, "metadataJson" | "traceId" | "tools"> & Pick<RunDocument, "tools"> & { metadata: unknown } {
  const metadata: unknown = JSON.parse(metadataJson);
  const { traceId: _inToken, ...document } = stored;
  return {
    ...document,
    blocked,
    replay,
    replay_from,
    webhook,
    tools: shownTools(document.tools, c.get("principal")),
    metadata,
  };
}

export function notFound(runId: string): Refusal {
  return new Refusal({ reason: "not_found", what: `run ${runId}` });
}
