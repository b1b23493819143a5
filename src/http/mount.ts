/** Joins each record of the table of routes with its handler, and mounts it behind what its record demands. */
import type { Hono, MiddlewareHandler } from "hono";
import { authenticate, refuseRuns } from "./auth/middleware.ts";
import type { AppEnv } from "./context.ts";
import { bodyBytesMax, patternOf, type Route } from "../contract/routes/record.ts";
import { ROUTES, type RouteName } from "../contract/routes/table.ts";
import { boundBody } from "./body-bound.ts";
import { keepReserve, mayOpen } from "./disk-reserve.ts";
import type { Handler, Handlers } from "./handler.ts";
import { underRun } from "./under-run.ts";
import { anthropicHandlers } from "./anthropic.ts";
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
import { openAiHandlers } from "./openai/openai.ts";
import { uploadHandlers } from "./openai/uploads.ts";
import { cassetteHandlers } from "./operator/cassettes.ts";
import { metricsHandlers } from "./operator/metrics.ts";
import { overviewHandlers } from "./operator/overview.ts";
import { turnHandlers } from "./operator/turn.ts";
import { upstreamHandlers } from "./operator/upstreams.ts";
import { probeHandlers } from "./probe/probe.ts";

/** The handlers of all routes. */
const HANDLERS: Handlers = {
  ...anthropicHandlers,
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
  ...openAiHandlers,
  ...uploadHandlers,
  ...cassetteHandlers,
  ...metricsHandlers,
  ...overviewHandlers,
  ...turnHandlers,
  ...upstreamHandlers,
  ...probeHandlers,
};

/** Mounts the table in its order: where two paths match a request, the first answers. `now`: epoch ms. */
export function mountRoutes(app: Hono<AppEnv>, deps: { now: () => number }): void {
  const handlers: Readonly<Record<RouteName, Handler>> = HANDLERS;
  const guardsOf = guardsFor(deps);
  for (const route of ROUTES) {
    const handler = handlers[route.name];
    app.on(route.method, [patternOf(route)], named(route), ...guardsOf(route), (c) => handler(c, app));
  }
}

/**
 * What a request passes before its handler: credential, bound of its body, room on the disk, headers of its answer. A route has those that
 * can do something for it: each costs every request a turn, and every start an entry of the router.
 */
function guardsFor(deps: { now: () => number }): (route: Route) => MiddlewareHandler<AppEnv>[] {
  const [credential, bound, reserve, headers, operators] = [
    authenticate(deps),
    boundBody(),
    keepReserve(),
    underRun(),
    refuseRuns(),
  ];
  return (route) => {
    if (route.auth === null) return [];
    return [
      credential,
      ...(bodyBytesMax(route) === null ? [] : [bound]),
      ...(mayOpen(route) ? [reserve] : []),
      headers,
      ...(route.auth.includes("run") ? [] : [operators]),
    ];
  };
}

/** Tells the others which route answers. */
function named(route: Route): MiddlewareHandler<AppEnv> {
  return async function named(c, next) {
    c.set("route", route);
    await next();
  };
}
