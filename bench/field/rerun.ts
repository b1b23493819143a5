/** A program of 1,000 calls that runs again, and once more after its gateway was restarted: which calls are paid again. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../../test/support/gateway.ts";
import { completionBody, MODEL, promptOf } from "../load/prompts.ts";
import { benchModel, LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import type { Server } from "../servers/process.ts";
import { startUpstream, takeUpstreamStats } from "../servers/servers.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { sendAll } from "./pool.ts";

const CALLS = 1_000;
const WIDTH = 64;

type Variant = "fanout" | "litellm" | "litellm-disk";

const NAMES: Record<Variant, string> = {
  fanout: 'fanout, `replay: "run"`, one `POST /batch`',
  litellm: "LiteLLM proxy, `cache` of the type `local`",
  "litellm-disk": "LiteLLM proxy, `cache` of the type `disk`",
};

/** The program runs three times; the gateway is restarted before the third. */
type Runs = { first: number; again: number; restarted: number };

export function rerunSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = ["fanout", ...(peers.includes("litellm") ? (["litellm", "litellm-disk"] as const) : [])];
  const calls = quick ? 200 : CALLS;
  return {
    name: "rerun",
    isCount: true,
    title: `${calls} calls again, which are paid again`,
    about:
      `A program of ${calls.toLocaleString("en")} calls that runs again, and once more after a SIGKILL and a start of its gateway: the calls that reach the ` +
      "upstream again. LiteLLM's local cache is in memory and holds 200 answers.",
    cells: variants.map((variant) => ({
      variant,
      at: 0,
      mayFail: variant !== "fanout",
      measure: () => measure(variant, calls),
    })),
    table: (of) => [
      ...variants.map((variant) => ({
        client: NAMES[variant],
        "paid again": of(variant, 0, "again").toFixed(0),
        "paid again after a restart": of(variant, 0, "restarted").toFixed(0),
        "seconds again": (of(variant, 0, "again_ms") / 1_000).toFixed(2),
      })),
      { client: "no gateway", "paid again": `${calls}`, "paid again after a restart": `${calls}`, "seconds again": "" },
    ],
  };
}

async function measure(variant: Variant, calls: number): Promise<Figures> {
  await using upstream = await startUpstream({ latencyMs: 5 });
  const wallsMs: number[] = [];
  const paid: number[] = [];
  const play = async (send: () => Promise<void>): Promise<void> => {
    await takeUpstreamStats(upstream);
    const startedMs = performance.now();
    await send();
    wallsMs.push(performance.now() - startedMs);
    paid.push((await takeUpstreamStats(upstream)).requests);
  };
  if (variant === "fanout") await playFanout(upstream, calls, play);
  else await playLitellm(upstream, calls, { play, isOnDisk: variant === "litellm-disk" });
  const [first = Number.NaN, again = Number.NaN, restarted = Number.NaN] = paid;
  if (first !== calls) throw new Error(`${variant}: ${calls} calls reached the upstream as ${first}`);
  const runs: Runs = { first, again, restarted };
  return { ...runs, again_ms: wallsMs[1] ?? Number.NaN };
}

type Play = (send: () => Promise<void>) => Promise<void>;

async function playFanout(upstream: Server, calls: number, play: Play): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-rerun-"));
  const up = {
    kind: "openai",
    base_url: `${upstream.url}/v1`,
    models: ["*"],
    prices: { "*": { input: 1, output: 1 } },
  };
  const start = () =>
    startGateway({
      vars: { ADMIN_KEY: "bench-admin-key-that-guards-nothing", UPSTREAMS: { up }, DEFAULT_MODEL: `up/${MODEL}` },
      dataDir,
    });
  const prompts = Array.from({ length: calls }, (_, index) => promptOf(index));
  let gateway = await start();
  try {
    const { token } = await gateway.openRun({ replay: "run", max_parallel: WIDTH, budget: { usd: 100 } });
    const send = (epoch: string) => async (): Promise<void> => {
      const headers = { "x-fanout-epoch": epoch };
      const answer = await gateway.fetch("/batch", { token, json: { prompts }, headers });
      const body = await answer.text();
      if (!body.includes('"status":"completed"')) throw new Error(`the batch failed: ${body.slice(0, 300)}`);
    };
    await play(send("first"));
    await play(send("again"));
    await gateway.kill();
    gateway = await start();
    await play(send("restarted"));
  } finally {
    await gateway.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function playLitellm(
  upstream: Server,
  calls: number,
  { play, isOnDisk }: { play: Play; isOnDisk: boolean },
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "fanout-bench-rerun-"));
  const onDisk = { type: "disk", disk_cache_dir: folder };
  const settings = { cache: true, cache_params: isOnDisk ? onDisk : { type: "local" } };
  const start = () => startLitellm({ models: [benchModel(upstream.url)], settings });
  const bodies = Array.from({ length: calls }, (_, index) => completionBody(promptOf(index)));
  let server = await start();
  try {
    const send = async (): Promise<void> => {
      const url = `${server.url}/v1/chat/completions`;
      const { answered } = await sendAll({ url, headers: LITELLM_HEADERS, bodies, concurrency: WIDTH });
      if (answered !== calls) throw new Error(`LiteLLM answered ${answered} of ${calls}`);
    };
    await play(send);
    await play(send);
    await server[Symbol.asyncDispose]();
    server = await start();
    await play(send);
  } finally {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  }
}
