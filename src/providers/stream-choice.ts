/**
 * Whether an attempt requests a stream and aggregates it here. A stream has its headers at once, and its bytes keep proxies
 * from giving up; reading it takes twice the CPU time of a JSON answer.
 */
import { treatmentOf } from "./failure-table.ts";
import { STREAM_FROM_MS, STREAM_MODELS_KEPT } from "../limits.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";

/** Whether answers are requested as a stream or as JSON. */
export type Aggregate = "auto" | "stream" | "json";

/** What is known of the calls of a model so far. */
export type CallHistory = {
  /** Mean of the attempts that were answered, the recent ones weighing most, ms; null = none was. */
  latencyMs: number | null;
  /** Whether something on the way stopped waiting for a JSON answer. */
  gaveUp: boolean;
  /** Whether the upstream refused to stream. */
  refusesStreams: boolean;
};

export const NO_HISTORY: CallHistory = { latencyMs: null, gaveUp: false, refusesStreams: false };

/**
 * Decides on one attempt. `isRemote`: whether it goes over the network. `headersLimited`: whether few fetches of its executor may
 * wait for headers at once.
 */
export function choosesStream(
  aggregate: Aggregate,
  { latencyMs, gaveUp, refusesStreams }: CallHistory,
  { isRemote, headersLimited }: { isRemote: boolean; headersLimited: boolean },
): boolean {
  if (aggregate !== "auto") return aggregate === "stream";
  // Without a network there is no proxy, and there are no headers to wait for.
  if (refusesStreams || !isRemote) return false;
  return headersLimited || gaveUp || (latencyMs ?? 0) > STREAM_FROM_MS;
}

/** Share of the newest attempt in the mean: four attempts or so decide it. */
const NEWEST_SHARE = 0.25;

/** What an executor's isolate has seen of its upstreams, by upstream and model. It is lost with the isolate. */
export class CallHistories {
  readonly #known = new BoundedMap<string, CallHistory>(STREAM_MODELS_KEPT);

  of(upstream: string, model: string): CallHistory {
    return this.#known.get(`${upstream}/${model}`) ?? NO_HISTORY;
  }

  /** An attempt was answered with this status after this time. */
  answered(upstream: string, model: string, { status, latencyMs }: { status: number; latencyMs: number }): void {
    const { latencyMs: mean, gaveUp } = this.of(upstream, model);
    // An error status that leaves open what the upstream did is a proxy's, which stopped waiting for it.
    if (status >= 400 && isInDoubt(status)) return this.#note(upstream, model, { gaveUp: true });
    if (status < 200 || status > 299) return;
    const next = mean === null ? latencyMs : mean + NEWEST_SHARE * (latencyMs - mean);
    this.#note(upstream, model, { latencyMs: next, gaveUp });
  }

  refusedStream(upstream: string, model: string): void {
    this.#note(upstream, model, { refusesStreams: true });
  }

  #note(upstream: string, model: string, more: Partial<CallHistory>): void {
    const key = `${upstream}/${model}`;
    const next = { ...this.of(upstream, model), ...more };
    this.#known.set(key, next);
  }
}

function isInDoubt(status: number): boolean {
  const { class: treated, retryable } = treatmentOf(status, [], "free");
  return treated === "unknown" && retryable;
}
