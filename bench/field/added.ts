/** Single calls on an upstream of 20 ms: what a gateway adds to the latency, and the memory that it takes. */
import { load } from "../load/load.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { cellOf, contenders, nameOf, startContender, startUpstreamOf, type Contender } from "./contenders.ts";

const LATENCY_MS = 20;
const CONCURRENCIES = [1, 16, 64];
/**
 * Length of the load at one concurrency, ms: with 16 clients a gateway answers two thousand calls or more, so that their 99th percentile
 * is not one pause of its loop, which all 16 wait for.
 */
const LOAD_MS = 5_000;
/** Calls before the first load: a runtime that compiles what runs often has compiled the way of a call by then. */
const WARM_UP_CALLS = 4_000;
/** Longest time for these calls, ms: slow gateways have fewer. */
const WARM_UP_MS_MAX = 10_000;
/** Loads and warm-up of a quick round, ms. */
const QUICK_MS = 300;
const QUANTILES = ["p50_ms", "p95_ms", "p99_ms", "p999_ms"] as const;

export function addedSuite(options: SuiteOptions): Suite {
  const variants = contenders(options);
  const times = options.quick
    ? { loadMs: QUICK_MS, warmUpMs: QUICK_MS }
    : { loadMs: LOAD_MS, warmUpMs: WARM_UP_MS_MAX };
  return {
    name: "added",
    title: `single calls on an upstream of ${LATENCY_MS} ms, latency beyond that of no gateway, processor time and resident memory`,
    about:
      `Single chat completions on an upstream that answers after ${LATENCY_MS} ms, in a closed loop of 1, 16 and 64 clients: the median, the ` +
      `95th, the 99th and the 99.9th percentile of the latency minus the same of calls without a gateway. Each loop lasts ${LOAD_MS / 1_000} s, ` +
      `after a warm-up of ${WARM_UP_CALLS.toLocaleString("en")} calls or ${WARM_UP_MS_MAX / 1_000} s. Processor time is that of the ` +
      "gateway's processes per 1,000 calls, and memory is resident, before the first call and after the last.",
    cells: variants.map((variant) => ({ ...cellOf(variant, 0), measure: () => measure(variant, times) })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = { gateway: nameOf(variant) };
        for (const c of CONCURRENCIES) {
          const added = QUANTILES.map((name) => {
            const ms = of(variant, 0, `${name}@${c}`);
            return (variant === "direct" ? ms : ms - of("direct", 0, `${name}@${c}`)).toFixed(1);
          });
          const what = variant === "direct" ? " in all" : "";
          row[`added p50 / p95 / p99 / p99.9 ms at ${c}`] = `${added.join(" / ")}${what}`;
        }
        const own = (name: string, digits: number) =>
          variant === "direct" ? "" : of(variant, 0, name).toFixed(digits);
        for (const c of CONCURRENCIES) row[`CPU s per 1,000 at ${c}`] = own(`cpu_s@${c}`, 2);
        row["MB idle"] = own("idle_mb", 0);
        row["MB after"] = own("loaded_mb", 0);
        row["threads"] = own("threads", 0);
        return row;
      }),
  };
}

type Times = { loadMs: number; warmUpMs: number };

async function measure(variant: Contender, { loadMs, warmUpMs }: Times): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { latencyMs: LATENCY_MS, hasShortStreams: true });
  await using started = await startContender(variant, upstream);
  const { server, target } = started;
  const figures: Figures = { idle_mb: server.rssBytes() / 1e6 };
  await load({ ...target, concurrency: Math.max(...CONCURRENCIES), requests: WARM_UP_CALLS, msMax: warmUpMs });
  for (const concurrency of CONCURRENCIES) {
    const cpuMs = server.cpuMs();
    const result = await load({ ...target, concurrency, requests: Infinity, msMax: loadMs });
    figures[`cpu_s@${concurrency}`] = (server.cpuMs() - cpuMs) / result.requests;
    figures[`p50_ms@${concurrency}`] = result.p50Ms;
    figures[`p95_ms@${concurrency}`] = result.p95Ms;
    figures[`p99_ms@${concurrency}`] = result.p99Ms;
    figures[`p999_ms@${concurrency}`] = result.p999Ms;
    figures[`requests@${concurrency}`] = result.requests;
  }
  return { ...figures, loaded_mb: server.rssBytes() / 1e6, threads: server.threads?.() ?? Number.NaN };
}
