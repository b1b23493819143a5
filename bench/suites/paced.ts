/** Streams of an upstream that sends an event every few milliseconds: what a gateway adds to the way of each. */
import { cellOf, startUpstreamOf } from "../field/contenders.ts";
import { lastThatHolds } from "../load/levels.ts";
import { loadPaced } from "../load/paced.ts";
import {
  ownVariants,
  startVariant,
  streamNameOf,
  streamTarget,
  streamVariants,
  type StreamVariant,
} from "../servers/streaming.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16];
/** Streams at once that are tried, by halves. */
const LEVELS = [8, 16, 24, 32, 48, 64, 96, 128];
/** 99th percentile of the delay of events that a relay sustains, ms. */
const SUSTAINED_P99_MS = 10;
/** Time between two events of a stream: 200 tokens per second, as a fast model sends them. */
const PACE_MS = 5;
/** Streams before the first that counts, how many at once, and for how long at most, ms: a runtime has compiled the way of a stream by then. */
const WARM_UP = { requests: 256, concurrency: 64, msMax: 10_000 };
/** The same of a quick round. */
const QUICK_WARM_UP = { ...WARM_UP, requests: 16, concurrency: 16 };
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
      `until the client has read it, beyond that of \`direct\`. ${WARM_UP.requests} streams, ${WARM_UP.concurrency} at once, come before them. ` +
      "Sustained is the most streams at once, not in step, whose events have a " +
      `99th percentile of at most ${SUSTAINED_P99_MS} ms.`,
    cells: variants.map((variant) => ({
      ...cellOf(variant, 0),
      measure: () =>
        measure({
          variant,
          streamsEach: quick ? 1 : 2,
          levels: quick ? [] : LEVELS,
          warmUp: quick ? QUICK_WARM_UP : WARM_UP,
          baseline,
        }),
    })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = { gateway: streamNameOf(variant) };
        const added = (figure: string) => of(variant, 0, figure) - of("direct", 0, figure);
        const isOwn = own.some((each) => each === variant);
        const shown = (figure: string, most: number) => {
          if (variant === "direct") return `${of(variant, 0, figure).toFixed(2)} in all`;
          return isOwn ? against(added(figure), "<=", most) : added(figure).toFixed(2);
        };
        for (const c of CONCURRENCIES) row[`added p50 ms at ${c}`] = shown(`p50_ms@${c}`, ADDED_P50_MS);
        for (const c of CONCURRENCIES) row[`added p99 ms at ${c}`] = shown(`p99_ms@${c}`, ADDED_P99_MS);
        row["streams sustained"] = of(variant, 0, "sustained").toFixed(0);
        return row;
      }),
  };
}

type Plan = {
  variant: StreamVariant;
  streamsEach: number;
  levels: readonly number[];
  warmUp: typeof WARM_UP;
  baseline: string | undefined;
};

async function measure({ variant, streamsEach, levels, warmUp, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { paceMs: PACE_MS });
  await using server = await startVariant(variant, upstream, baseline);
  const target = await streamTarget(variant, upstream, server);
  const figures: Figures = {};
  await loadPaced({ ...target, ...warmUp });
  for (const concurrency of CONCURRENCIES) {
    const plan = { ...target, concurrency, msMax: 20_000 };
    const { p50Ms, p99Ms, mostMs } = await loadPaced({ ...plan, requests: concurrency * streamsEach });
    figures[`p50_ms@${concurrency}`] = p50Ms;
    figures[`p99_ms@${concurrency}`] = p99Ms;
    figures[`most_ms@${concurrency}`] = mostMs;
  }
  if (levels.length === 0) return figures;
  figures["sustained"] = await lastThatHolds(levels, async (concurrency) => {
    const plan = { ...target, concurrency, msMax: 20_000, beginsWithinMs: 200 };
    const { p99Ms } = await loadPaced({ ...plan, requests: concurrency });
    figures[`staggered_p99_ms@${concurrency}`] = p99Ms;
    return p99Ms <= SUSTAINED_P99_MS;
  });
  return figures;
}
