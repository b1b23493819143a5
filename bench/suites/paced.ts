/** Streams of an upstream that sends an event every few milliseconds: what a gateway adds to the way of each. */
import { loadPaced } from "../load/paced.ts";
import { ownVariants, startVariant, streamTarget, streamVariants, type StreamVariant } from "../servers/streaming.ts";
import { startUpstream } from "../servers/servers.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16];
/** Streams at once, level by level, until their events are late. */
const LEVELS = [8, 16, 24, 32, 48, 64, 96, 128];
/** 99th percentile of the delay of events that a relay sustains, ms. */
const SUSTAINED_P99_MS = 10;
/** Time between two events of a stream: 200 tokens per second, as a fast model sends them. */
const PACE_MS = 5;
const ADDED_P50_MS = 0.5;
const ADDED_P99_MS = 5;

export function pacedSuite(options: SuiteOptions): Suite {
  const { quick, baseline } = options;
  const own = ownVariants(quick);
  const variants = streamVariants(options).filter((variant) => !quick || variant !== "floor");
  return {
    name: "paced",
    title: `streams of one event every ${PACE_MS} ms, delay of each event from the upstream's write to its client`,
    about:
      `Streams of 200 events, one every ${PACE_MS} ms. Each event carries the time at which the upstream wrote it; the figure is its delay ` +
      "until the client has read it, beyond that of `direct`. Sustained is the most streams at once, not in step, whose events have a " +
      `99th percentile of at most ${SUSTAINED_P99_MS} ms.`,
    cells: variants.map((variant) => ({
      variant,
      at: 0,
      measure: () => measure({ variant, streamsEach: quick ? 1 : 2, levels: quick ? [] : LEVELS, baseline }),
    })),
    table: (of) => [
      ...CONCURRENCIES.map((c) => {
        const row: Record<string, string> = { concurrency: String(c) };
        const figure = (variant: StreamVariant, name: string) => of(variant, 0, `${name}@${c}`);
        row["p50 ms, direct"] = figure("direct", "p50_ms").toFixed(2);
        row["p99 ms, direct"] = figure("direct", "p99_ms").toFixed(2);
        for (const variant of variants.filter((name) => name !== "direct")) {
          const added = (name: string) => figure(variant, name) - figure("direct", name);
          const isOwn = own.some((each) => each === variant);
          const shown = (ms: number, most: number) => (isOwn ? against(ms, "<=", most) : ms.toFixed(2));
          row[`added p50 ms, ${variant}`] = shown(added("p50_ms"), ADDED_P50_MS);
          row[`added p99 ms, ${variant}`] = shown(added("p99_ms"), ADDED_P99_MS);
        }
        return row;
      }),
      {
        concurrency: "sustained",
        ...Object.fromEntries(
          variants.map((variant) => [`streams, ${variant}`, of(variant, 0, "sustained").toFixed(0)]),
        ),
      },
    ],
  };
}

type Plan = { variant: StreamVariant; streamsEach: number; levels: readonly number[]; baseline: string | undefined };

/** One stream of each client warms the server up. */
async function measure({ variant, streamsEach, levels, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstream({ paceMs: PACE_MS });
  await using server = await startVariant(variant, upstream, baseline);
  const target = await streamTarget(variant, upstream, server);
  const figures: Figures = {};
  for (const concurrency of CONCURRENCIES) {
    const plan = { ...target, concurrency, msMax: 20_000 };
    await loadPaced({ ...plan, requests: concurrency });
    const { p50Ms, p99Ms, mostMs } = await loadPaced({ ...plan, requests: concurrency * streamsEach });
    figures[`p50_ms@${concurrency}`] = p50Ms;
    figures[`p99_ms@${concurrency}`] = p99Ms;
    figures[`most_ms@${concurrency}`] = mostMs;
  }
  if (levels.length > 0) figures["sustained"] = 0;
  for (const concurrency of levels) {
    const plan = { ...target, concurrency, msMax: 20_000, beginsWithinMs: 200 };
    const { p99Ms } = await loadPaced({ ...plan, requests: concurrency });
    figures[`staggered_p99_ms@${concurrency}`] = p99Ms;
    if (p99Ms > SUSTAINED_P99_MS) break;
    figures["sustained"] = concurrency;
  }
  return figures;
}
