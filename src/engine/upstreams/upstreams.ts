/**
 * Which upstreams of a run may start another attempt: how many attempts are in flight at each, how many it allows, and
 * until when it must not be called after a rate limit. Every decision on an upstream's capacity is made here. An upstream
 * with several keys counts once for each: what is named here is the gate of an upstream and its key.
 */
import { KEY_PROBE_MS, RETRY_AFTER_MAX_MS } from "../../limits.ts";
import type { Target } from "../shard.ts";

/**
 * `coolUntilMs`: no attempt starts there before this time. `probeAtMs`: the key is stopped, and one attempt from this time on
 * finds out whether it works again; null = it is not stopped.
 */
export type UpstreamState = { inFlight: number; maxInFlight: number; coolUntilMs: number; probeAtMs: number | null };

type Capacity = Pick<Target, "gate" | "maxInFlight">;

export class Upstreams {
  readonly #byName = new Map<string, UpstreamState>();

  /** Registers the upstream of a target. The largest `maxInFlight` of its targets holds. */
  add({ gate, maxInFlight }: Capacity): void {
    this.#stateOf(gate, maxInFlight);
  }

  /** Counts an attempt as in flight. */
  attemptStarted({ gate, maxInFlight }: Capacity): void {
    this.#stateOf(gate, maxInFlight).inFlight += 1;
  }

  attemptEnded({ gate, maxInFlight }: Capacity): void {
    this.#stateOf(gate, maxInFlight).inFlight -= 1;
  }

  /**
   * True if the upstream takes one more attempt now. An upstream without a target has no limit to check.
   * @param lent Attempts that credits may start there.
   */
  mayStart(gate: string, nowMs: number, lent = 0): boolean {
    const known = this.#byName.get(gate);
    return known === undefined || (known.coolUntilMs <= nowMs && known.inFlight + lent < known.maxInFlight);
  }

  /**
   * Obeys a rate limit: no call of the run starts there before `retryAfterMs` have passed, because the upstream would
   * reject the others as well. A `Retry-After` over RETRY_AFTER_MAX_MS fails the call that met it and does not stop the
   * others, so that it cannot park the run for hours.
   */
  rateLimited({ gate, maxInFlight }: Capacity, retryAfterMs: number, nowMs: number): void {
    if (retryAfterMs > RETRY_AFTER_MAX_MS) return;
    const known = this.#stateOf(gate, maxInFlight);
    known.coolUntilMs = Math.max(known.coolUntilMs, nowMs + retryAfterMs);
  }

  /** When the first upstream that was rate-limited may be called again; null if none is waiting. */
  nextReadyMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { coolUntilMs } of this.#byName.values()) {
      if (coolUntilMs > nowMs) next = Math.min(next ?? Infinity, coolUntilMs);
    }
    return next;
  }

  /** The key does not work for now: its upstream said so. */
  stopped({ gate, maxInFlight }: Capacity, nowMs: number): void {
    this.#stateOf(gate, maxInFlight).probeAtMs = nowMs + KEY_PROBE_MS;
  }

  /** An attempt succeeded: the key works. */
  answered({ gate }: Pick<Target, "gate">): void {
    const known = this.#byName.get(gate);
    if (known !== undefined) known.probeAtMs = null;
  }

  /** True while the key is stopped and no attempt is due that finds out whether it works again. */
  isStopped(gate: string, nowMs: number): boolean {
    const known = this.#byName.get(gate);
    return known != null && known.probeAtMs !== null && (nowMs < known.probeAtMs || known.inFlight > 0);
  }

  /** True while it takes no attempts after a rate limit. */
  isLimited(gate: string, nowMs: number): boolean {
    return (this.#byName.get(gate)?.coolUntilMs ?? 0) > nowMs;
  }

  get(gate: string): Readonly<UpstreamState> | undefined {
    return this.#byName.get(gate);
  }

  #stateOf(gate: string, maxInFlight: number): UpstreamState {
    const known = this.#byName.get(gate);
    if (known !== undefined) {
      // The lease of a model that is no longer configured is restored with a limit of 0, which is not its upstream's.
      known.maxInFlight = Math.max(known.maxInFlight, maxInFlight);
      return known;
    }
    const fresh = { inFlight: 0, maxInFlight, coolUntilMs: 0, probeAtMs: null };
    this.#byName.set(gate, fresh);
    return fresh;
  }
}
