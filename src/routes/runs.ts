/** Runs: open one, look at one, list them, and what is left of one's budget. */
import type { Context, Hono } from "hono";
import { directoryOf, runOf } from "../../durable-objects/address.ts";
import type { RunSettings } from "../../durable-objects/run/settings.ts";
import { signRunToken } from "../auth/token.ts";
import { requireOperator, requireRun } from "../auth/middleware.ts";
import { limitNanoUsd } from "../budget/money.ts";
import type { AppEnv } from "../context.ts";
import { parseBody } from "../contract/body.ts";
import { errorStyleOf } from "../contract/fields.ts";
import { parseRun, parseRunListQuery, type RunRequest } from "../contract/runs.ts";
import { Refusal } from "../errors.ts";
import {
  BODY_BYTES_MAX,
  DEPTH_DEFAULT,
  EXPIRES_S_DEFAULT,
  LIST_PAGE_DEFAULT,
  PARALLEL_DEFAULT,
  WINDOW_MS_DEFAULT,
} from "../limits.ts";
import type { Protection } from "./under-run.ts";

type Stored = { metadataJson: string };

export function mountRuns(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/runs", ...protect, openRun);
  app.get("/runs", ...protect, listRuns);
  app.get("/runs/:id", ...protect, async (c) => {
    const principal = c.get("principal");
    const runId = c.req.param("id");
    // Another run's things are not found, rather than forbidden: a token learns nothing about what exists.
    if (principal.kind === "run" && principal.runId !== runId) throw notFound(runId);
    return c.json(await documentOf(c, runId));
  });
  app.get("/run", ...protect, async (c) => c.json(await documentOf(c, requireRun(c))));
  app.get("/budget", ...protect, async (c) => {
    const runId = requireRun(c);
    const budget = await runOf(c.env, runId).budget();
    if (budget === null) throw notFound(runId);
    return c.json(budget);
  });
}

async function openRun(c: Context<AppEnv>): Promise<Response> {
  requireOperator(c);
  const body = await parseBody(c.req.raw, BODY_BYTES_MAX);
  if (!body.ok) throw new Refusal(body.reason);
  const parsed = parseRun(body.value);
  if (!parsed.ok) throw new Refusal(parsed.reason);
  const settings = settingsOf(parsed.value, `run_${crypto.randomUUID().replaceAll("-", "")}`, Date.now());
  const document = await runOf(c.env, settings.id).open(settings);
  await directoryOf(c.env).add(settings.id);
  const { id: runId, depth, expiresAtMs } = settings;
  const token = await signRunToken(c.get("keys").signing, { runId, depth, expiresAtMs });
  return c.json({ ...shown(document), token }, 201);
}

async function listRuns(c: Context<AppEnv>): Promise<Response> {
  requireOperator(c);
  const query = parseRunListQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { limit, cursor } = query.value;
  const page = await directoryOf(c.env).page(cursor ?? null, limit ?? LIST_PAGE_DEFAULT);
  if (page === null) {
    // An empty page would look like the end of the list.
    const message = "cursor: expected the next_cursor of an earlier page";
    throw new Refusal({ reason: "invalid_request", message, param: "cursor" });
  }
  const documents = await Promise.all(page.ids.map((id) => runOf(c.env, id).document()));
  const data = documents.flatMap((document) => (document === null ? [] : [shown(document)]));
  const last = page.ids.at(-1) ?? null;
  return c.json({ object: "list", data, has_more: page.hasMore, next_cursor: page.hasMore ? last : null });
}

async function documentOf(c: Context<AppEnv>, runId: string) {
  const document = await runOf(c.env, runId).document();
  if (document === null) throw notFound(runId);
  return shown(document);
}

/** The client's metadata travels as text; it is an object again on the wire. */
function shown<T extends Stored>({ metadataJson, ...document }: T): Omit<T, "metadataJson"> & { metadata: unknown } {
  const metadata: unknown = JSON.parse(metadataJson);
  return { ...document, metadata };
}

function settingsOf(request: RunRequest, id: string, nowMs: number): RunSettings {
  const budget = request.budget ?? {};
  return {
    id,
    name: request.name ?? null,
    parentId: null,
    depth: 0,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + (request.expires_in_s ?? EXPIRES_S_DEFAULT) * 1_000,
    limits: {
      usd: budget.usd === undefined ? null : limitNanoUsd(budget.usd),
      calls: budget.calls ?? null,
      prompt_tokens: budget.prompt_tokens ?? null,
      completion_tokens: budget.completion_tokens ?? null,
    },
    maxParallel: request.max_parallel ?? PARALLEL_DEFAULT,
    maxDepth: request.max_depth ?? DEPTH_DEFAULT,
    models: request.models ?? null,
    defaultModel: request.default_model ?? null,
    errorStyle: errorStyleOf(request.error_style) ?? "bracket",
    windowMs: request.window_ms ?? WINDOW_MS_DEFAULT,
    unpriced: request.unpriced ?? "refuse",
    metadataJson: JSON.stringify(request.metadata ?? {}),
  };
}

function notFound(runId: string): Refusal {
  return new Refusal({ reason: "not_found", what: `run ${runId}` });
}
