/** The HTTP application: what surrounds every route, and the form of failures. */
import type { MiddlewareHandler } from "hono";
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
import { anthropicError, isAnthropicPath } from "./relay/anthropic-error.ts";
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
  app.use(acceptedAt(deps));
  app.use(requestId(deps.newRequestId));
  app.use(crossOrigin());
  app.use(async function drainRefused(c, next) {
    await next();
    if (c.res.status >= 400) await drain(c.req.raw, REFUSED_BODY_BYTES_MAX);
  });

  mountRoutes(app, deps);

  app.onError((error, c) => {
    const reason = refusedFor(error);
    const spent = error instanceof Refusal ? error.spent : null;
    if (reason !== null) return failure(withJitter(reason, deps.random), c.req.path, spent);
    const id = c.get("requestId");
    deps.log(`request ${id} failed: ${error.stack ?? error.message}`);
    const message = `an internal error, logged under the request id ${id}`;
    return failure({ reason: "internal", message }, c.req.path);
  });
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

/** Notes when the request came, before anything is read or awaited: calls that arrive together form a group, whatever each waits for. */
function acceptedAt({ now, wait }: AppDeps): MiddlewareHandler<AppEnv> {
  const clock = new ArrivalClock();
  const watch = async (look: (nowMs: number) => boolean, waitLook: (ms: number) => Promise<void>): Promise<void> => {
    do await waitLook(ARRIVAL_LOOK_MS);
    while (look(now()));
  };
  return async function acceptedAt(c, next) {
    // Calls are posted; nothing else belongs to a window.
    const isWatched = wait !== undefined && c.req.method === "POST";
    const { arrivedAtMs, look } = isWatched ? clock.arrived(now()) : { arrivedAtMs: now(), look: null };
    c.set("acceptedAtMs", arrivedAtMs);
    if (wait !== undefined && look !== null) c.executionCtx.waitUntil(watch(look, wait));
    await next();
    if (isWatched) clock.answered();
  };
}

/** A client's own request id is used if it is valid in a log line and a header. */
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Names the request, in its context and on its answer, whatever the answer is. */
function requestId(newRequestId: () => string): MiddlewareHandler<AppEnv> {
  return async function requestId(c, next) {
    const sent = c.req.header("x-request-id");
    const id = sent !== undefined && REQUEST_ID.test(sent) ? sent : newRequestId();
    c.set("requestId", id);
    await next();
    // Routes of calls set it with all of their headers.
    if (c.res.headers.get("x-request-id") !== id) c.header("x-request-id", id);
    // The name by which Anthropic's clients know it.
    if (isAnthropicPath(c.req.path) && c.res.headers.get("request-id") !== id) c.header("request-id", id);
  };
}
