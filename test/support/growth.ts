/** How the time of work grows with its input, on a machine that does other things beside it. */
import { expect } from "vitest";

/** Time that is too short to be compared, ms: quadratic work on the inputs of these tests takes seconds and more. */
const FLOOR_MS = 50;
const RUNS = 3;
/** A neighbour that empties the caches makes one of a pair slow; work that is not linear is slow in every pair. */
const PAIRS = 5;

/**
 * Expects work on an input of `size` to take less than three times as long as on one of half the size: linear work takes
 * twice as long, quadratic work four times. `make` prepares the input, whose time does not count.
 */
export function expectLinear(size: number, make: (size: number) => () => unknown): void {
  const pairs: string[] = [];
  while (pairs.length < PAIRS) {
    const whole = cpuMs(make(size));
    if (whole <= FLOOR_MS) return;
    const half = cpuMs(make(size / 2));
    if (whole < 3 * half) return;
    pairs.push(`${whole} ms of the whole, ${half} ms of half of it`);
  }
  expect.fail(`the work grows faster than its input: ${pairs.join("; ")}`);
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
