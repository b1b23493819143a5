/**
 * The hedges of a run: a slow call may have two attempts in flight, each with its own reservation. The first answer is the
 * call's; the other attempt is given up. In memory: that an attempt is a hedge is stored with its lease.
 */
import type { HedgeRule } from "../../call.ts";
import type { ModelPercentiles } from "../../gate/wire.ts";
import { HEDGE_LOOK_SHARE, HEDGE_MODELS_KEPT } from "../../limits.ts";
import type { AttemptInFlight, Target } from "../leases/shard.ts";
import { groupSeqOf } from "../queue/slot.ts";
import { ModelPace } from "./pace.ts";
import { slowTimes, timesOf, type SlowTimes } from "./straggler.ts";
import { RenewedMap } from "../../renewed/map.ts";

/** An attempt in flight that may be hedged. */
export type Hedgeable = { lease: AttemptInFlight; hedge: HedgeRule };

export class Hedges {
  /** Attempts that may be hedged, in the order of their starts. */
  readonly #open = new RenewedMap<string, Hedgeable>();
  /** The hedge of an attempt, by the attempt's id: both are in flight. */
  readonly #hedgeOf = new RenewedMap<string, string>();
  /** By upstream and model; the least recently used first. */
  readonly #paces = new Map<string, ModelPace>();
  /** How long the calls of all runs take, by gate, from the gate's latest grant. */
  readonly #gateLatencies = new Map<string, readonly ModelPercentiles[]>();

  /** Attempts in flight that may be hedged, oldest first. */
  get open(): Iterable<Hedgeable> {
    return this.#open.values();
  }

  /** The ids of an attempt and of its hedge. */
  get pairs(): Iterable<readonly [string, string]> {
    return this.#hedgeOf;
  }

  /** Whether any attempt in flight may be hedged. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Whether any attempt of a group may be hedged. */
  hasOpenOf(groupSeq: number): boolean {
    for (const { lease } of this.#open.values())
      if (lease.slotId !== null && groupSeqOf(lease.slotId) === groupSeq) return true;
    return false;
  }

  /** An attempt is in flight. */
  begun(lease: AttemptInFlight): void {
    const { attemptId, hedge, hedgeOf } = lease;
    if (hedgeOf !== undefined) {
      this.#hedgeOf.set(hedgeOf, attemptId);
      this.#open.delete(hedgeOf);
    } else if (hedge !== undefined) this.#open.set(attemptId, { lease, hedge });
  }

  /** An attempt is in flight no more. */
  ended({ attemptId, hedgeOf }: Pick<AttemptInFlight, "attemptId" | "hedgeOf">): void {
    this.#open.delete(attemptId);
    this.#hedgeOf.delete(hedgeOf ?? attemptId);
  }

  /** The other attempt of its call that may be in flight; undefined = it has none. */
  otherOf({ attemptId, hedgeOf }: Pick<AttemptInFlight, "attemptId" | "hedgeOf">): string | undefined {
    if (hedgeOf === undefined) return this.#hedgeOf.get(attemptId);
    return this.#hedgeOf.has(hedgeOf) ? hedgeOf : undefined;
  }

  /** What is known of a model; undefined = nothing. */
  paceOf(target: Pick<Target, "upstream" | "model">): ModelPace | undefined {
    return this.#paces.get(nameOf(target));
  }

  /** Stores how long the calls of all runs take at a gate, from its grant. */
  noteGateLatencies(gate: string, models: readonly ModelPercentiles[]): void {
    this.#gateLatencies.set(gate, models);
  }

  /** When attempts at a target are slow, and are hedged: from the run's own calls, else from its gate. Null = unknown. */
  timesAt(hedge: HedgeRule, target: Pick<Target, "gate" | "upstream" | "model">): SlowTimes | null {
    const known = this.#gateLatencies.get(target.gate)?.find(({ model }) => model === target.model);
    const p95 = this.paceOf(target)?.p95 ?? (known === undefined ? null : slowTimes(known.p50Ms, known.p95Ms));
    return timesOf(hedge, p95);
  }

  /** An attempt has been answered, or was given up for another. */
  learn(
    { target }: Pick<AttemptInFlight, "target">,
    { isAnswer, latencyMs }: { isAnswer: boolean; latencyMs: number },
    nowMs: number,
  ): void {
    const pace = this.#paceFor(target);
    if (isAnswer) pace.answered(latencyMs, nowMs);
    else pace.givenUp(latencyMs);
  }

  /** When the first attempt is late enough to be hedged, or one that was not is looked at again; null = none. */
  nextMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { hedge, lease } of this.#open.values()) {
      const times = this.timesAt(hedge, lease.target);
      if (times === null) continue;
      const lateAtMs = lease.startedAtMs + times.hedgeMs;
      // What was late before waits for others to end, which makes a turn; or it is not slow enough yet, and becomes slower.
      const atMs = lateAtMs > nowMs ? lateAtMs : nowMs + Math.max(1, (nowMs - lease.startedAtMs) * HEDGE_LOOK_SHARE);
      next = Math.min(next ?? Infinity, atMs);
    }
    return next;
  }

  #paceFor(target: Target): ModelPace {
    const name = nameOf(target);
    const pace = this.#paces.get(name) ?? new ModelPace();
    this.#paces.delete(name);
    this.#paces.set(name, pace);
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > HEDGE_MODELS_KEPT && oldest !== undefined) this.#paces.delete(oldest);
    return pace;
  }
}

function nameOf({ upstream, model }: Pick<Target, "upstream" | "model">): string {
  return `${upstream}/${model}`;
}
