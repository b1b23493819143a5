/** The HTTP application: what surrounds every route, and the order in which routes are mounted. */
import type { MiddlewareHandler } from "hono";
import { Hono } from "hono";
import { TrieRouter } from "hono/router/trie-router";
import type { AppEnv } from "./context.ts";
import { crossOrigin } from "./cors.ts";
import type { Reason, Spent } from "./errors.ts";
import { Refusal, toWire, withJitter } from "./errors.ts";
import { authenticate } from "./auth/middleware.ts";
import { drain } from "./contract/body.ts";
import { REFUSED_BODY_BYTES_MAX } from "./limits.ts";
import { anthropicError, isAnthropicPath } from "./routes/anthropic/error.ts";
import { mountAnthropic } from "./routes/anthropic/anthropic.ts";
import { boundBody } from "./routes/body-bound.ts";
import { mountBatch } from "./routes/native/batch.ts";
import { mountBatches } from "./routes/openai/batches.ts";
import { mountCassettes } from "./routes/operator/cassettes.ts";
import { mountContexts } from "./routes/contexts/contexts.ts";
import { keepReserve } from "./routes/disk-reserve.ts";
import { dialectError } from "./routes/dialects/error.ts";
import { isDialectPath } from "./routes/dialects/path.ts";
import { mountDialects } from "./routes/dialects/dialects.ts";
import { mountFiles } from "./routes/openai/files.ts";
import { mountDag } from "./routes/native/graph/dag.ts";
import { mountDagOutline } from "./routes/native/graph/outline.ts";
import { mountDagPatch } from "./routes/native/graph/patch.ts";
import { mountPlan } from "./routes/native/plan/plan.ts";
import { mountRetries } from "./routes/native/retry-group.ts";
import { mountDagValidate } from "./routes/native/graph/validate.ts";
import { mountGroups } from "./routes/native/groups.ts";
import { mountModels } from "./routes/openai/models.ts";
import { mountOpenAi } from "./routes/openai/openai.ts";
import { mountProbe } from "./routes/probe/probe.ts";
import { mountOps } from "./routes/discovery/ops.ts";
import { mountMcp } from "./routes/mcp/mcp.ts";
import { mountMetrics } from "./routes/operator/metrics.ts";
import { mountTurn } from "./routes/operator/turn.ts";
import { mountUpstreams } from "./routes/operator/upstreams.ts";
import { mountQuery } from "./routes/native/query.ts";
import { mountRunLog } from "./routes/native/log/run-log.ts";
import { mountRunList } from "./routes/native/run-list.ts";
import { mountRuns } from "./routes/native/runs.ts";
import { mountPull } from "./routes/native/pull.ts";
import { mountToolCall } from "./routes/native/tool-call.ts";
import { mountUploads } from "./routes/openai/uploads.ts";
import { methodsByPath, missingPath } from "./routes/missing-path.ts";
import { refusedFor } from "./routes/refused.ts";
import { underRun, type Protection } from "./routes/under-run.ts";

/** Effects of the application. `log` takes what an operator must see and a client must not. */
export type AppDeps = {
  /** Epoch ms. */
  now: () => number;
  newRequestId: () => string;
  log: (message: string) => void;
  /** Uniform in [0, 1). */
  random: () => number;
};

const RUNTIME_DEPS: AppDeps = {
  now: () => Date.now(),
  newRequestId: () => crypto.randomUUID(),
  log: (message) => console.error(message),
  random: () => Math.random(),
};

/** The application, ready to `fetch`. Tests replace its effects. */
export function createApp(deps: AppDeps = RUNTIME_DEPS): Hono<AppEnv> {
  // hono's router of regular expressions refuses `/dag/validate` beside `/dag/:id/retry`.
  const app = new Hono<AppEnv>({ router: new TrieRouter() });
  app.use(requestId(deps.newRequestId));
  app.use(crossOrigin());
  app.use(async function drainRefused(c, next) {
    await next();
    if (c.res.status >= 400) await drain(c.req.raw, REFUSED_BODY_BYTES_MAX);
  });

  mountOps(app);
  const protect: Protection = [authenticate(deps), boundBody(), keepReserve(), underRun()];
  mountRuns(app, protect);
  mountRunList(app, protect);
  mountQuery(app, protect);
  mountBatch(app, protect);
  mountContexts(app, protect);
  mountDag(app, protect);
  mountDagValidate(app, protect);
  mountDagPatch(app, protect);
  mountDagOutline(app, protect);
  mountPlan(app, protect);
  mountRetries(app, protect);
  mountDialects(app, protect);
  mountToolCall(app, protect);
  mountPull(app, protect);
  mountGroups(app, protect);
  mountRunLog(app, protect);
  mountOpenAi(app, protect);
  mountAnthropic(app, protect);
  mountModels(app, protect);
  mountFiles(app, protect);
  mountUploads(app, protect);
  mountBatches(app, protect);
  mountUpstreams(app, protect);
  mountTurn(app, protect);
  mountMetrics(app, protect);
  mountCassettes(app, protect);
  mountMcp(app, protect);
  mountProbe(app, protect);

  app.onError((error, c) => {
    const reason = refusedFor(error);
    const spent = error instanceof Refusal ? error.spent : null;
    if (reason !== null) return failure(withJitter(reason, deps.random), c.req.path, spent);
    const id = c.get("requestId");
    deps.log(`request ${id} failed: ${error.stack ?? error.message}`);
    const message = `an internal error, logged under the request id ${id}`;
    return failure({ reason: "internal", message }, c.req.path);
  });
  const methodsOf = methodsByPath(app);
  app.notFound((c) => {
    const { method, path } = c.req;
    const allowed = methodsOf(path).join(", ");
    if (allowed === "") return failure(missingPath(method, path, methodsOf), path);
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

/** A client's own request id is used if it is valid in a log line and a header. */
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Names the request, in its context and on its answer, whatever the answer is. */
function requestId(newRequestId: () => string): MiddlewareHandler<AppEnv> {
  return async function requestId(c, next) {
    const sent = c.req.header("x-request-id");
    const id = sent !== undefined && REQUEST_ID.test(sent) ? sent : newRequestId();
    c.set("requestId", id);
    c.header("x-request-id", id);
    await next();
    // Answers that the context did not create lack it, and a relayed one may carry the upstream's.
    if (c.res.headers.get("x-request-id") !== id) c.header("x-request-id", id);
    // The name by which Anthropic's clients know it.
    if (isAnthropicPath(c.req.path)) c.header("request-id", id);
  };
}
