/** The trace that a client's request belongs to, where the gateway has a use for it. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { traceContextOf, type TraceContext } from "../trace-context.ts";

/** Absent = the request has no valid `traceparent`, or nobody would see it: then nothing of it is stored. */
export function clientTrace(c: Context<AppEnv>): { trace?: TraceContext } {
  const { otlp, upstreams } = c.get("config");
  if (otlp === null && upstreams.every(({ traces }) => traces === undefined)) return {};
  const trace = traceContextOf(c.req.header("traceparent"), c.req.header("tracestate"));
  return trace === null ? {} : { trace };
}
