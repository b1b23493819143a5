/**
 * How long a lane claims. A deploy replaces an object's code when the object is idle, and resets what is busy when the delay
 * that wrangler.toml allows is over: then all busy lanes at once, each with the calls that it has in flight. So a lane claims
 * for some minutes, each for another time, completes its calls, and its object is idle; a lane of another number takes over.
 * Lives are in memory: a run object that restarts begins them anew.
 */
import { DIRECT_SHARD_FIRST } from "../../../src/run/leases/shard.ts";
import { LANE_LIFE_MS, LANE_REST_MS } from "../../../src/limits.ts";

export type LaneLivesDeps = {
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Uniform in [0, 1). */
  random: () => number;
};

type Life = { endsAtMs: number; claimedAtMs: number };

export class LaneLives {
  readonly #lives = new Map<number, Life>();
  /** Lanes whose life has ended, as far as someone has looked. */
  readonly #retired = new Set<number>();
  /** When the next life ends. */
  #nextEndMs = Infinity;
  readonly #deps: LaneLivesDeps;

  constructor(deps: LaneLivesDeps) {
    this.#deps = deps;
  }

  /**
   * Notes that a lane claims. Returns whether it may: its life has not ended. `isBusy`: the lane settles, or has leases; one
   * that is not and has not claimed for LANE_REST_MS was idle, so that its object has the present code: a new life begins.
   */
  mayClaim(lane: number, isBusy: boolean): boolean {
    const nowMs = this.#deps.now();
    const life = this.#lives.get(lane);
    if (life === undefined || (!isBusy && hasRested(life, nowMs))) {
      const lifeMs = (LANE_LIFE_MS * (1 + this.#deps.random())) / 2;
      this.#lives.set(lane, { endsAtMs: nowMs + lifeMs, claimedAtMs: nowMs });
      this.#retired.delete(lane);
      this.#nextEndMs = Math.min(this.#nextEndMs, nowMs + lifeMs);
      return true;
    }
    life.claimedAtMs = nowMs;
    return nowMs < life.endsAtMs;
  }

  /** The lanes that complete their calls and claim no more. Lives are visited only once another has ended. */
  retired(): Iterable<number> {
    const nowMs = this.#deps.now();
    if (nowMs < this.#nextEndMs) return this.#retired;
    this.#nextEndMs = Infinity;
    for (const [lane, { endsAtMs }] of this.#lives) {
      if (nowMs >= endsAtMs) this.#retired.add(lane);
      else this.#nextEndMs = Math.min(this.#nextEndMs, endsAtMs);
    }
    return this.#retired;
  }

  /** Whether a lane completes its calls and claims no more. */
  isRetired(lane: number): boolean {
    const life = this.#lives.get(lane);
    return life !== undefined && this.#deps.now() >= life.endsAtMs;
  }

  /**
   * The `count` lowest numbers of lanes that may claim. A retired lane's number is free once it has rested. Numbers end where those of
   * other shards begin: a run with thousands of calls of an hour, which outlive their lanes, is narrower while these end.
   */
  numbers(count: number, hasLeases: (lane: number) => boolean): number[] {
    const nowMs = this.#deps.now();
    const numbers: number[] = [];
    for (let lane = 0; numbers.length < count && lane < DIRECT_SHARD_FIRST; lane++) {
      const life = this.#lives.get(lane);
      const isRetired = life !== undefined && nowMs >= life.endsAtMs;
      if (isRetired && (hasLeases(lane) || !hasRested(life, nowMs))) continue;
      numbers.push(lane);
    }
    return numbers;
  }
}

function hasRested({ claimedAtMs }: Life, nowMs: number): boolean {
  return nowMs - claimedAtMs >= LANE_REST_MS;
}
