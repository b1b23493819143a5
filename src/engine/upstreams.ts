/**
 * Which upstreams of a run may start another attempt: how many attempts are in flight at each, how many it allows, and
 * until when it must not be called after a rate limit. Every decision on an upstream's capacity is made here.
 */
import { RETRY_AFTER_MAX_MS } from "../limits.ts";
import type { Target } from "./shard.ts";

/** `coolUntilMs`: no attempt starts there before this time. */
export type UpstreamState = { inFlight: number; maxInFlight: number; coolUntilMs: number };

type Capacity = Pick<Target, "upstream" | "maxInFlight">;

export class Upstreams {
  readonly #byName = new Map<string, UpstreamState>();

  /** Registers the upstream of a target. The largest `maxInFlight` of its targets holds. */
  add({ upstream, maxInFlight }: Capacity): void {
    this.#stateOf(upstream, maxInFlight);
  }

  /** Counts an attempt as in flight. */
  attemptStarted({ upstream, maxInFlight }: Capacity): void {
    this.#stateOf(upstream, maxInFlight).inFlight += 1;
  }

  attemptEnded({ upstream, maxInFlight }: Capacity): void {
    this.#stateOf(upstream, maxInFlight).inFlight -= 1;
  }

  /**
   * True if the upstream takes one more attempt now. An upstream without a target has no limit to check.
   * @param lent Attempts that credits may start there.
   */
  mayStart(upstream: string, nowMs: number, lent = 0): boolean {
    const known = this.#byName.get(upstream);
    return known === undefined || (known.coolUntilMs <= nowMs && known.inFlight + lent < known.maxInFlight);
  }

  /**
   * Obeys a rate limit: no call of the run starts there before `retryAfterMs` have passed, because the upstream would
   * reject the others as well. A `Retry-After` over RETRY_AFTER_MAX_MS fails the call that met it and does not stop the
   * others, so that it cannot park the run for hours.
   */
  rateLimited({ upstream, maxInFlight }: Capacity, retryAfterMs: number, nowMs: number): void {
    if (retryAfterMs > RETRY_AFTER_MAX_MS) return;
    const known = this.#stateOf(upstream, maxInFlight);
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

  get(upstream: string): Readonly<UpstreamState> | undefined {
    return this.#byName.get(upstream);
  }

  #stateOf(upstream: string, maxInFlight: number): UpstreamState {
    const known = this.#byName.get(upstream);
    if (known !== undefined) {
      // The lease of a model that is no longer configured is restored with a limit of 0, which is not its upstream's.
      known.maxInFlight = Math.max(known.maxInFlight, maxInFlight);
      return known;
    }
    const fresh = { inFlight: 0, maxInFlight, coolUntilMs: 0 };
    this.#byName.set(upstream, fresh);
    return fresh;
  }
}
