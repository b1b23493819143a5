/** Single calls on an instant upstream: our `/query` and `/v1` with their durable ledger, the least of such gateways, Portkey's, and none. */
import { load } from "../load/load.ts";
import type { LoadPlan } from "../load/load.ts";
import type { Server } from "../servers/process.ts";
import { completionBody, MODEL, promptOf } from "../load/prompts.ts";
import { openRun, startFloor, startGateway, startPortkey, startUpstream } from "../servers/servers.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];

/** `query-baseline` is `query` of another checkout; the strict ones have no leased credit. */
type Variant = "direct" | "floor" | "portkey" | "query" | "chat" | "query-strict" | "chat-strict" | "query-baseline";

/** The gateway's variants that are compared with Portkey's. */
const OURS = ["query", "chat", "query-strict", "chat-strict"] as const;

type Target = Pick<LoadPlan, "url" | "headers" | "body">;

export function querySuite({ quick, baseline }: SuiteOptions): Suite {
  const variants: Variant[] = ["direct", "floor", "portkey", ...OURS];
  if (baseline !== undefined) variants.push("query-baseline");
  return {
    name: "query",
    title: "single calls on an instant upstream, requests per second and added p50",
    cells: CONCURRENCIES.flatMap((concurrency) =>
      variants.map((variant) => ({
        variant,
        at: concurrency,
        measure: () => measure({ variant, concurrency, requests: quick ? 1_000 : 3_000, baseline }),
      })),
    ),
    table: (of) =>
      CONCURRENCIES.map((c) => {
        const addedMs = (variant: Variant) => of(variant, c, "p50_ms") - of("direct", c, "p50_ms");
        const row: Record<string, string> = { concurrency: String(c) };
        for (const variant of variants) row[`${variant} rps`] = of(variant, c, "rps").toFixed(0);
        for (const variant of OURS)
          row[`${variant} ÷ portkey`] = against(
            of(variant, c, "rps") / of("portkey", c, "rps"),
            ">=",
            targetOf(variant, c),
          );
        for (const variant of ["query", "chat"] as const)
          row[`${variant} ÷ floor`] = (of(variant, c, "rps") / of("floor", c, "rps")).toFixed(2);
        if (baseline !== undefined)
          row["query ÷ baseline"] = (of("query", c, "rps") / of("query-baseline", c, "rps")).toFixed(2);
        row["added p50 ms, portkey"] = addedMs("portkey").toFixed(2);
        for (const variant of ["query", "chat"] as const) {
          const most = Number(addedMs("portkey").toFixed(2));
          row[`added p50 ms, ${variant}`] =
            c === 1 ? against(addedMs(variant), "<=", most) : addedMs(variant).toFixed(2);
        }
        row["p95 ms, portkey"] = of("portkey", c, "p95_ms").toFixed(1);
        row["p95 ms, query"] = of("query", c, "p95_ms").toFixed(1);
        return row;
      }),
  };
}

type Plan = { variant: Variant; concurrency: number; requests: number; baseline: string | undefined };

/** A third of the requests warms the server up; both parts end after 20 s at the latest. */
async function measure({ variant, concurrency, requests, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstream();
  await using server = await startVariant(variant, upstream, baseline);
  const target = await requestsOf(variant, upstream, server);
  const bounds = { concurrency, msMax: 20_000 };
  await load({ ...target, ...bounds, requests: Math.ceil(requests / 3) });
  const result = await load({ ...target, ...bounds, requests });
  return { rps: result.rps, p50_ms: result.p50Ms, p95_ms: result.p95Ms, rss_mb: server.rssBytes() / 1e6 };
}

async function startVariant(variant: Variant, upstream: Server, baseline: string | undefined): Promise<Server> {
  if (variant === "direct") return { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (variant === "floor") return await startFloor(upstream, "shared");
  if (variant === "portkey") return await startPortkey();
  const leasedCredit = variant === "query-strict" || variant === "chat-strict" ? "off" : "on";
  return await startGateway(upstream, { root: variant === "query-baseline" ? baseline : undefined, leasedCredit });
}

/** The least ratio to Portkey's requests per second at each concurrency. */
const RATIOS: Record<(typeof OURS)[number], readonly number[]> = {
  query: [1.1, 1.5, 2],
  "query-strict": [0.9, 1.2, 2],
  chat: [1, 1.3, 1.6],
  "chat-strict": [1, 1.3, 1.6],
};

function targetOf(variant: (typeof OURS)[number], concurrency: number): number {
  return RATIOS[variant][CONCURRENCIES.indexOf(concurrency)] ?? Number.NaN;
}

async function requestsOf(variant: Variant, upstream: Server, server: Server): Promise<Target> {
  if (variant.startsWith("query")) return queryTarget(server, await openRun(server));
  if (variant.startsWith("chat")) return chatTarget(server, await openRun(server));
  const headers = { authorization: "Bearer bench" };
  const portkey = { "x-portkey-provider": "openai", "x-portkey-custom-host": `${upstream.url}/v1` };
  return {
    url: `${server.url}/v1/chat/completions`,
    headers: variant === "portkey" ? { ...headers, ...portkey } : headers,
    body: (index) => completionBody(promptOf(index)),
  };
}

/** `POST /v1/chat/completions` under the run of `token`. */
export function chatTarget(gateway: Server, token: string): Target {
  return {
    url: `${gateway.url}/v1/chat/completions`,
    headers: { authorization: `Bearer ${token}` },
    body: (index) => completionBody(promptOf(index)),
  };
}

/** `POST /query` under the run of `token`. */
export function queryTarget(gateway: Server, token: string): Target {
  return {
    url: `${gateway.url}/query`,
    headers: { authorization: `Bearer ${token}` },
    body: (index) => JSON.stringify({ model: `up/${MODEL}`, prompt: promptOf(index) }),
  };
}
