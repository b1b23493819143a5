/** How long the calls of one model take in a run, to find those that take much longer than the others. */
import { LatencySketch } from "../../gate/latency-sketch.ts";
import { HEDGE_ENDS_KEPT, HEDGE_SAMPLES_MIN } from "../../limits.ts";
import { slowTimes, type SlowTimes } from "./straggler.ts";

type End = { atMs: number; latencyMs: number };

export class ModelPace {
  readonly #sketch = new LatencySketch();
  /** The latest ends, in a ring. */
  readonly #ends: End[] = [];
  #next = 0;
  /** Computed once for all attempts of a turn; undefined = not since the sketch has changed. */
  #p95: SlowTimes | null | undefined;

  /** An attempt has ended in an answer. */
  answered(latencyMs: number, nowMs: number): void {
    this.#learn(latencyMs);
    this.#ends[this.#next] = { atMs: nowMs, latencyMs };
    this.#next = (this.#next + 1) % HEDGE_ENDS_KEPT;
  }

  /** An attempt was given up after this time: it would have taken longer. */
  givenUp(afterMs: number): void {
    this.#learn(afterMs);
  }

  /** The time after which a call is slow, and that after which it is hedged; null = too little is known. */
  get p95(): SlowTimes | null {
    if (this.#p95 === undefined) this.#p95 = this.#times();
    return this.#p95;
  }

  #learn(durationMs: number): void {
    this.#sketch.add(durationMs);
    this.#p95 = undefined;
  }

  #times(): SlowTimes | null {
    if (this.#sketch.count < HEDGE_SAMPLES_MIN) return null;
    const [p50Ms, p95Ms] = [this.#sketch.quantile(0.5), this.#sketch.quantile(0.95)];
    return p50Ms === null || p95Ms === null ? null : slowTimes(p50Ms, p95Ms);
  }

  /** How many of the latest ends are known. */
  get endsKept(): number {
    return this.#ends.length;
  }

  /** Of the latest attempts those that were answered since then: how many took at most so many ms, and how many longer. */
  endedSince(sinceMs: number, fastMs: number): { fast: number; slow: number } {
    const ended = { fast: 0, slow: 0 };
    const kept = this.#ends.length;
    // From the latest backwards: what is older than `sinceMs` is not visited.
    for (let back = 1; back <= kept; back += 1) {
      const end = this.#ends[(this.#next - back + kept) % kept];
      if (end === undefined || end.atMs < sinceMs) break;
      ended[end.latencyMs <= fastMs ? "fast" : "slow"] += 1;
    }
    return ended;
  }
}
