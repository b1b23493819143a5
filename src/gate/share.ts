/**
 * Who may have how much of what is scarce. Two rules: permits are divided by water-filling, because they come back; what a
 * rate lets through is divided by virtual time, so that who got less before gets more now, whenever it comes.
 */
import type { Run } from "./registry.ts";
import { WORK_CLASSES, type WorkClass } from "./wire.ts";

/** Shares of the classes when all of them wait. */
export const CLASS_SHARES: Readonly<Record<WorkClass, number>> = { interactive: 70, standard: 25, batch: 5 };

/** One that wants a part: at most `wanted`, in proportion to `weight`. */
export type Demand = { wanted: number; weight: number };

/** The largest parts that are in proportion to the weights and no larger than wanted. Their sum is at most `total`. */
export function waterFill(demands: readonly Demand[], total: number): number[] {
  const parts = demands.map(() => 0);
  const open = new Set(demands.keys());
  let rest = total;
  while (open.size > 0 && rest > 1e-9) {
    const weights = [...open].reduce((sum, index) => sum + (demands[index]?.weight ?? 0), 0);
    if (weights <= 0) break;
    const perWeight = rest / weights;
    const filled = [...open].filter(
      (index) => missing(demands, parts, index) <= perWeight * (demands[index]?.weight ?? 0),
    );
    for (const index of filled.length > 0 ? filled : open) {
      const part = Math.min(missing(demands, parts, index), perWeight * (demands[index]?.weight ?? 0));
      parts[index] = (parts[index] ?? 0) + part;
      rest -= part;
    }
    if (filled.length === 0) break;
    for (const index of filled) open.delete(index);
  }
  return parts;
}

function missing(demands: readonly Demand[], parts: readonly number[], index: number): number {
  return (demands[index]?.wanted ?? 0) - (parts[index] ?? 0);
}

/** The parts in whole numbers, with the same sum: what rounding leaves goes to those first in `order`. */
export function wholeParts(parts: readonly number[], demands: readonly Demand[], order: readonly number[]): number[] {
  const whole = parts.map((part) => Math.floor(part + 1e-9));
  let left = Math.floor(parts.reduce((sum, part) => sum + part, 0) + 1e-9) - whole.reduce((sum, part) => sum + part, 0);
  for (const index of order) {
    if (left <= 0) break;
    if ((whole[index] ?? 0) >= (demands[index]?.wanted ?? 0)) continue;
    whole[index] = (whole[index] ?? 0) + 1;
    left -= 1;
  }
  return whole;
}

/** One class of one run that waits for a rate. */
export type Waiter = { run: Run; workClass: WorkClass };

/** Everyone who waits and comes back for it. A run that is late keeps nobody waiting. */
export function waitersOf(runs: Iterable<Run>, own: Run, nowMs: number): Waiter[] {
  const waiters: Waiter[] = [];
  for (const run of runs) {
    if (run !== own && run.punctualUntilMs <= nowMs) continue;
    for (const workClass of WORK_CLASSES) if (run.claims[workClass].unmet > 0) waiters.push({ run, workClass });
  }
  return waiters;
}

/**
 * What everyone has received of a rate, in virtual time: ms of the provider's capacity ÷ weight. Classes are compared with
 * each other, and runs with those of their class; who is behind gets more, until both are equal.
 */
export class Service {
  readonly #byClass: Record<WorkClass, number> = { interactive: 0, standard: 0, batch: 0 };

  /** A waiter has received something; less than 0 = it gives something back. */
  add(run: Run, workClass: WorkClass, capacityMs: number): void {
    run.claims[workClass].served += capacityMs / run.weight;
    this.#byClass[workClass] += capacityMs / CLASS_SHARES[workClass];
  }

  /** The part of `availableMs` of capacity that one of the waiters may take now. */
  partOf(waiter: Waiter, waiters: readonly Waiter[], availableMs: number): number {
    const classes = WORK_CLASSES.filter((name) => waiters.some(({ workClass }) => workClass === name));
    const ofClass = levelled(
      classes.map((name) => ({ served: this.#byClass[name], weight: CLASS_SHARES[name] })),
      classes.indexOf(waiter.workClass),
      availableMs,
    );
    const peers = waiters.filter(({ workClass }) => workClass === waiter.workClass);
    return levelled(peers.map(partyOf), peers.indexOf(waiter), ofClass);
  }

  /** Whether a waiter has received least: of its class, which has received least of all. */
  isFirst(waiter: Waiter, waiters: readonly Waiter[]): boolean {
    const { workClass } = waiter;
    const { served } = waiter.run.claims[workClass];
    return waiters.every((other) =>
      other.workClass === workClass
        ? served <= other.run.claims[workClass].served
        : this.#byClass[workClass] <= this.#byClass[other.workClass],
    );
  }

  /** Brings those of a run that begin to wait to where the others are: they have no credit for the time before. */
  join(run: Run, wasWaiting: Readonly<Partial<Record<WorkClass, boolean>>>, waiters: readonly Waiter[]): void {
    for (const { workClass } of waiters.filter(
      (waiter) => waiter.run === run && wasWaiting[waiter.workClass] !== true,
    )) {
      const peers = waiters.filter((one) => one.run !== run && one.workClass === workClass);
      const claim = run.claims[workClass];
      if (peers.length > 0) {
        claim.served = Math.max(claim.served, meanOf(peers.map(partyOf)));
        continue;
      }
      const classes = WORK_CLASSES.filter(
        (name) => name !== workClass && waiters.some((one) => one.workClass === name),
      );
      if (classes.length === 0) continue;
      const reached = meanOf(classes.map((name) => ({ served: this.#byClass[name], weight: CLASS_SHARES[name] })));
      this.#byClass[workClass] = Math.max(this.#byClass[workClass], reached);
    }
  }
}

type Party = { served: number; weight: number };

function partyOf({ run, workClass }: Waiter): Party {
  return { served: run.claims[workClass].served, weight: run.weight };
}

function meanOf(parties: readonly Party[]): number {
  const weights = parties.reduce((sum, { weight }) => sum + weight, 0);
  return parties.reduce((sum, { served, weight }) => sum + served * weight, 0) / weights;
}

/** What one of several gets if `total` is given out so that all have been served alike, as far as it goes. */
function levelled(parties: readonly Party[], index: number, total: number): number {
  const own = parties[index];
  if (own === undefined) return 0;
  const weights = parties.reduce((sum, { weight }) => sum + weight, 0);
  return Math.min(total, Math.max(0, (own.weight / weights) * total + own.weight * (meanOf(parties) - own.served)));
}
