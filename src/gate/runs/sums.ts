/** What all runs of a gate have together, as running sums: an exchange must not visit thousands of runs. */
import { waitingOf, type Run } from "./run.ts";
import { NO_AMOUNT, plus, type Amount } from "../started.ts";
import { WORK_CLASSES, type WorkClass } from "../wire.ts";

/** Those that wait for a rate in one class: what each has been served, times its weight. */
export type WaiterSums = { count: number; weight: number; served: number };

/** The runs whose most urgent work is of one class. */
export type ClassSums = { runs: number; weight: number; withoutPermit: number };

const noWaiters = (): WaiterSums => ({ count: 0, weight: 0, served: 0 });
const noRuns = (): ClassSums => ({ runs: 0, weight: 0, withoutPermit: 0 });

/** Permits that a run may be using: those of its grants, or more if it began before it had one. */
export function heldBy({ permits, inFlight }: Pick<Run, "permits" | "inFlight">): number {
  return Math.max(permits, inFlight);
}

export class Sums {
  runs = 0;
  inFlight = 0;
  waiting = 0;
  /** Permits that they may be using. */
  held = 0;
  /** Runs that have something in flight, or may start something. */
  busy = 0;
  /** What they may still start by their grants. */
  outstanding: Amount = { ...NO_AMOUNT };
  /** What one call of each run costs that answers people. */
  interactiveCalls: Amount = { ...NO_AMOUNT };
  readonly byClass: Record<WorkClass, ClassSums> = { interactive: noRuns(), standard: noRuns(), batch: noRuns() };
  readonly waiters: Record<WorkClass, WaiterSums> = {
    interactive: noWaiters(),
    standard: noWaiters(),
    batch: noWaiters(),
  };

  /** Adds a run, or takes it away (`sign` -1): it must not have changed in between. */
  add(run: Run, sign: 1 | -1): void {
    this.runs += sign;
    this.inFlight += sign * run.inFlight;
    this.waiting += sign * waitingOf(run);
    this.held += sign * heldBy(run);
    if (run.inFlight > 0 || run.outstanding.requests >= 1) this.busy += sign;
    this.outstanding = plus(this.outstanding, run.outstanding, sign);
    const ofClass = this.byClass[run.workClass];
    ofClass.runs += sign;
    ofClass.weight += sign * run.weight;
    if (heldBy(run) === 0) ofClass.withoutPermit += sign;
    if (run.workClass === "interactive")
      this.interactiveCalls = plus(this.interactiveCalls, run.claims.interactive.call, sign);
    if (run.isPunctual) for (const name of WORK_CLASSES) this.#addWaiter(run, name, sign);
    if (this.runs === 0) this.#forgetRounding();
  }

  /** Those that wait for a rate, of all classes. */
  get waiterCount(): number {
    return WORK_CLASSES.reduce((sum, name) => sum + this.waiters[name].count, 0);
  }

  #addWaiter(run: Run, name: WorkClass, sign: 1 | -1): void {
    const { unmet, served } = run.claims[name];
    if (unmet <= 0) return;
    const sums = this.waiters[name];
    sums.count += sign;
    sums.weight += sign * run.weight;
    sums.served += sign * served * run.weight;
  }

  /** Fractions that were added and taken away in another order leave a rest. */
  #forgetRounding(): void {
    this.outstanding = { ...NO_AMOUNT };
    this.interactiveCalls = { ...NO_AMOUNT };
    for (const name of WORK_CLASSES) {
      this.byClass[name].weight = 0;
      this.waiters[name].weight = 0;
      this.waiters[name].served = 0;
    }
  }
}
