/** `POST /runs`: runs opened per second, with a budget of the day that they reserve in and without one, and what one takes of objects. */
import { z } from "zod";
import { load } from "../load/load.ts";
import type { Server } from "../servers/process.ts";
import { ADMIN_KEY, startGateway, startUpstream } from "../servers/servers.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];
/** Longest load, ms. */
const LOAD_MS_MAX = 3_000;
/** Runs after which nearly all parts of the list have their tables and a lease of the day, and how long they may take at most, ms. */
const WARMING_RUNS = 400;
const WARMING_MS_MAX = 20_000;
/** What every run of the load reserves, and a budget that covers a million of them. */
const RUN_USD = 1;
const DAY_USD = "1000000";

const VARIANTS = { "no budget of the day": {}, "budget of the day": { rootUsdPerDay: DAY_USD } } as const;
type Variant = keyof typeof VARIANTS;
const NAMES: readonly Variant[] = ["no budget of the day", "budget of the day"];

export function runsSuite({ quick }: SuiteOptions): Suite {
  const concurrencies = quick ? [64] : CONCURRENCIES;
  return {
    name: "runs",
    title: "root runs opened by POST /runs, per second, with ROOT_BUDGET_USD_PER_DAY and without",
    cells: concurrencies.flatMap((at) =>
      NAMES.map((variant) => ({ variant, at, measure: () => measure(variant, at, quick ? 1_000 : LOAD_MS_MAX) })),
    ),
    table: (of) =>
      concurrencies.flatMap((at) =>
        NAMES.map((variant) => {
          const figure = (name: string, digits: number) => of(variant, at, name).toFixed(digits);
          return {
            clients: String(at),
            variant,
            "runs/s": figure("per_s", 0),
            "p50 / p99 ms": `${figure("p50_ms", 1)} / ${figure("p99_ms", 1)}`,
            "RPCs per run": figure("rpcs", 2),
            "of them to the object that all share": figure("shared", 3),
            "commits per run": figure("commits", 2),
            "rows per run": figure("rows", 2),
            "CPU ms per run": figure("cpu_ms", 2),
          };
        }),
      ),
  };
}

const counted = z.object({
  open: z.number(),
  add: z.number(),
  addOfDay: z.number(),
  lease: z.number(),
  release: z.number(),
  commits: z.number(),
  rows: z.number(),
});

async function countsOf(gateway: Server): Promise<z.infer<typeof counted>> {
  return counted.parse(await (await fetch(`${gateway.url}/bench/runs`)).json());
}

async function measure(variant: Variant, concurrency: number, msMax: number): Promise<Figures> {
  await using upstream = await startUpstream();
  await using gateway = await startGateway(upstream, {
    entryPoint: "bench/workers/runs-gateway.ts",
    ...VARIANTS[variant],
  });
  const plan = {
    url: `${gateway.url}/runs`,
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
    body: () => JSON.stringify({ max_parallel: 8, budget: { usd: RUN_USD } }),
    status: 201,
    requests: 1_000_000,
  };
  await load({ ...plan, concurrency: 64, requests: WARMING_RUNS, msMax: WARMING_MS_MAX });
  const [before, cpuMs] = [await countsOf(gateway), gateway.cpuMs()];
  const { requests, rps, p50Ms, p99Ms } = await load({ ...plan, concurrency, msMax });
  const after = await countsOf(gateway);
  const perRun = (name: keyof typeof after): number => (after[name] - before[name]) / requests;
  const shared = perRun("lease") + perRun("release");
  return {
    per_s: rps,
    p50_ms: p50Ms,
    p99_ms: p99Ms,
    rpcs: perRun("open") + perRun("add") + perRun("addOfDay") + shared,
    shared,
    commits: perRun("commits"),
    rows: perRun("rows"),
    cpu_ms: (gateway.cpuMs() - cpuMs) / requests,
  };
}
