/**
 * The bound of a check. It is counted, not timed: a hostile schema can make the work grow with the product of its size and the
 * answer's, or exponentially through references, and no clock of a Worker moves while it works.
 */
import { SCHEMA_CHECK_STEPS_MAX, SCHEMA_NESTING_MAX } from "../../limits.ts";
import type { Misfit, StepCounter } from "./types.ts";

/** Leaves a check that takes too long, from any depth; `runCounted` is the only place that catches it. */
class CheckTooLong extends Error {}

class Steps implements StepCounter {
  #left: number;
  #depth = 0;

  constructor(stepsMax: number) {
    this.#left = stepsMax;
  }

  get left(): number {
    return this.#left;
  }

  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new CheckTooLong();
  }

  nested(run: () => Misfit | null): Misfit | null {
    this.spend(1);
    this.#depth += 1;
    if (this.#depth > SCHEMA_NESTING_MAX) throw new CheckTooLong();
    const found = run();
    this.#depth -= 1;
    return found;
  }
}

/** The result of a check; `too long` if it would take more than `stepsMax` steps, or nest too deep. */
export function runCounted(
  run: (steps: StepCounter) => Misfit | null,
  stepsMax = SCHEMA_CHECK_STEPS_MAX,
): Misfit | null | "too long" {
  try {
    return run(new Steps(stepsMax));
  } catch (error) {
    if (error instanceof CheckTooLong) return "too long";
    throw error;
  }
}
