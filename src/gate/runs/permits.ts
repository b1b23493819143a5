/** How a width is divided between runs: by water-filling over what they have in flight and waiting. */
import { GATE_VISITS_MAX } from "../../limits.ts";
import type { Registry } from "./registry.ts";
import { waitingOf, type Run } from "./run.ts";
import { CLASS_SHARES, waterLevel } from "./share.ts";
import type { Sums } from "./sums.ts";

export class PermitShares {
  readonly #registry: Registry;
  #level = Infinity;
  #width = 0;
  /** Exchanges for which the level serves, which is found by looking at all runs. */
  #left = 0;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /**
   * Permits of a run that is out of the sums. With what others may be using, the sum is at most `width`. Also takes its ticket or
   * ends it: where whole permits do not go round, the run that has waited longest is next.
   */
  of(run: Run, width: number): number {
    const { sums: others, tickets } = this.#registry;
    const wanted = wantedBy(run);
    const n = others.runs + 1;
    const part = Math.min(wanted, this.#levelAt(run, width) * weightOf(run, others));
    const room = Math.max(0, width - keptForInteractive(run, others, width) - others.held);
    let own = Math.floor(part + 1e-9);
    const hasFraction = part - own > 1e-9;
    // Among many that wait, some of those who are next sleep: others may come before them.
    const isNext =
      run.isAtTurn || tickets.placeOf(run) <= room - own + (n > GATE_VISITS_MAX ? n / PLACES_SHARED_BY : 0);
    if (hasFraction && own < room && isNext) {
      own += 1;
      tickets.end(run);
      run.isAtTurn = true;
    }
    const isShort = Math.min(own, room) < wanted;
    own += Math.floor(Math.max(0, width - others.inFlight - others.waiting - wanted) / n);
    if (isShort && waitingOf(run) > 0) tickets.take(run);
    else tickets.end(run);
    return Math.min(own, room);
  }

  /** Of thousands of runs, a few dozen change the level hardly. */
  #levelAt(run: Run, width: number): number {
    const { sums: others, size } = this.#registry;
    if (others.inFlight + others.waiting + wantedBy(run) <= width) return Infinity;
    if (this.#left > 0) {
      this.#left -= 1;
      return (this.#level * width) / this.#width;
    }
    const demands = [{ wanted: wantedBy(run), weight: weightOf(run, others) }];
    for (const one of this.#registry.all())
      if (one !== run) demands.push({ wanted: wantedBy(one), weight: weightIn(others, run, one) });
    this.#level = waterLevel(demands, width);
    this.#width = width;
    this.#left = this.#level === Infinity ? 0 : Math.floor(size / GATE_VISITS_MAX);
    return this.#level;
  }
}

/**
 * Part of the runs that may come before their turn, so that a permit is not left to one that sleeps: half of them. Who waits longest
 * comes when its turn is due, and is served then.
 */
const PLACES_SHARED_BY = 2;

function wantedBy(run: Run): number {
  return run.inFlight + waitingOf(run);
}

/** One permit is left to a run that answers people, so that its next call need not wait for the end of another's. */
function keptForInteractive(run: Run, { byClass }: Sums, width: number): number {
  if (run.workClass === "interactive" || width < WIDTH_WITH_KEPT_MIN) return 0;
  return byClass.interactive.withoutPermit > 0 ? 1 : 0;
}

/** Below this, a permit that is kept is too large a part. */
const WIDTH_WITH_KEPT_MIN = 4;

/** The weight of a run: the share of its class, divided between the runs of the class by their own weights. */
function weightOf(run: Run, others: Sums): number {
  return weightIn(others, run, run);
}

function weightIn(others: Sums, out: Run, { workClass, weight }: Run): number {
  const inClass = others.byClass[workClass].weight + (out.workClass === workClass ? out.weight : 0);
  return (CLASS_SHARES[workClass] * weight) / inClass;
}
