/** Streams through `POST /v1/chat/completions`, as fast as sockets take them: no gateway, Portkey's, and ours. */
import { fileURLToPath } from "node:url";
import type { LoadPlan } from "../load/load.ts";
import { freePort, startNode } from "../servers/process.ts";
import type { Server } from "../servers/process.ts";
import { promptOf } from "../load/prompts.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { loadStreams, streamBody } from "../load/stream.ts";
import { against } from "../suite.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";

const CONCURRENCIES = [1, 16, 64];
const TIMES_PORTKEY = 2;

/** `chat-baseline` is `chat` of another checkout. */
type Variant = "direct" | "portkey" | "chat" | "chat-baseline";

export function streamSuite({ quick, baseline }: SuiteOptions): Suite {
  const variants: Variant[] = ["direct", "portkey", "chat"];
  if (baseline !== undefined) variants.push("chat-baseline");
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
        const times = of("chat", c, "chunks_per_s") / of("portkey", c, "chunks_per_s");
        row["chat ÷ portkey"] = against(times, ">=", TIMES_PORTKEY);
        if (baseline !== undefined)
          row["chat ÷ baseline"] = (of("chat", c, "chunks_per_s") / of("chat-baseline", c, "chunks_per_s")).toFixed(2);
        for (const variant of variants) row[`whole stream p50 ms, ${variant}`] = of(variant, c, "p50_ms").toFixed(1);
        return row;
      }),
  };
}

type Plan = { variant: Variant; concurrency: number; streams: number; baseline: string | undefined };

/** A third of the streams warms the server up; both parts end after 20 s at the latest. */
async function measure({ variant, concurrency, streams, baseline }: Plan): Promise<Figures> {
  await using upstream = await startUpstream();
  await using server = await startVariant(variant, upstream, baseline);
  const plan = { ...(await targetOf(variant, upstream, server)), concurrency, msMax: 20_000 };
  await loadStreams({ ...plan, requests: Math.ceil(streams / 3) });
  const result = await loadStreams({ ...plan, requests: streams });
  return {
    chunks_per_s: result.chunksPerS,
    p50_ms: result.p50Ms,
    first_p50_ms: result.firstP50Ms,
    rss_mb: server.rssBytes() / 1e6,
  };
}

async function startVariant(variant: Variant, upstream: Server, baseline: string | undefined): Promise<Server> {
  if (variant === "direct") return { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (variant === "portkey") return await startStreamingPortkey();
  return await startGateway(upstream, { root: variant === "chat-baseline" ? baseline : undefined });
}

/** Started as in servers.ts, with the module that lets it stream (see portkey-fetch.ts). */
async function startStreamingPortkey(): Promise<Server> {
  const port = await freePort();
  const shim = new URL("portkey-fetch.ts", import.meta.url).href;
  const entry = fileURLToPath(import.meta.resolve("@portkey-ai/gateway/build/start-server.js"));
  const args = ["--import", shim, entry, `--port=${port}`, "--headless"];
  return await startNode(args, { NODE_ENV: "production" }, (printed) => (printed.includes(String(port)) ? port : null));
}

async function targetOf(
  variant: Variant,
  upstream: Server,
  server: Server,
): Promise<Pick<LoadPlan, "url" | "headers" | "body">> {
  const url = `${server.url}/v1/chat/completions`;
  const body = (index: number) => streamBody(promptOf(index));
  if (variant === "chat" || variant === "chat-baseline")
    return { url, body, headers: { authorization: `Bearer ${await openRun(server)}` } };
  const headers = { authorization: "Bearer bench" };
  const portkey = { "x-portkey-provider": "openai", "x-portkey-custom-host": `${upstream.url}/v1` };
  return { url, body, headers: variant === "portkey" ? { ...headers, ...portkey } : headers };
}
