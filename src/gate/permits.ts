/** How a width is divided between runs: by water-filling over what they have in flight and waiting. */
import type { Run } from "./registry.ts";
import { waitingOf } from "./registry.ts";
import { CLASS_SHARES, waterFill, wholeParts } from "./share.ts";
import type { WorkClass } from "./wire.ts";

/** Permits that a run may be using: those of its grants, or more if it began before it had one. */
export function heldBy({ permits, inFlight }: Pick<Run, "permits" | "inFlight">): number {
  return Math.max(permits, inFlight);
}

/** Permits of one run. The sum over all runs, with what others still hold, is at most `width`. */
export function permitsOf(run: Run, runs: readonly Run[], width: number): number {
  const weights = weightsOf(runs);
  const demands = runs.map((one, index) => ({ wanted: one.inFlight + waitingOf(one), weight: weights[index] ?? 0 }));
  const parts = waterFill(demands, width);
  // The run with the fewest permits for its weight is the first to get what rounding leaves, so the runs take turns at a width of 1.
  const order = [...runs.keys()].toSorted((a, b) => loadOf(runs, weights, a) - loadOf(runs, weights, b));
  const whole = wholeParts(parts, demands, order);
  const free = width - whole.reduce((sum, part) => sum + part, 0);
  const own = (whole[runs.indexOf(run)] ?? 0) + Math.floor(free / runs.length);
  const heldByOthers = runs.reduce((sum, one) => (one === run ? sum : sum + heldBy(one)), 0);
  const kept = keptForInteractive(run, runs, width);
  return Math.max(0, Math.min(own, width - kept - heldByOthers));
}

/** One permit is left to a run that answers people, so that its next call need not wait for the end of another's. */
function keptForInteractive(run: Run, runs: readonly Run[], width: number): number {
  if (run.workClass === "interactive" || width < WIDTH_WITH_KEPT_MIN) return 0;
  return runs.some((one) => one.workClass === "interactive" && heldBy(one) === 0) ? 1 : 0;
}

/** Below this, a permit that is kept is too large a part. */
const WIDTH_WITH_KEPT_MIN = 4;

/** The weight of each run: the share of its class, divided between the runs of the class by their own weights. */
function weightsOf(runs: readonly Run[]): number[] {
  const inClass = new Map<WorkClass, number>();
  for (const { workClass, weight } of runs) inClass.set(workClass, (inClass.get(workClass) ?? 0) + weight);
  return runs.map(({ workClass, weight }) => (CLASS_SHARES[workClass] * weight) / (inClass.get(workClass) ?? weight));
}

function loadOf(runs: readonly Run[], weights: readonly number[], index: number): number {
  const run = runs[index];
  return run === undefined ? 0 : heldBy(run) / (weights[index] ?? 1);
}
