/** Single calls on an instant upstream: the most requests per second whose 99th percentile is within a bound. */
import { load } from "../load/load.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { cellOf, contenders, nameOf, startContender, startUpstreamOf, type Contender } from "./contenders.ts";

/** Clients in the closed loop, level by level. */
const LEVELS = [1, 2, 4, 8, 16, 32, 64, 128];
const P99_MS = [5, 10, 50] as const;
const LEVEL_MS = 400;

export function throughputSuite(options: SuiteOptions): Suite {
  const variants = contenders(options);
  const levels = options.quick ? [1, 16] : LEVELS;
  const levelMs = options.quick ? 200 : LEVEL_MS;
  return {
    name: "throughput",
    title: "single calls on an instant upstream, most requests per second with a p99 of at most 5, 10 and 50 ms",
    about:
      `Single chat completions on an upstream that answers at once, in closed loops of ${LEVELS.join(", ")} clients: the most requests per ` +
      "second of a loop whose 99th percentile is at most 5, 10 and 50 ms. 0: no loop is as fast.",
    cells: variants.map((variant) => ({ ...cellOf(variant, 0), measure: () => measure(variant, levels, levelMs) })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = { gateway: nameOf(variant) };
        for (const ms of P99_MS) row[`requests/s at p99 ≤ ${ms} ms`] = of(variant, 0, `rps@p99<=${ms}`).toFixed(0);
        row["÷ Portkey at 50 ms"] = (of(variant, 0, "rps@p99<=50") / of("portkey", 0, "rps@p99<=50")).toFixed(2);
        return row;
      }),
  };
}

async function measure(variant: Contender, levels: readonly number[], levelMs: number): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { hasShortStreams: true });
  await using started = await startContender(variant, upstream);
  const { target } = started;
  await load({ ...target, concurrency: 16, requests: 1_000, msMax: levelMs });
  const figures: Figures = {};
  for (const ms of P99_MS) figures[`rps@p99<=${ms}`] = 0;
  for (const concurrency of levels) {
    const { rps, p99Ms } = await load({ ...target, concurrency, requests: 100_000, msMax: levelMs });
    for (const ms of P99_MS) {
      const name = `rps@p99<=${ms}`;
      if (p99Ms <= ms) figures[name] = Math.max(figures[name] ?? 0, rps);
    }
    // Wider loops only wait longer.
    if (p99Ms > 2 * Math.max(...P99_MS)) break;
  }
  return figures;
}
