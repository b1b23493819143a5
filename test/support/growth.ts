/** How the time of work grows with its input, on a machine that does other things beside it. */
import { expect } from "vitest";

/** Time that is too short to be compared, ms: quadratic work on the inputs of these tests takes seconds and more. */
const FLOOR_MS = 50;
const RUNS = 3;

/**
 * Expects work on an input of `size` to take less than three times as long as on one of half the size: linear work takes
 * twice as long, quadratic work four times. `make` prepares the input, whose time does not count.
 */
export function expectLinear(size: number, make: (size: number) => () => unknown): void {
  const whole = cpuMs(make(size));
  if (whole > FLOOR_MS) expect(whole).toBeLessThan(3 * cpuMs(make(size / 2)));
}

/** Time of this thread alone, ms, in the least of a few runs, or of the first that is short: neither the clock nor other threads count. */
function cpuMs(work: () => unknown): number {
  let least = Infinity;
  for (let run = 0; run < RUNS && least > FLOOR_MS; run++) {
    const from = process.threadCpuUsage().user;
    work();
    least = Math.min(least, (process.threadCpuUsage().user - from) / 1_000);
  }
  return least;
}
