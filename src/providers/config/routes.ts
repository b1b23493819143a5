/** Parses ROUTES: model names that stand for a list of targets. Messages name what was expected and where. */
import * as z from "zod";
import { FALLBACK_CAUSES, type FallbackCause } from "../../call.ts";
import { NAME_CHARS_MAX, ROUTE_TARGETS_MAX, ROUTES_MAX } from "../../limits.ts";
import { isRecord } from "../../text/json/record.ts";
import { resolveModel } from "./registry.ts";
import type { Upstream } from "./types.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** A target of a route. `on`: the causes for which calls come here; null = any failure that passes, and a stop. */
export type RouteEntry = { upstream: Upstream; model: string; on: readonly FallbackCause[] | null };

/** A model name that stands for several targets, in the order in which they are preferred. */
export type Route = { name: string; entries: readonly RouteEntry[] };

/** The routes, or the path of the first wrong field and what is expected there. */
export type ParsedRoutes = { ok: true; routes: Route[] } | { ok: false; path: string; message: string };

/** No slash, which separates an upstream from its model, and no `*`, which is a pattern's. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;

const CAUSES = FALLBACK_CAUSES.join(", ");
const targetError = 'must be a model such as "openai/gpt-x", or an object with model and on';
const onError = `must be a list of one or more of ${CAUSES}`;
const entrySchema = atFirstUse(() =>
  z.strictObject({
    model: z.string({ error: "must be a model such as openai/gpt-x" }),
    on: z
      .array(z.enum(FALLBACK_CAUSES, { error: onError }), { error: onError })
      .min(1, { error: onError })
      .optional(),
  }),
);

/** Parses the value of ROUTES; not set = none. */
export function parseRoutes(value: unknown, upstreams: readonly Upstream[]): ParsedRoutes {
  if (value === undefined || value === null) return { ok: true, routes: [] };
  if (!isRecord(value)) return wrong([], "must be an object of routes by name, or JSON text of one");
  const names = Object.keys(value);
  if (names.length > ROUTES_MAX) return wrong([], `names ${names.length} routes; at most ${ROUTES_MAX} are possible`);
  const routes: Route[] = [];
  for (const name of names) {
    const named = nameFault(name, upstreams);
    if (named !== null) return wrong([name], named);
    const parsed = parseRoute(name, value[name], { names, upstreams });
    if (!parsed.ok) return parsed;
    routes.push(...parsed.routes);
  }
  return { ok: true, routes };
}

/** What is wrong with a route's name; null = nothing. */
function nameFault(name: string, upstreams: readonly Upstream[]): string | null {
  if (!NAME.test(name) || name.length > NAME_CHARS_MAX) {
    return `a route's name has 1 to ${NAME_CHARS_MAX} letters, digits and . _ : -, and begins with a letter or digit`;
  }
  const owner = upstreams.find(({ models }) => models.includes(name));
  return owner === undefined ? null : `is a model of UPSTREAMS.${owner.name}, too: give the route another name`;
}

type Known = { names: readonly string[]; upstreams: readonly Upstream[] };

function parseRoute(name: string, value: unknown, known: Known): ParsedRoutes {
  if (!Array.isArray(value) || value.length === 0) return wrong([name], "must be a list of one or more targets");
  if (value.length > ROUTE_TARGETS_MAX) return wrong([name], `must have at most ${ROUTE_TARGETS_MAX} targets`);
  const entries: RouteEntry[] = [];
  for (const [index, raw] of value.entries()) {
    const path = [name, String(index)];
    const read = readEntry(raw);
    if (!read.ok) return wrong([...path, ...read.path], read.message);
    const { model, on } = read.value;
    const at = typeof raw === "string" ? path : [...path, "model"];
    if (index === 0 && on !== null) return wrong([...path, "on"], "calls begin here: only later targets have on");
    if (known.names.includes(model)) return wrong(at, "is a route: name a model of an upstream");
    const resolved = resolveModel(known.upstreams, model);
    if (resolved === null) return wrong(at, "is served by no upstream in UPSTREAMS");
    const isTwin = entries.some((entry) => entry.upstream === resolved.upstream && entry.model === resolved.model);
    if (isTwin) return wrong(at, "is in this list already: name each target once");
    entries.push({ ...resolved, on });
  }
  return { ok: true, routes: [{ name, entries }] };
}

type ReadEntry =
  | { ok: true; value: { model: string; on: readonly FallbackCause[] | null } }
  | { ok: false; path: string[]; message: string };

function readEntry(raw: unknown): ReadEntry {
  if (typeof raw === "string") return { ok: true, value: { model: raw, on: null } };
  if (!isRecord(raw)) return { ok: false, path: [], message: targetError };
  const parsed = entrySchema().safeParse(raw);
  if (parsed.success) return { ok: true, value: { model: parsed.data.model, on: parsed.data.on ?? null } };
  const issue = parsed.error.issues[0];
  const path = (issue?.path ?? []).map(String);
  if (issue?.code === "unrecognized_keys") {
    return { ok: false, path: [...path, ...issue.keys.slice(0, 1)], message: "is not a known field" };
  }
  return { ok: false, path, message: issue?.message ?? targetError };
}

function wrong(path: readonly string[], message: string): ParsedRoutes {
  return { ok: false, path: ["ROUTES", ...path].join("."), message };
}
