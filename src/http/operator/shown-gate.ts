/** A gate's state as the operator sees it: durations become points in time. */
import type { UpstreamGate } from "../../contract/operator/upstreams.ts";
import type { BucketName, GateStatus } from "../../gate/wire.ts";

export function shownGate(status: GateStatus, nowMs: number): Omit<UpstreamGate, "name" | "key"> {
  const { stop, lastError } = status;
  const at = (inMs: number): string => new Date(nowMs + inMs).toISOString();
  const bucket = (name: BucketName): UpstreamGate["buckets"]["requests"] => {
    const shown = status.buckets[name];
    if (shown === undefined) return null;
    return { limit: shown.limit, remaining: Math.max(0, Math.floor(shown.remaining)), reset_at: at(shown.resetMs) };
  };
  return {
    class: status.class,
    reason: stop?.reason ?? status.reason,
    width: status.width,
    in_flight: status.inFlight,
    permits: status.permits,
    waiting: status.waiting,
    runs: status.runs,
    wait_ms: status.waitMs,
    buckets: {
      requests: bucket("requests"),
      tokens: bucket("tokens"),
      input_tokens: bucket("inputTokens"),
      output_tokens: bucket("outputTokens"),
    },
    stopped:
      stop === null ? null : { since: at(-stop.forMs), message: stop.message, next_probe_at: at(stop.nextProbeInMs) },
    last_error:
      lastError === null ? null : { class: lastError.class, message: lastError.message, at: at(-lastError.forMs) },
    latency: (status.latency ?? []).map(({ model, ttfbP50Ms, ttfbP95Ms, p95Ms, samples }) => {
      return { model, ttfb_p50_ms: ttfbP50Ms, ttfb_p95_ms: ttfbP95Ms, p95_ms: p95Ms, samples };
    }),
    busy_models: (status.busyModels ?? []).map(({ model, waitMs }) => ({
      ...{ model, reason: "overloaded" as const },
      wait_ms: waitMs,
    })),
  };
}
