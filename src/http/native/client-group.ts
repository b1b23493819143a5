/** A group whose client waits for it: the Worker of its request executes what it opens, for as long as its client is there. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { ExecutedGroup } from "../../executors/executed-group.ts";
import { GroupExecutor } from "../../executors/group-executor.ts";
import { areHeadersLimited } from "../../executors/rules.ts";
import { attemptJob } from "../../executors/job.ts";
import { toolAttempts } from "../../executors/tool-task.ts";
import type { GroupView } from "../../objects/methods/groups.ts";
import type { RunCaller } from "../../objects/clients/caller.ts";
import { GroupReader, type GroupSource } from "../../objects/clients/groups/group-reader.ts";
import type { Opened, OpenGroupDeps } from "../../objects/clients/groups/open-group.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { clientTrace } from "../client-trace.ts";

/** What opening a group takes from its request. `capacity`: see OpenGroupDeps. */
export function openGroupDeps(c: Context<AppEnv>, run: RunCaller, capacity: number | null): OpenGroupDeps {
  const waitUntil = (promise: Promise<unknown>): void => c.executionCtx.waitUntil(promise);
  return { objects: c.env, run, signal: c.req.raw.signal, waitUntil, capacity, ...clientTrace(c) };
}

type ClientGroup = {
  /** The client's ids of its calls; empty = they have none. */
  ids: readonly (string | null)[];
  /** Whether the group goes on without its client. */
  detach: boolean;
  /** Whether the client is shown slots as they end. */
  showsSlots: boolean;
};

/**
 * The group that a client has opened, or found, as its answer reads it. This Worker executes it if it has claimed with the
 * opening; else lanes do, or another Worker. Without its client, the group ends, or goes on without this Worker.
 */
export function groupOfClient(
  c: Context<AppEnv>,
  run: RunCaller,
  opened: Pick<Opened, "seq" | "claim">,
  group: ClientGroup,
): GroupSource {
  const { signal } = c.req.raw;
  const executor = executorOf(c, run, opened, group);
  const left = (): void => {
    if (group.detach) return executor?.leave();
    const inFlight = executor === null ? "abort" : "end";
    const cancelled = run.callWithRetry<GroupView | null>((stub) => stub.cancelGroup(opened.seq, inFlight));
    executor?.windDown((model) => abortCostOf(c, model));
    // Should this Worker end as well, the run object misses its followers and cancels the group itself.
    c.executionCtx.waitUntil(cancelled.catch(() => undefined));
  };
  if (signal.aborted) left();
  else signal.addEventListener("abort", left);
  const reader = new GroupReader(run, opened.seq, signal);
  return executor === null ? reader : new ExecutedGroup(reader, executor);
}

/** What an abort is charged at the upstream of a model's full name. */
function abortCostOf(c: Context<AppEnv>, model: string): Upstream["abortCost"] {
  const upstream = c.get("config").upstreams.find(({ name }) => model.startsWith(`${name}/`));
  return upstream?.abortCost ?? "reservation";
}

function executorOf(
  c: Context<AppEnv>,
  run: RunCaller,
  { seq, claim }: Pick<Opened, "seq" | "claim">,
  { ids, showsSlots }: ClientGroup,
): GroupExecutor | null {
  if (claim === null) return null;
  const { upstreams, waitingFetchesMax, toolHosts } = c.get("config");
  const headersLimited = areHeadersLimited(waitingFetchesMax);
  const place = { upstreams, headersLimited, run, callTools: toolAttempts(run, toolHosts) };
  return new GroupExecutor(seq, claim, {
    objects: c.env,
    run,
    waitingFetchesMax,
    waitUntil: (promise) => c.executionCtx.waitUntil(promise),
    idOf: (index) => ids[index] ?? null,
    showsSlots,
    execute: (job, defaultsJson, attempt) => attemptJob(job, defaultsJson, attempt, place),
  });
}
