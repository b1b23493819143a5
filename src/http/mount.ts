/** Joins each record of the table of routes with its handler, and mounts it behind what its record demands. */
import type { Context, Hono } from "hono";
import { authenticate, refuseRuns } from "./auth/middleware.ts";
import type { AppEnv } from "./context.ts";
import { bodyBytesMax, patternOf, type Route } from "../contract/routes/record.ts";
import { ROUTES, type RouteName } from "../contract/routes/table.ts";
import { withBoundBody } from "./body-bound.ts";
import { keepReserve, mayOpen } from "./disk-reserve.ts";
import type { Handler, Handlers } from "./handler.ts";
import { nameRun } from "./under-run.ts";
import { countTokensHandlers } from "./relay/count-tokens.ts";
import { contextHandlers } from "./contexts/contexts.ts";
import { dialectHandlers } from "./dialects/dialects.ts";
import { docsHandlers } from "./discovery/docs.ts";
import { opsHandlers } from "./discovery/ops.ts";
import { runPageHandlers } from "./discovery/run-page.ts";
import { mcpHandlers } from "./mcp/mcp.ts";
import { messageBatchHandlers } from "./message-batches.ts";
import { batchHandlers } from "./native/batch.ts";
import { cancelGroupsHandlers } from "./native/cancel-groups.ts";
import { dagHandlers } from "./native/graph/dag.ts";
import { dagOutlineHandlers } from "./native/graph/outline.ts";
import { dagPatchHandlers } from "./native/graph/patch.ts";
import { dagValidateHandlers } from "./native/graph/validate.ts";
import { groupHandlers } from "./native/groups.ts";
import { runLogHandlers } from "./native/log/run-log.ts";
import { planHandlers } from "./native/plan/plan.ts";
import { pullHandlers } from "./native/pull.ts";
import { queryHandlers } from "./native/query.ts";
import { retryHandlers } from "./native/retry-group.ts";
import { runListHandlers } from "./native/run-list.ts";
import { runSearchHandlers } from "./native/run-search.ts";
import { runHandlers } from "./native/runs.ts";
import { toolCallHandlers } from "./native/tool-call.ts";
import { batchApiHandlers } from "./openai/batches.ts";
import { fileHandlers } from "./openai/files.ts";
import { modelHandlers } from "./openai/models.ts";
import { storedResponseHandlers } from "./relay/stored-responses.ts";
import { uploadHandlers } from "./openai/uploads.ts";
import { cassetteHandlers } from "./operator/cassettes.ts";
import { metricsHandlers } from "./operator/metrics.ts";
import { overviewHandlers } from "./operator/overview.ts";
import { turnHandlers } from "./operator/turn.ts";
import { upstreamHandlers } from "./operator/upstreams.ts";
import { probeHandlers } from "./probe/probe.ts";
import { relayHandlers } from "./relay/relay.ts";

/** The handlers of all routes. */
const HANDLERS: Handlers = {
  ...contextHandlers,
  ...dialectHandlers,
  ...docsHandlers,
  ...opsHandlers,
  ...runPageHandlers,
  ...mcpHandlers,
  ...batchHandlers,
  ...cancelGroupsHandlers,
  ...dagHandlers,
  ...dagOutlineHandlers,
  ...dagPatchHandlers,
  ...dagValidateHandlers,
  ...groupHandlers,
  ...runLogHandlers,
  ...planHandlers,
  ...pullHandlers,
  ...queryHandlers,
  ...retryHandlers,
  ...runListHandlers,
  ...runSearchHandlers,
  ...runHandlers,
  ...toolCallHandlers,
  ...batchApiHandlers,
  ...messageBatchHandlers,
  ...fileHandlers,
  ...modelHandlers,
  ...relayHandlers,
  ...countTokensHandlers,
  ...storedResponseHandlers,
  ...uploadHandlers,
  ...cassetteHandlers,
  ...metricsHandlers,
  ...overviewHandlers,
  ...turnHandlers,
  ...upstreamHandlers,
  ...probeHandlers,
};

/** `now`: epoch ms. `failed`: the answer to a request that failed. */
export type MountDeps = { now: () => number; failed: (error: Error, c: Context<AppEnv>) => Response };

/** Mounts the table in its order: where two paths match a request, the first answers. */
export function mountRoutes(app: Hono<AppEnv>, deps: MountDeps): void {
  const handlers: Readonly<Record<RouteName, Handler>> = HANDLERS;
  for (const route of ROUTES) {
    const handler = handlers[route.name];
    app.on(
      route.method,
      [patternOf(route)],
      guarded(route, (c) => handler(c, app), deps),
    );
  }
}

/**
 * What a request can pass before its handler: its credential is known, its body is bounded, the disk has room for what it may open, its
 * answer names its run, and a run token is refused where only others may be. A route has those that can do something for it.
 */
export type Guard = "credential" | "body" | "reserve" | "run" | "others";

/** The guards of a route, in the order in which a request passes them. */
export function guardsOf(route: Route): Guard[] {
  if (route.auth === null) return [];
  return [
    "credential",
    ...(bodyBytesMax(route) === null ? [] : (["body"] as const)),
    ...(mayOpen(route) ? (["reserve"] as const) : []),
    "run",
    ...(route.auth.includes("run") ? [] : (["others"] as const)),
  ];
}

type Answer = (c: Context<AppEnv>) => Promise<Response>;
type Handling = (c: Context<AppEnv>) => Response | Promise<Response>;

/** The handler behind its guards, as one entry of the router: each entry that a request passes costs it a turn, and every start some time. */
function guarded(route: Route, handler: Handling, { now, failed }: MountDeps): Answer {
  const guards: ReadonlySet<Guard> = new Set(guardsOf(route));
  const isForOthers = guards.has("others");
  /** A failure of the handler is an answer of the run, too. */
  const named: Answer = async (c) => {
    try {
      if (isForOthers) refuseRuns(c);
      c.res = await handler(c);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      c.res = failed(error, c);
    }
    await nameRun(c);
    return c.res;
  };
  const reserved: Answer = async (c) => {
    await keepReserve(c);
    return await named(c);
  };
  const roomy = guards.has("reserve") ? reserved : named;
  const bounded: Answer = guards.has("body") ? (c) => withBoundBody(c, () => roomy(c)) : roomy;
  return async function guarded(c) {
    // Tells the others which route answers.
    c.set("route", route);
    if (guards.size === 0) return await handler(c);
    await authenticate(c, now());
    return await bounded(c);
  };
}
