/** 600 calls on a key with a limit of 100 a second: how many the provider refuses, and how long all take. */
import { steady } from "../../test/support/limited/latency.ts";
import { OpenAiLimiter } from "../../test/support/limited/openai-limiter.ts";
import { startLimitedServer, type LimitedServer } from "../../test/support/limited/server.ts";
import { sendBatch } from "../load/fan-outs.ts";
import { completionBody, MODEL, promptOf } from "../load/prompts.ts";
import { runGather } from "../peers/client.ts";
import { benchModel, LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import { openRun, startGateway, startPortkey } from "../servers/servers.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { sendAll, type PoolResult } from "./pool.ts";

const PER_MINUTE = 6_000;
/** Share of the limit that is left at first. */
const FILL = 0.02;
const LATENCY_MS = 50;
const WIDTH = 64;

type Variant = "batch" | "portkey" | "gather" | "litellm";

const NAMES: Record<Variant, string> = {
  batch: "fanout, one `POST /batch`",
  portkey: "Portkey, `retry.attempts` 5",
  gather: "`asyncio.gather`, OpenAI's client with its two retries",
  litellm: "LiteLLM proxy, `num_retries` 3",
};

export function rateLimitSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = [
    "batch",
    "portkey",
    ...(peers.includes("litellm") ? (["gather", "litellm"] as const) : []),
  ];
  const calls = quick ? 200 : 600;
  const idealMs = (calls / (PER_MINUTE / 60) - (FILL * PER_MINUTE) / (PER_MINUTE / 60)) * 1_000;
  return {
    name: "rate-limit",
    isCount: true,
    title: `${calls} calls on a key with ${PER_MINUTE / 60} calls a second, refused calls per answered call`,
    about:
      `${calls} calls, ${WIDTH} at a time, on a key that OpenAI's kind of limiter keeps to ${PER_MINUTE / 60} requests a second, with its headers. ` +
      "Wasted: 429s of the provider per call that it answered. Lost: calls whose client got no answer, after all retries. The ideal time " +
      "is that of the limit itself.",
    cells: variants.map((variant) => ({
      variant,
      at: 0,
      mayFail: variant === "gather" || variant === "litellm",
      measure: () => measure(variant, calls),
    })),
    table: (of) =>
      variants.map((variant) => ({
        client: NAMES[variant],
        "429s per answered call": of(variant, 0, "wasted").toFixed(2),
        lost: of(variant, 0, "lost").toFixed(0),
        "wall ÷ ideal": (of(variant, 0, "wall_ms") / idealMs).toFixed(2),
      })),
  };
}

async function measure(variant: Variant, calls: number): Promise<Figures> {
  const limiter = new OpenAiLimiter({ requestsPerMinute: PER_MINUTE, tokensPerMinute: 1e9, fill: FILL });
  const provider = await startLimitedServer(limiter, steady(LATENCY_MS));
  try {
    const { answered, wallMs } = await sendThrough(variant, provider, calls);
    const wasted = provider.rejected().length / Math.max(1, provider.admitted().length);
    return { wasted, lost: calls - answered, wall_ms: wallMs };
  } finally {
    await provider.stop();
  }
}

async function sendThrough(variant: Variant, provider: LimitedServer, calls: number): Promise<PoolResult> {
  if (variant === "gather") {
    const plan = { url: provider.baseUrl, model: MODEL, maxTokens: 16 } as const;
    return await runGather({ ...plan, calls, concurrency: WIDTH });
  }
  const upstream = { ...NO_PROCESS, url: provider.origin };
  if (variant === "batch") {
    await using gateway = await startGateway(upstream);
    const token = await openRun(gateway);
    const wallMs = await sendBatch(gateway, token, { n: calls, width: WIDTH });
    return { answered: calls, refused: 0, wallMs };
  }
  const bodies = Array.from({ length: calls }, (_, index) => completionBody(promptOf(index)));
  if (variant === "litellm") {
    await using server = await startLitellm({ models: [benchModel(provider.origin)], router: { num_retries: 3 } });
    const url = `${server.url}/v1/chat/completions`;
    return await sendAll({ url, headers: LITELLM_HEADERS, bodies, concurrency: WIDTH });
  }
  await using server = await startPortkey();
  const config = { provider: "openai", custom_host: provider.baseUrl, retry: { attempts: 5 } };
  const headers = { authorization: "Bearer bench", "x-portkey-config": JSON.stringify(config) };
  return await sendAll({ url: `${server.url}/v1/chat/completions`, headers, bodies, concurrency: WIDTH });
}

/** The provider runs in this process. */
const NO_PROCESS = {
  rssBytes: () => 0,
  cpuMs: () => 0,
  output: () => "",
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
