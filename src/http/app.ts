/** The HTTP application: what surrounds every route, and the form of failures. */
import type { Context, MiddlewareHandler } from "hono";
import { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import type { AppEnv } from "./context.ts";
import { ArrivalClock } from "./arrival-clock.ts";
import { crossOrigin } from "./cors.ts";
import type { Reason, Spent } from "../errors.ts";
import { Refusal, toWire, withJitter } from "../errors.ts";
import { drain } from "../contract/body.ts";
import { patternOf } from "../contract/routes/record.ts";
import { ROUTES } from "../contract/routes/table.ts";
import { ARRIVAL_LOOK_MS, REFUSED_BODY_BYTES_MAX } from "../limits.ts";
import { anthropicError, isAnthropicPath } from "./anthropic-error.ts";
import { dialectError } from "./dialect-error.ts";
import { isDialectPath } from "./dialect-path.ts";
import { methodsOf, missingPath } from "./missing-path.ts";
import { refusedFor } from "./refused.ts";
import { KeptMatches } from "./kept-matches.ts";
import { mountRoutes } from "./mount.ts";

/** Effects of the application. `log` takes what an operator must see and a client must not. */
export type AppDeps = {
  /** Epoch ms. */
  now: () => number;
  newRequestId: () => string;
  log: (message: string) => void;
  /** Uniform in [0, 1). */
  random: () => number;
  /** Waits so many ms. Absent = the instance does not notice that it stands still. */
  wait?: (ms: number) => Promise<void>;
};

const PATHS_WITHOUT_PARAMETERS = ROUTES.map(patternOf).filter((path) => !/[:*?]/.test(path));

/** The effects of a Worker that nothing outlives. */
export const RUNTIME_DEPS: AppDeps = {
  now: () => Date.now(),
  newRequestId: () => crypto.randomUUID(),
  log: (message) => console.error(message),
  random: () => Math.random(),
};

/** The application, ready to `fetch`. Tests replace its effects. */
export function createApp(deps: AppDeps = RUNTIME_DEPS): Hono<AppEnv> {
  // hono's router of regular expressions refuses `/dag/validate` beside `/dag/:id/retry`.
  const app = new Hono<AppEnv>({ router: new KeptMatches(new TrieRouter(), PATHS_WITHOUT_PARAMETERS) });
  app.use(around(deps));
  const failed = (error: Error, c: Context<AppEnv>): Response => {
    const reason = refusedFor(error);
    const spent = error instanceof Refusal ? error.spent : null;
    if (reason !== null) return failure(withJitter(reason, deps.random), c.req.path, spent);
    const id = c.get("requestId");
    deps.log(`request ${id} failed: ${error.stack ?? error.message}`);
    const message = `an internal error, logged under the request id ${id}`;
    return failure({ reason: "internal", message }, c.req.path);
  };
  mountRoutes(app, { now: deps.now, failed });
  app.onError(failed);
  app.notFound((c) => {
    const { method, path } = c.req;
    const allowed = methodsOf(path).join(", ");
    if (allowed === "") return failure(missingPath(method, path), path);
    return failure({ reason: "method_not_allowed", method, allowed }, path);
  });
  return app;
}

/** The HTTP answer to a request that failed for an expected reason, in the form that the clients of its path read. */
export function failure(reason: Reason, path = "", spent: Spent | null = null): Response {
  const { status, error, headers } = toWire(reason, spent);
  if (isDialectPath(path)) return Response.json(dialectError(error), { status, headers });
  return Response.json(isAnthropicPath(path) ? anthropicError(status, error) : { error }, { status, headers });
}

/** What surrounds every route. One entry of the router for all of it: each costs every request a turn. */
function around(deps: AppDeps): MiddlewareHandler<AppEnv> {
  const arrived = arrivals(deps);
  return async function around(c, next) {
    const answered = arrived(c);
    const id = requestIdOf(c, deps.newRequestId);
    c.set("requestId", id);
    const preflight = await crossOrigin(c, async () => {
      await next();
      if (c.res.status >= 400) await drain(c.req.raw, REFUSED_BODY_BYTES_MAX);
    });
    if (preflight instanceof Response) c.res = preflight;
    nameRequest(c, id);
    answered();
  };
}

/**
 * Notes when a request came, before anything is read or awaited: calls that arrive together form a group, whatever each waits for. What it
 * returns is called when the request is answered.
 */
function arrivals({ now, wait }: AppDeps): (c: Context<AppEnv>) => () => void {
  const clock = new ArrivalClock();
  const watch = async (look: (nowMs: number) => boolean, waitLook: (ms: number) => Promise<void>): Promise<void> => {
    do await waitLook(ARRIVAL_LOOK_MS);
    while (look(now()));
  };
  const answered = (): void => clock.answered();
  return (c) => {
    // Calls are posted; nothing else belongs to a window.
    const isWatched = wait !== undefined && c.req.method === "POST";
    const { arrivedAtMs, look } = isWatched ? clock.arrived(now()) : { arrivedAtMs: now(), look: null };
    c.set("acceptedAtMs", arrivedAtMs);
    if (wait !== undefined && look !== null) c.executionCtx.waitUntil(watch(look, wait));
    return isWatched ? answered : () => undefined;
  };
}

/** A client's own request id is used if it is valid in a log line and a header. */
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

function requestIdOf(c: Context<AppEnv>, newRequestId: () => string): string {
  const sent = c.req.header("x-request-id");
  return sent !== undefined && REQUEST_ID.test(sent) ? sent : newRequestId();
}

/** Names the request on its answer, whatever the answer is. */
function nameRequest(c: Context<AppEnv>, id: string): void {
  if (c.get("isNamed")) return;
  if (c.res.headers.get("x-request-id") !== id) c.header("x-request-id", id);
  // The name by which Anthropic's clients know it.
  if (isAnthropicPath(c.req.path) && c.res.headers.get("request-id") !== id) c.header("request-id", id);
}
