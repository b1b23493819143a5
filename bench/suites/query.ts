/** Single calls on an instant upstream: our `/query` with its durable ledger, Portkey's gateway, and no gateway at all. */
import { load } from "../load.ts";
import type { LoadPlan } from "../load.ts";
import type { Server } from "../process.ts";
import { completionBody, MODEL, promptOf } from "../prompts.ts";
import { openRun, startGateway, startPortkey, startUpstream } from "../servers.ts";
import { against } from "../suite.ts";
import type { Figures, Suite } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];
const VARIANTS = ["direct", "portkey", "query"] as const;
type Variant = (typeof VARIANTS)[number];

type Target = { server: Server; plan: Pick<LoadPlan, "url" | "headers" | "body"> };

export function querySuite(quick: boolean): Suite {
  return {
    name: "query",
    title: "single calls on an instant upstream, requests per second and added p50",
    cells: CONCURRENCIES.flatMap((concurrency) =>
      VARIANTS.map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure(variant, concurrency, quick ? 1_000 : 3_000),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.map((c) => {
        const addedMs = (variant: Variant) => of(variant, c, "p50_ms") - of("direct", c, "p50_ms");
        const row: Record<string, string> = { concurrency: String(c) };
        for (const variant of VARIANTS) row[`${variant} rps`] = of(variant, c, "rps").toFixed(0);
        row["query ÷ portkey"] = against(of("query", c, "rps") / of("portkey", c, "rps"), ">=", 1);
        row["added p50 ms, portkey"] = addedMs("portkey").toFixed(2);
        row["added p50 ms, query"] =
          c === 1
            ? against(addedMs("query"), "<=", Number(addedMs("portkey").toFixed(2)))
            : addedMs("query").toFixed(2);
        row["p95 ms, portkey"] = of("portkey", c, "p95_ms").toFixed(1);
        row["p95 ms, query"] = of("query", c, "p95_ms").toFixed(1);
        return row;
      }),
  };
}

/** A third of the requests warms the server up; both parts end after 20 s at the latest. */
async function measure(variant: Variant, concurrency: number, requests: number): Promise<Figures> {
  await using upstream = await startUpstream();
  const { server, plan } = await startTarget(variant, upstream);
  await using _ = server;
  const bounds = { concurrency, msMax: 20_000 };
  await load({ ...plan, ...bounds, requests: Math.ceil(requests / 3) });
  const result = await load({ ...plan, ...bounds, requests });
  return { rps: result.rps, p50_ms: result.p50Ms, p95_ms: result.p95Ms, rss_mb: server.rssBytes() / 1e6 };
}

async function startTarget(variant: Variant, upstream: Server): Promise<Target> {
  const completion = (index: number) => completionBody(promptOf(index));
  if (variant === "query") {
    const server = await startGateway(upstream);
    const headers = { authorization: `Bearer ${await openRun(server)}` };
    return { server, plan: { url: `${server.url}/query`, headers, body: queryBody } };
  }
  if (variant === "portkey") {
    const server = await startPortkey();
    const headers = {
      authorization: "Bearer bench",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${upstream.url}/v1`,
    };
    return { server, plan: { url: `${server.url}/v1/chat/completions`, headers, body: completion } };
  }
  const server = { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  const headers = { authorization: "Bearer bench" };
  return { server, plan: { url: `${upstream.url}/v1/chat/completions`, headers, body: completion } };
}

function queryBody(index: number): string {
  return JSON.stringify({ model: `up/${MODEL}`, prompt: promptOf(index) });
}
