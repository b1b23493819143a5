/** Streams of an upstream that sends an event every few milliseconds: what a gateway adds to the way of each. */
import { loadPaced } from "../load/paced.ts";
import { startVariant, streamTarget, streamVariants, type StreamVariant } from "../servers/streaming.ts";
import { startUpstream } from "../servers/servers.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16];
/** Time between two events of a stream: 200 tokens per second, as a fast model sends them. */
const PACE_MS = 5;
const ADDED_P50_MS = 0.5;
const ADDED_P99_MS = 5;

export function pacedSuite({ quick, baseline }: SuiteOptions): Suite {
  const variants = streamVariants(baseline);
  return {
    name: "paced",
    title: `streams of one event every ${PACE_MS} ms, delay of each event from the upstream's write to its client`,
    cells: CONCURRENCIES.flatMap((concurrency) =>
      variants.map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure({ variant, concurrency, streams: concurrency * (quick ? 1 : 4), baseline }),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.map((c) => {
        const row: Record<string, string> = { concurrency: String(c) };
        row["p50 ms, direct"] = of("direct", c, "p50_ms").toFixed(2);
        row["p99 ms, direct"] = of("direct", c, "p99_ms").toFixed(2);
        for (const variant of variants.filter((name) => name !== "direct")) {
          const added = (figure: string) => of(variant, c, figure) - of("direct", c, figure);
          const isOwn = variant === "native" || variant === "js";
          const shown = (ms: number, most: number) => (isOwn ? against(ms, "<=", most) : ms.toFixed(2));
          row[`added p50 ms, ${variant}`] = shown(added("p50_ms"), ADDED_P50_MS);
          row[`added p99 ms, ${variant}`] = shown(added("p99_ms"), ADDED_P99_MS);
        }
        return row;
      }),
  };
}

type Plan = { variant: StreamVariant; concurrency: number; streams: number; baseline: string | undefined };

/** One stream of each client warms the server up. */
async function measure({ variant, concurrency, streams, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstream({ paceMs: PACE_MS });
  await using server = await startVariant(variant, upstream, baseline);
  const plan = { ...(await streamTarget(variant, upstream, server)), concurrency, msMax: 20_000 };
  await loadPaced({ ...plan, requests: concurrency });
  const { p50Ms, p99Ms, mostMs } = await loadPaced({ ...plan, requests: streams });
  return { p50_ms: p50Ms, p99_ms: p99Ms, most_ms: mostMs };
}
