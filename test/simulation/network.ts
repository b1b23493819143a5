/** What lies between activities: messages that take time, arrive in the order in which they were sent, and may be lost. */
import type { Random } from "../../bench/adversary/random.ts";
import type { Activity } from "./activity.ts";
import type { VirtualClock } from "./clock.ts";

/** What becomes of a call: it is made, it never arrives, or its reply never does. */
export type Fate = "made" | "lost" | "reply lost";

export type NetworkRules = {
  /** Shares of calls that are lost on the way there, and on the way back. */
  lostShare: number;
  /** Share of messages that take seconds. */
  slowShare: number;
};

/** Longest a message takes that is not slow, ms. */
const LATENCY_MS_MAX = 12;
const SLOW_MS_MAX = 4_000;
/** Longest until an end notices that the other is gone, ms. */
const SILENCE_MS_MAX = 40_000;

export class Network {
  readonly clock: VirtualClock;
  readonly #random: Random;
  rules: NetworkRules;
  /** When the last message of each link arrives. */
  readonly #arrivals = new WeakMap<object, Map<object, number>>();

  constructor(clock: VirtualClock, random: Random, rules: NetworkRules) {
    this.clock = clock;
    this.#random = random;
    this.rules = rules;
  }

  fate(): Fate {
    if (!this.#random.chance(this.rules.lostShare)) return "made";
    return this.#random.chance(0.5) ? "lost" : "reply lost";
  }

  /** After how many ms an end learns that the other is gone without a word. */
  silenceMs(): number {
    return this.#random.chance(0.8) ? this.latencyMs() : this.#random.fraction() * SILENCE_MS_MAX;
  }

  latencyMs(): number {
    const isSlow = this.#random.chance(this.rules.slowShare);
    return this.#random.fraction() * (isSlow ? SLOW_MS_MAX : LATENCY_MS_MAX);
  }

  /** Sends a message over the link between two ends, once what its sender has written is durable. */
  send(from: Activity, ends: readonly [object, object], arrives: () => void): void {
    const durable = from.durable();
    if (durable === null) return this.carry(ends, arrives);
    void durable.then(() => from.isAlive && this.carry(ends, arrives));
  }

  /** Carries a message that the platform itself sends, or that has left its sender. */
  carry([from, to]: readonly [object, object], arrives: () => void): void {
    const links = this.#arrivals.get(from) ?? new Map<object, number>();
    this.#arrivals.set(from, links);
    const atMs = Math.max(this.clock.nowMs + this.latencyMs(), links.get(to) ?? 0);
    links.set(to, atMs);
    this.clock.at(atMs, arrives);
  }
}
