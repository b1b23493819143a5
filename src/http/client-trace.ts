/** The trace that a client's request belongs to, where the gateway has a use for it. */
import type { Context } from "hono";
import type { AppEnv } from "./context.ts";
import { noteSpansOfRequest } from "./trace-header.ts";
import { traceContextOf, type TraceContext } from "../trace-context.ts";

/**
 * The trace of a request that makes calls; the answer names the trace of their spans. Absent = the request has no valid
 * `traceparent`, or neither an export nor an upstream uses it. Then it is not stored.
 */
export function clientTrace(c: Context<AppEnv>): { trace?: TraceContext } {
  const { otlp, upstreams } = c.get("config");
  if (otlp === null && upstreams.every(({ traces }) => traces === undefined)) return {};
  const trace = traceContextOf(c.req.header("traceparent"), c.req.header("tracestate"));
  noteSpansOfRequest(c, trace);
  return trace === null ? {} : { trace };
}
