/** What leased credit brings: `/query` on an upstream of 250 ms with and without it, with the run object beside the Worker and 30 ms away. */
import { z } from "zod";
import { load } from "../load/load.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import type { Server } from "../servers/process.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { queryTarget } from "./query.ts";

const CONCURRENCIES = [1, 16, 64];
/** An upstream as fast as a small model. */
const LATENCY_MS = 250;
/** There and back: an object in another region of the same continent. */
const FAR_MS = 30;

const VARIANTS = {
  "near, credit": { farMs: 0, leasedCredit: "on" },
  "near, strict": { farMs: 0, leasedCredit: "off" },
  "far, credit": { farMs: FAR_MS, leasedCredit: "on" },
  "far, strict": { farMs: FAR_MS, leasedCredit: "off" },
} as const;
type Variant = keyof typeof VARIANTS;
const NAMES: readonly Variant[] = ["near, credit", "near, strict", "far, credit", "far, strict"];

export function creditSuite({ quick }: SuiteOptions): Suite {
  return {
    name: "credit",
    title: `/query on an upstream of ${LATENCY_MS} ms, with leased credit and without it, its run object near and ${FAR_MS} ms away`,
    cells: CONCURRENCIES.flatMap((concurrency) =>
      NAMES.map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure(variant, concurrency, concurrency * (quick ? 8 : 24)),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.flatMap((c) =>
        NAMES.map((variant) => ({
          concurrency: String(c),
          variant,
          "added p50 ms": (of(variant, c, "p50_ms") - LATENCY_MS).toFixed(1),
          "added p95 ms": (of(variant, c, "p95_ms") - LATENCY_MS).toFixed(1),
          "calls of the object per call": of(variant, c, "rpcs").toFixed(2),
          "CPU µs per call": of(variant, c, "cpu_us").toFixed(0),
        })),
      ),
  };
}

const counted = z.object({ rpcs: z.number() });

async function rpcsOf(gateway: Server): Promise<number> {
  const answer = await fetch(`${gateway.url}/bench/rpcs`);
  return counted.parse(await answer.json()).rpcs;
}

/** A third of the requests warms the gateway up: credit is given to who has made several calls. */
async function measure(variant: Variant, concurrency: number, requests: number): Promise<Figures> {
  await using upstream = await startUpstream({ latencyMs: LATENCY_MS });
  const { farMs, leasedCredit } = VARIANTS[variant];
  await using gateway = await startGateway(upstream, {
    entryPoint: "bench/workers/far-gateway.ts",
    leasedCredit,
    runObjectRttMs: farMs,
  });
  const target = queryTarget(gateway, await openRun(gateway));
  const bounds = { concurrency, msMax: 20_000 };
  await load({ ...target, ...bounds, requests: Math.ceil(requests / 3) });
  const before = { rpcs: await rpcsOf(gateway), cpuMs: gateway.cpuMs() };
  const result = await load({ ...target, ...bounds, requests });
  return {
    p50_ms: result.p50Ms,
    p95_ms: result.p95Ms,
    rps: result.rps,
    rpcs: ((await rpcsOf(gateway)) - before.rpcs) / result.requests,
    cpu_us: ((gateway.cpuMs() - before.cpuMs) * 1_000) / result.requests,
  };
}
