/**
 * Who may have how much of what is scarce. Two rules: permits are divided by water-filling, because they come back; what a
 * rate lets through is divided by virtual time, so that who got less before gets more now, whenever it comes.
 */
import type { Run } from "./run.ts";
import type { Sums } from "./sums.ts";
import { WORK_CLASSES, type WorkClass } from "../wire.ts";

/** Shares of the classes when all of them wait. */
export const CLASS_SHARES: Readonly<Record<WorkClass, number>> = { interactive: 70, standard: 25, batch: 5 };

/** One that wants a part: at most `wanted`, in proportion to `weight`. */
export type Demand = { wanted: number; weight: number };

/**
 * The part per weight at which the parts are in proportion to the weights, none is larger than wanted, and their sum is `total`.
 * Infinity = all get what they want.
 */
export function waterLevel(demands: readonly Demand[], total: number): number {
  let open = demands;
  let rest = total;
  while (open.length > 0) {
    const level = rest / open.reduce((sum, { weight }) => sum + weight, 0);
    const left = open.filter(({ wanted, weight }) => wanted > level * weight);
    if (left.length === open.length) return level;
    rest -= open.reduce((sum, { wanted, weight }) => (wanted > level * weight ? sum : sum + wanted), 0);
    open = left;
  }
  return Infinity;
}

/** The classes of a run that wait for a rate. */
export function waitingClassesOf({ claims }: Run): WorkClass[] {
  return WORK_CLASSES.filter((name) => claims[name].unmet > 0);
}

/** The share that a run has in what its class is served: all of it if the others of the class do not wait. */
type Peers = { weight: number; mean: number };

/**
 * What everyone has received of a rate, in virtual time: ms of the provider's capacity ÷ weight. Classes are compared with
 * each other, and runs with the mean of those of their class; who is behind gets more, until both are equal.
 */
export class Service {
  readonly #byClass: Record<WorkClass, number> = { interactive: 0, standard: 0, batch: 0 };

  /** A waiter has received something; less than 0 = it gives something back. */
  add(run: Run, workClass: WorkClass, capacityMs: number): void {
    run.claims[workClass].served += capacityMs / run.weight;
    this.#byClass[workClass] += capacityMs / CLASS_SHARES[workClass];
  }

  /** The part of `availableMs` of capacity that a class of a run may take now, among others that wait. */
  partOf(run: Run, workClass: WorkClass, others: Sums, availableMs: number): number {
    const classes = this.#classesWith(run, others);
    const weights = classes.reduce((sum, name) => sum + CLASS_SHARES[name], 0);
    const mean = this.#meanOf(classes);
    const ofClass = levelled({
      served: this.#byClass[workClass],
      weight: CLASS_SHARES[workClass],
      weights,
      mean,
      total: availableMs,
    });
    const { served } = run.claims[workClass];
    const peers = peersOf(run, workClass, others);
    return levelled({ served, weight: run.weight, weights: peers.weight, mean: peers.mean, total: ofClass });
  }

  /**
   * Whether a run is among those that have received less than others of its class, and the class least of all.
   * @param slackMs By so much more it may have received: sums of fractions are not exact.
   */
  isBehind(run: Run, workClass: WorkClass, others: Sums, slackMs: number): boolean {
    const own = this.#byClass[workClass];
    if (this.#classesWith(run, others).some((name) => this.#byClass[name] < own)) return false;
    return this.behindMs(run, workClass, others) >= -slackMs;
  }

  /** By how much less than the others of its class a run has received, ms; less than 0 = it has received more. */
  behindMs(run: Run, workClass: WorkClass, others: Sums): number {
    return (peersOf(run, workClass, others).mean - run.claims[workClass].served) * run.weight;
  }

  /** Brings those of a run that begin to wait to where the others are: they have no credit for the time before. */
  join(run: Run, wasWaiting: Readonly<Partial<Record<WorkClass, boolean>>>, others: Sums): void {
    for (const workClass of waitingClassesOf(run)) {
      if (wasWaiting[workClass] === true) continue;
      const claim = run.claims[workClass];
      const { count, served, weight } = others.waiters[workClass];
      if (count > 0) {
        claim.served = Math.max(claim.served, served / weight);
        continue;
      }
      const classes = this.#classesWith(run, others).filter((name) => name !== workClass);
      if (classes.length === 0) continue;
      this.#byClass[workClass] = Math.max(this.#byClass[workClass], this.#meanOf(classes));
    }
  }

  #classesWith({ claims }: Run, { waiters }: Sums): WorkClass[] {
    return WORK_CLASSES.filter((name) => claims[name].unmet > 0 || waiters[name].count > 0);
  }

  #meanOf(classes: readonly WorkClass[]): number {
    const weights = classes.reduce((sum, name) => sum + CLASS_SHARES[name], 0);
    return classes.reduce((sum, name) => sum + this.#byClass[name] * CLASS_SHARES[name], 0) / weights;
  }
}

/** Those of a class that wait, the run itself among them. */
function peersOf(run: Run, workClass: WorkClass, { waiters }: Sums): Peers {
  const { count, weight, served } = waiters[workClass];
  const own = run.claims[workClass].served;
  if (count === 0) return { weight: run.weight, mean: own };
  const weights = weight + run.weight;
  return { weight: weights, mean: (served + own * run.weight) / weights };
}

/** What one of several gets if `total` is given out so that all have been served alike, as far as it goes. */
function levelled(own: { served: number; weight: number; weights: number; mean: number; total: number }): number {
  const { served, weight, weights, mean, total } = own;
  return Math.min(total, Math.max(0, (weight / weights) * total + weight * (mean - served)));
}
