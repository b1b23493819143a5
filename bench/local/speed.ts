/** Single calls through `npm start` against the same gateway on plain workerd: what the splice and Miniflare cost. */
import { load } from "../load/load.ts";
import type { Server } from "../servers/process.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { against, type Figures, type Suite } from "../suite.ts";
import { queryTarget } from "../suites/query.ts";
import { startNpm } from "./started.ts";

const CONCURRENCIES = [1, 16, 64];
/** The share of plain workerd's speed that `npm start` must reach. */
const RATIO_MIN = 0.6;

type Variant = "workerd" | "start";

export function speedSuite({ quick }: { quick: boolean }): Suite {
  const requests = quick ? 600 : 3_000;
  return {
    name: "local",
    title: "single calls on an instant upstream, requests per second",
    cells: CONCURRENCIES.flatMap((concurrency) =>
      (["workerd", "start"] as const).map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure(variant, concurrency, requests),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.map((c) => ({
        concurrency: String(c),
        "workerd rps": of("workerd", c, "rps").toFixed(0),
        "npm start rps": of("start", c, "rps").toFixed(0),
        "added p50 ms": (of("start", c, "p50_ms") - of("workerd", c, "p50_ms")).toFixed(2),
        "npm start ÷ workerd": against(of("start", c, "rps") / of("workerd", c, "rps"), ">=", RATIO_MIN),
      })),
  };
}

/** A third of the requests warms the gateway up; both parts end after 20 s at the latest. */
async function measure(variant: Variant, concurrency: number, requests: number): Promise<Figures> {
  await using upstream = await startUpstream();
  await using server: Server = variant === "start" ? await startNpm(upstream) : await startGateway(upstream);
  const target = queryTarget(server, await openRun(server));
  const bounds = { concurrency, msMax: 20_000 };
  await load({ ...target, ...bounds, requests: Math.ceil(requests / 3) });
  const { rps, p50Ms, p95Ms } = await load({ ...target, ...bounds, requests });
  return { rps, p50_ms: p50Ms, p95_ms: p95Ms };
}
