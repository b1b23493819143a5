/** Streams through `POST /v1/chat/completions`, as fast as sockets take them: no gateway, Portkey's, and ours. */
import { loadStreams } from "../load/stream.ts";
import { startVariant, streamTarget, streamVariants, type StreamVariant } from "../servers/streaming.ts";
import { startUpstream } from "../servers/servers.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];
/** Chunks per second, in times of Portkey's, by concurrency. */
const TARGETS: Record<number, { native: number; js: number }> = {
  1: { native: 3, js: 2 },
  16: { native: 0.8, js: 0.45 },
  64: { native: 0.6, js: 0.4 },
};

export function streamSuite({ quick, baseline }: SuiteOptions): Suite {
  const variants = streamVariants(baseline);
  return {
    name: "stream",
    title: "streams as fast as sockets take them, chunks per second",
    cells: CONCURRENCIES.flatMap((concurrency) =>
      variants.map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure({ variant, concurrency, streams: quick ? 200 : 1_000, baseline }),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.map((c) => {
        const row: Record<string, string> = { concurrency: String(c) };
        for (const variant of variants) row[`${variant} chunks/s`] = of(variant, c, "chunks_per_s").toFixed(0);
        const times = (variant: StreamVariant, other: StreamVariant) =>
          of(variant, c, "chunks_per_s") / of(other, c, "chunks_per_s");
        for (const path of ["native", "js"] as const) {
          row[`${path} ÷ portkey`] = against(times(path, "portkey"), ">=", TARGETS[c]?.[path] ?? 0);
          if (baseline !== undefined) row[`${path} ÷ baseline`] = times(path, `${path}-baseline`).toFixed(2);
        }
        for (const variant of variants) row[`whole stream p50 ms, ${variant}`] = of(variant, c, "p50_ms").toFixed(1);
        return row;
      }),
  };
}

type Plan = { variant: StreamVariant; concurrency: number; streams: number; baseline: string | undefined };

/** A third of the streams warms the server up; both parts end after 20 s at the latest. */
async function measure({ variant, concurrency, streams, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstream();
  await using server = await startVariant(variant, upstream, baseline);
  const plan = { ...(await streamTarget(variant, upstream, server)), concurrency, msMax: 20_000 };
  await loadStreams({ ...plan, requests: Math.ceil(streams / 3) });
  const result = await loadStreams({ ...plan, requests: streams });
  return {
    chunks_per_s: result.chunksPerS,
    p50_ms: result.p50Ms,
    first_p50_ms: result.firstP50Ms,
    rss_mb: server.rssBytes() / 1e6,
  };
}
