/** What the end of an attempt means for its gate, and whether a failure counts towards the attempts of its call. */
import type { Outcome, StopReason } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { GATE_ATTEMPTS_MAX, RETRY_AFTER_MAX_MS, STOPPED_ATTEMPTS_MAX } from "../../limits.ts";
import type { AttemptInFlight } from "../leases/shard.ts";
import type { GateClient } from "./gate-client.ts";
import { lineOf, type Answered } from "./latency-changes.ts";
import type { Failed } from "./changes.ts";

type Failure = Extract<Outcome, { kind: "failure" }>;

/** Why a gate makes the attempts of a run wait from now on, as the run has learned from one of them; null = it does not. */
export type Throttle = { cause: NonNullable<Failure["stop"]> | "rate_limited" | "overloaded"; retryAfterMs: number };

/** Adds the end of an attempt to what is known of its gate, and to what the run reports. */
export function learnFromEnd(
  gate: GateClient,
  lease: Pick<AttemptInFlight, "startedAtMs" | "target" | "amounts" | "gateTokens">,
  outcome: Outcome,
  nowMs: number,
): Throttle | null {
  // An answer that does not fit its schema shows that the key works.
  const isAnswer = outcome.kind === "success" || outcome.reason.reason === "schema_violation";
  if (isAnswer) {
    gate.answered(answeredAs(lease, outcome));
    gate.models.answered(lease.target.model, outcome.latencyMs, nowMs);
  }
  if (outcome.kind === "success" && outcome.usage !== null && lease.gateTokens !== null) {
    const { promptTokens, cachedTokens, completionTokens } = outcome.usage;
    gate.news.used({ input: promptTokens - cachedTokens, output: completionTokens }, lease.gateTokens);
  }
  if (outcome.kind === "success") return null;
  const failed = failedAs(outcome, lease.target.model);
  const isOfModel =
    failed?.class === "overloaded" && gate.models.overloaded(lease.target.model, failed.hintMs ?? 0, nowMs);
  if (failed !== null) gate.news.failed(failed, nowMs);
  if (outcome.stop !== undefined) {
    const isNew = gate.stopped(outcome.stop, failed?.message ?? null, nowMs);
    return isNew ? { cause: outcome.stop, retryAfterMs: Math.max(0, (gate.stop?.probeAtMs ?? nowMs) - nowMs) } : null;
  }
  // The key's other models do not wait for one that is overloaded by itself.
  if (!isPaced(outcome) || isOfModel) return null;
  const retryAfterMs = outcome.retryAfterMs ?? 0;
  if (retryAfterMs <= RETRY_AFTER_MAX_MS) gate.cool(nowMs + retryAfterMs, "requests_per_minute");
  return { cause: outcome.class === "rate_limited" ? "rate_limited" : "overloaded", retryAfterMs };
}

/** What an answer shows of its provider. */
function answeredAs(
  { startedAtMs, target, amounts }: Parameters<typeof learnFromEnd>[1],
  outcome: Outcome,
): Answered & { startedAtMs: number } {
  const { latencyMs } = outcome;
  const plain = { startedAtMs, model: target.model, latencyMs };
  if (outcome.kind === "failure" || outcome.ttfbMs === undefined) return plain;
  const { ttfbMs, streamed, usage } = outcome;
  const promptTokens = usage === null ? amounts.prompt_tokens : usage.promptTokens - usage.cachedTokens;
  const completionTokens = streamed === true ? null : (usage?.completionTokens ?? 0);
  return { ...plain, ttfb: { ms: ttfbMs, line: lineOf(promptTokens, completionTokens) } };
}

/** How a gate counts a failure; null = the failure does not concern the key. */
function failedAs({ class: failureClass, reason, retryAfterMs, stop }: Failure, model: string): Failed | null {
  const message = "message" in reason ? reason.message : null;
  if (stop !== undefined) return { class: "stopped", stop, hintMs: null, message };
  // A longer one fails the call that met it and does not stop the others, so that it cannot park a key for hours.
  const hintMs = retryAfterMs !== null && retryAfterMs <= RETRY_AFTER_MAX_MS ? retryAfterMs : null;
  const as = (name: Failed["class"]): Failed => ({ class: name, stop: null, hintMs, message });
  if (failureClass === "rate_limited") return as("rate_limited");
  if (reason.reason === "upstream_error" && (reason.status === 503 || reason.status === 529))
    return { ...as("overloaded"), model };
  if (reason.reason === "upstream_timeout") return as("timeout");
  return reason.reason === "schema_violation" ? as("schema_violation") : null;
}

/** Why the key of a slot's last attempt did not work; null = that was not its failure. For slots that were queued again. */
export function stopIn(reason: Reason): { reason: StopReason; message: string } | null {
  if (reason.reason === "upstream_rate_limited") {
    const { upstreamCode, message } = reason;
    return upstreamCode === "insufficient_quota" ? { reason: upstreamCode, message } : null;
  }
  // Other failures that are final leave no slot in the queue.
  if (reason.reason !== "upstream_error" || reason.retryable) return null;
  const { status, message } = reason;
  return { reason: status === 401 ? "invalid_key" : status === 403 ? "forbidden" : "insufficient_quota", message };
}

/** True for a 429, and for a 529 that says when to come again. */
function isPaced({ class: failureClass, reason, retryAfterMs }: Failure): boolean {
  if (failureClass === "rate_limited") return true;
  return reason.reason === "upstream_error" && reason.status === 529 && retryAfterMs !== null;
}

/**
 * The most attempts, of all kinds, of a call that its gate makes wait after this failure; null = the failure counts towards
 * `max_attempts` like any other.
 */
export function waitingAttemptsMax(outcome: Failure): number | null {
  if (outcome.stop !== undefined) return STOPPED_ATTEMPTS_MAX;
  return isPaced(outcome) ? GATE_ATTEMPTS_MAX : null;
}
