/** The client's trace in the headers of an attempt, for an upstream that is configured to get it. */
import type { Lease } from "../../call.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { attemptKey, contextUnder, isSampled, spanIdIn, spanSeed, type TraceContext } from "../../trace-context.ts";
import type { Upstream } from "../../providers/config/types.ts";

/** The upstream with the headers that this attempt adds; unchanged if it gets none. */
export async function withTrace(upstream: Upstream, { trace, attemptId }: Lease, runId: string): Promise<Upstream> {
  if (trace === undefined || upstream.traces === undefined) return upstream;
  // A span that is exported in another trace than the client's is no parent in that one.
  const isOwn = upstream.traces === "attempt" && isSampled(trace);
  const { parent, state } = isOwn ? await under(trace, runId, attemptId) : trace;
  const sent = { traceparent: parent, ...(state === undefined ? {} : { tracestate: state }) };
  return { ...upstream, headers: { ...upstream.headers, ...sent } };
}

async function under(trace: TraceContext, runId: string, attemptId: string): Promise<TraceContext> {
  const seed = spanSeed(runId, attemptKey(attemptId));
  return contextUnder(trace, spanIdIn(await sha256Hex(new TextEncoder().encode(seed))));
}
