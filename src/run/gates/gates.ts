/**
 * The gates of a run: every decision on an upstream's capacity is made here. An upstream with several keys has a gate for
 * each. The run's own limits hold in any case: `max_in_flight`, and the Retry-After that one of its attempts has met.
 */
import type { Target } from "../leases/shard.ts";
import { GateClient, type GateWait } from "./gate-client.ts";
import type { Newcomers } from "./newcomers.ts";
import type { GateTokens } from "../leases/tokens.ts";

type Capacity = Pick<Target, "gate" | "maxInFlight">;

/** Where an attempt is: at a gate, and at a model. */
type Place = Pick<Target, "gate" | "maxInFlight" | "model">;

export class Upstreams {
  readonly #gates = new Map<string, GateClient>();
  readonly #hasGates: boolean;
  readonly #newcomers: Newcomers | null;

  /**
   * @param hasGates False: the run's own limits alone hold.
   * @param newcomers The other runs that may be new at the same gates; absent = none are.
   */
  constructor(hasGates: boolean, newcomers: Newcomers | null = null) {
    this.#hasGates = hasGates;
    this.#newcomers = newcomers;
  }

  /** Registers the gate of a target. The largest `maxInFlight` of its targets holds. */
  add({ gate, maxInFlight }: Capacity): GateClient {
    const known = this.#gates.get(gate);
    if (known !== undefined) {
      known.allow(maxInFlight);
      return known;
    }
    const newcomer = this.#hasGates ? this.#newcomers?.at(gate) : undefined;
    const fresh = new GateClient({
      maxInFlight,
      isShared: this.#hasGates,
      ...(newcomer === undefined ? {} : { newcomer }),
    });
    this.#gates.set(gate, fresh);
    return fresh;
  }

  /** Counts an attempt as in flight. `tokens` null = an earlier instance of the run has started it. */
  attemptStarted(target: Place, tokens: GateTokens | null, nowMs: number): void {
    const gate = this.add(target);
    gate.models.started(target.model);
    if (tokens === null) gate.restored();
    else gate.started(tokens, nowMs);
  }

  attemptEnded(target: Place): void {
    const gate = this.add(target);
    gate.ended();
    gate.models.ended(target.model);
  }

  /**
   * True if the gate takes one more attempt now. A gate without a target has no limit to check.
   * @param lent Attempts that credits may start there.
   * @param model At which model; null = at any that is not overloaded by itself.
   */
  mayStart(name: string, nowMs: number, lent = 0, model: string | null = null): boolean {
    const gate = this.#gates.get(name);
    if (gate === undefined) return true;
    if (model !== null && gate.models.waitOf(model, nowMs) !== null) return false;
    return gate.inFlight + lent < gate.maxInFlight && gate.waitOf(nowMs, lent) === null;
  }

  /**
   * How many more attempts a gate takes now, as far as they are counted: never too few.
   * @param lent Attempts that credits may start there.
   */
  roomAt(name: string, nowMs: number, lent = 0): number {
    const gate = this.#gates.get(name);
    if (gate === undefined) return Infinity;
    return Math.min(gate.maxInFlight - gate.inFlight - lent, gate.roomAt(nowMs, lent));
  }

  /** Why attempts wait at a gate, at a model if one is named; null = they do not, or for the run's own limit. */
  waitOf(name: string, nowMs: number, lent = 0, model: string | null = null): GateWait | null {
    const gate = this.#gates.get(name);
    const ofKey = gate?.waitOf(nowMs, lent) ?? null;
    if (ofKey !== null || model === null) return ofKey;
    const ofModel = gate?.models.waitOf(model, nowMs) ?? null;
    return ofModel === null ? null : { reason: "width", readyAtMs: ofModel.readyAtMs, model };
  }

  /** True while the key of a gate is known not to work, and no attempt may find out whether it works again. */
  isStopped(name: string, nowMs: number): boolean {
    const gate = this.#gates.get(name);
    return gate !== undefined && gate.stop !== null && gate.waitOf(nowMs) !== null;
  }

  /** When time alone lets an attempt start at the first gate that makes them wait; null = at none. */
  nextReadyMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const gate of this.#gates.values()) {
      for (const readyAtMs of [gate.readyAtMs(nowMs), gate.models.readyAtMs(nowMs)])
        if (readyAtMs !== null) next = Math.min(next ?? Infinity, readyAtMs);
    }
    return next;
  }

  /** True if a gate makes attempts wait. */
  holdsUp(nowMs: number): boolean {
    for (const gate of this.#gates.values()) if (gate.waitOf(nowMs) !== null) return true;
    return false;
  }

  /** Whether anything may wait at a gate, or for a model there: false for a run whose calls all find room. `lentAt`: as `lent` of `waitOf`. */
  mayMakeWait(nowMs: number, lentAt: (gate: string) => number): boolean {
    for (const [name, gate] of this.#gates) {
      if (gate.models.isAny || gate.waitOf(nowMs, lentAt(name)) !== null) return true;
    }
    return false;
  }

  /** Lets nothing start before its gate has replied: an earlier instance of the run may have waited there. */
  waitForReplies(): void {
    for (const [, gate] of this.shared()) gate.waitForReply();
  }

  /** True while a key is known not to work. */
  get hasStop(): boolean {
    for (const { stop } of this.#gates.values()) if (stop !== null) return true;
    return false;
  }

  get(name: string): GateClient | undefined {
    return this.#gates.get(name);
  }

  /** The gates by name. */
  all(): ReadonlyMap<string, GateClient> {
    return this.#gates;
  }

  /**
   * True while it takes no attempts at a model because its provider rejects them: after a rate limit, or beyond a learned width, of the
   * key or of the model alone.
   */
  isLimited(name: string, nowMs: number, lent = 0, model: string | null = null): boolean {
    const gate = this.#gates.get(name);
    if (gate === undefined) return false;
    if (model !== null && gate.models.waitOf(model, nowMs) !== null) return true;
    return gate.limitedUntilMs > nowMs || gate.isBeyondWidth(nowMs, lent);
  }

  /** Those that decide for all runs: none if the run decides alone. */
  shared(): Iterable<[string, GateClient]> {
    return this.#hasGates ? this.#gates : [];
  }
}
