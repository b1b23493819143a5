/** `GET /v1/models`: the models that the run may use, as `upstream/model`. */
import type { Context } from "hono";
import type { ModelRulesReply } from "../../objects/methods/runs.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../../errors.ts";
import { MODELS_BYTES_MAX, MODELS_KEPT_MS, MODELS_TIMEOUT_MS } from "../../limits.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { discard, readBody } from "../../providers/read-body.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { modelsRequest, plainNames, readModels, type ListedModel } from "../../providers/models.ts";
import { PANEL_MODEL } from "../../providers/panel.ts";
import { targetOf, type ModelRules } from "../../providers/target.ts";
import type { Handlers } from "../handler.ts";

export const modelHandlers = {
  "GET /v1/models": async (c) => {
    const rules = await rulesOf(c);
    const listed = await Promise.all(c.get("config").upstreams.map((upstream) => modelsOf(upstream)));
    const routes = c.get("config").routes.map(({ name }) => documentOf({ id: name, created: 0 }, ROUTE_OWNER));
    const panel = isPanelAllowed(c, rules) ? [documentOf({ id: PANEL_MODEL, created: 0 }, ROUTE_OWNER)] : [];
    const data = [...panel, ...[...routes, ...listed.flat()].filter(({ id }) => isAllowed(c, rules, id))];
    const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
    return c.json({ object: "list", data, has_more: false, ...ends });
  },
  // The ids contain slashes, which clients send encoded or not.
  "GET /v1/models/:id": async (c) => {
    const requested = c.req.param("id");
    const rules = await rulesOf(c);
    if (requested === PANEL_MODEL && isPanelAllowed(c, rules)) {
      return c.json(documentOf({ id: PANEL_MODEL, created: 0 }, ROUTE_OWNER));
    }
    const resolved = targetOf(requested, rules, c.get("config"));
    if (!resolved.ok && resolved.reason.reason !== "unpriced_model") throw new Refusal(resolved.reason);
    const target = resolved.ok ? resolved.target : null;
    const owner = target?.route === undefined ? (target?.upstream ?? "") : ROUTE_OWNER;
    return c.json(documentOf({ id: requested, created: 0 }, owner));
  },
} satisfies Partial<Handlers>;

async function rulesOf(c: Context<AppEnv>): Promise<ModelRules> {
  const reply = await new RunCaller(c.env, requireRun(c)).callWithRetry<ModelRulesReply>((run) => run.modelRules());
  if (!reply.ok) throw new Refusal(reply.reason);
  return reply.rules;
}

/** A model without a price is listed: the run decides at the call whether to refuse it. */
function isAllowed(c: Context<AppEnv>, rules: ModelRules, id: string): boolean {
  return targetOf(id, { ...rules, unpriced: "free" }, c.get("config")).ok;
}

/** A run may use the panel if it may use all of its models. */
function isPanelAllowed(c: Context<AppEnv>, rules: ModelRules): boolean {
  const { panel } = c.get("config");
  return panel !== null && [...panel.members, panel.judge].every((model) => isAllowed(c, rules, model));
}

/** Whose model a route is: the gateway's. */
const ROUTE_OWNER = "fanout";

type ModelDocument = ReturnType<typeof documentOf>;

function documentOf({ id, created }: ListedModel, owner: string) {
  const shown = { display_name: id, created_at: new Date(created * 1_000).toISOString(), type: "model" };
  return { id, object: "model" as const, created, owned_by: owner, ...shown };
}

const cached = new Map<string, { untilMs: number; models: ListedModel[] }>();

/** An upstream's models: those that its configuration names, and those that it lists itself. */
async function modelsOf(upstream: Upstream): Promise<ModelDocument[]> {
  const { name } = upstream;
  const named = new Map(plainNames(upstream).map((id) => [id, { id, created: 0 }]));
  if (upstream.models.some((pattern) => pattern.includes("*"))) {
    for (const model of await listedBy(upstream)) named.set(model.id, model);
  }
  return [...named.values()].map(({ id, created }) => documentOf({ id: `${name}/${id}`, created }, name));
}

/** The models that the upstream lists, cached in the isolate for some minutes; empty while the upstream does not answer. */
async function listedBy(upstream: Upstream): Promise<ListedModel[]> {
  const request = modelsRequest(upstream);
  if (request === null) return [];
  // Upstreams may share a URL and differ in what they allow.
  const key = `${upstream.name} ${request.url}`;
  const known = cached.get(key);
  if (known !== undefined && Date.now() < known.untilMs) return known.models;
  const text = await listOf(request);
  if (text === null) return known?.models ?? [];
  const models = readModels(text, upstream);
  // As many entries as the configuration has upstreams.
  cached.set(key, { untilMs: Date.now() + MODELS_KEPT_MS, models });
  return models;
}

async function listOf({ url, headers }: { url: string; headers: Record<string, string> }): Promise<string | null> {
  try {
    const answer = await fetch(url, { headers, redirect: "manual", signal: AbortSignal.timeout(MODELS_TIMEOUT_MS) });
    if (!answer.ok) {
      await discard(answer);
      return null;
    }
    const body = await readBody(answer, MODELS_BYTES_MAX);
    return body.ok ? body.text : null;
  } catch {
    return null;
  }
}
