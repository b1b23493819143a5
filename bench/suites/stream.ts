/** Streams through `POST /v1/chat/completions`, as fast as sockets take them: no gateway, a bare Worker, Portkey's, the peers, and ours. */
import { cellOf, startUpstreamOf } from "../field/contenders.ts";
import { loadStreams } from "../load/stream.ts";
import { startVariant, streamNameOf, streamTarget, streamVariants, type StreamVariant } from "../servers/streaming.ts";
import { against } from "../suite.ts";
import type { Figures, Median, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];
/** Longest gap between two pieces of a stream, ms, at the 99th percentile: what people see as a stream that flows. */
const GAP_MS_MAX = 5;
/** Chunks per second, in times of Portkey's, by concurrency. */
const TARGETS: Record<number, { native: number; js: number }> = {
  1: { native: 3, js: 2 },
  16: { native: 0.8, js: 0.45 },
  64: { native: 0.6, js: 0.4 },
};

export function streamSuite(options: SuiteOptions): Suite {
  const { quick, baseline } = options;
  const variants = streamVariants(options);
  return {
    name: "stream",
    title: "streams as fast as sockets take them, chunks per second",
    about:
      "Streams of 200 events of 200 bytes, which the upstream writes as fast as the sockets take them: chunks per second of all streams, " +
      "the time to the first byte (TTFT), the time between two pieces of one stream at the 99th percentile, and the gateway's processor " +
      "time. `native` requests the usage event of an upstream without a key; `read` of one with a key, so that the gateway reads each event; " +
      "`js` does not request it.",
    cells: variants.map((variant) => ({
      ...cellOf(variant, 0),
      measure: () => measure({ variant, streams: quick ? 200 : 1_000, baseline }),
    })),
    table: (of) => variants.map((variant) => rowOf(variant, of, baseline !== undefined)),
  };
}

function rowOf(variant: StreamVariant, of: Median, hasBaseline: boolean): Record<string, string> {
  const figure = (name: string, c: number) => of(variant, 0, `${name}@${c}`);
  const figures = (name: string, digits: number) =>
    CONCURRENCIES.map((c) => figure(name, c).toFixed(digits)).join(" / ");
  const at = `at ${CONCURRENCIES.join(" / ")}`;
  const row: Record<string, string> = {
    gateway: streamNameOf(variant),
    [`chunks/s ${at}`]: figures("chunks_per_s", 0),
    [`chunks/s with a gap p99 ≤ ${GAP_MS_MAX} ms ${at}`]: figures("flowing_chunks_per_s", 0),
    [`gap p99 ms ${at}`]: figures("gap_p99_ms", 1),
    [`CPU µs per chunk ${at}`]: variant === "direct" ? "" : figures("cpu_us", 1),
    [`TTFT p50 ms ${at}`]: figures("first_p50_ms", 1),
  };
  for (const c of CONCURRENCIES) {
    const times = figure("chunks_per_s", c) / of("portkey", 0, `chunks_per_s@${c}`);
    const target = targetOf(variant, c);
    row[`÷ Portkey at ${c}`] = target === undefined ? times.toFixed(2) : against(times, ">=", target);
    if (!hasBaseline || target === undefined) continue;
    row[`÷ baseline at ${c}`] = (figure("chunks_per_s", c) / of(`${variant}-baseline`, 0, `chunks_per_s@${c}`)).toFixed(
      2,
    );
  }
  return row;
}

/** undefined = it is none of ours. */
function targetOf(variant: StreamVariant, c: number): number | undefined {
  if (variant === "native") return TARGETS[c]?.native;
  return variant === "read" || variant === "js" ? TARGETS[c]?.js : undefined;
}

type Plan = { variant: StreamVariant; streams: number; baseline: string | undefined };

/** Longest load at one concurrency, ms. */
const LOAD_MS_MAX = 1_200;

/** A third of the streams warms the server up at each concurrency. */
async function measure({ variant, streams, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant);
  await using server = await startVariant(variant, upstream, baseline);
  const target = await streamTarget(variant, upstream, server);
  const figures: Figures = {};
  for (const concurrency of CONCURRENCIES) {
    const plan = { ...target, concurrency };
    await loadStreams({ ...plan, msMax: LOAD_MS_MAX / 3, requests: Math.ceil(streams / 3) });
    const cpuMs = server.cpuMs();
    const result = await loadStreams({ ...plan, msMax: LOAD_MS_MAX, requests: streams });
    figures[`cpu_us@${concurrency}`] = ((server.cpuMs() - cpuMs) * 1_000) / result.chunks;
    figures[`chunks_per_s@${concurrency}`] = result.chunksPerS;
    figures[`p50_ms@${concurrency}`] = result.p50Ms;
    figures[`gap_p99_ms@${concurrency}`] = result.gapP99Ms;
    figures[`flowing_chunks_per_s@${concurrency}`] = result.gapP99Ms <= GAP_MS_MAX ? result.chunksPerS : 0;
    figures[`first_p50_ms@${concurrency}`] = result.firstP50Ms;
    figures[`first_p99_ms@${concurrency}`] = result.firstP99Ms;
  }
  return figures;
}
