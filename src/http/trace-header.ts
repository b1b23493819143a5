/** Names on an answer the trace in which the spans of its calls are exported, so that a client can look them up there. */
import type { Context } from "hono";
import type { AppEnv } from "./context.ts";
import { sha256Hex } from "../objects/clients/dedupe-key.ts";
import { clientTraceId, TRACE_HEADER, traceIdIn, traceSeed, type TraceContext } from "../trace-context.ts";

/**
 * Notes the trace of a request's calls, if the request shows it: its own trace, or the run's, which a run token names. With the
 * operator's key only the run's object knows the trace, and a header is not worth a request to it.
 */
export function noteSpansOfRequest(c: Context<AppEnv>, trace: TraceContext | null): void {
  const own = clientTraceId(trace);
  const principal = c.get("principal");
  if (principal.kind === "run") c.set("spans", { runId: principal.runId, traceId: own ?? principal.traceId ?? null });
  else if (own !== null) c.set("spans", { runId: "", traceId: own });
}

/** Notes what the answer's headers say of a group that the request has opened or found, whose spans may be in an earlier request's trace. */
export function noteGroup(
  c: Context<AppEnv>,
  runId: string,
  { remainingNanoUsd, traceId }: { remainingNanoUsd: number | null; traceId?: string },
): void {
  c.set("remainingNanoUsd", remainingNanoUsd);
  c.set("spans", { runId, traceId: traceId ?? null });
}

/** Sets `x-fanout-trace` if runs are exported and the request has asked for calls. */
export async function nameTrace(c: Context<AppEnv>): Promise<void> {
  const spans = c.get("spans");
  if (spans === undefined || c.get("config").otlp === null) return;
  const { runId, traceId } = spans;
  c.res.headers.set(TRACE_HEADER, traceId ?? traceIdIn(await sha256Hex(new TextEncoder().encode(traceSeed(runId)))));
}
