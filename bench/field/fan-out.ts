/** 1,000 calls of 200 ms, so many at a time: one `/batch`, one request to a bare Worker, or clients that send each call themselves. */
import { sendBare, sendBatch, sendDirect, type FanOut } from "../load/fan-outs.ts";
import { load } from "../load/load.ts";
import { MODEL } from "../load/prompts.ts";
import { runGather } from "../peers/client.ts";
import { isPeer, PEERS, type PeerName } from "../peers/table.ts";
import { openRun, startBare, startGateway } from "../servers/servers.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { cellOf, startContender, startUpstreamOf } from "./contenders.ts";

const CALLS = 1_000;
const LATENCY_MS = 200;
const WIDTHS = [64, 512];
const CAP_TOKENS = 16;
const WARM_UP_CALLS = 300;

type Variant = OwnVariant | PeerName;
type OwnVariant = "batch" | "bare" | "direct" | "gather" | "portkey";

const OWN_NAMES: Record<OwnVariant, string> = {
  batch: "fanout, one `POST /batch`",
  bare: "a Worker that keeps nothing, one request",
  direct: "no gateway: raw sockets",
  gather: "no gateway: `asyncio.gather`, OpenAI's client",
  portkey: "Portkey, a request each",
};

export function fanOutSuite({ quick, peers }: SuiteOptions): Suite {
  const gather: Variant[] = peers.includes("litellm") ? ["gather"] : [];
  const variants: Variant[] = ["batch", "bare", "direct", "portkey", ...peers, ...gather];
  const widths = quick ? [512] : WIDTHS;
  return {
    name: "fan-out",
    title: `${CALLS} calls of ${LATENCY_MS} ms, wall time ÷ ideal`,
    about:
      `${CALLS.toLocaleString("en")} calls on an upstream that takes ${LATENCY_MS} ms, ${WIDTHS.join(" and ")} at a time: the time until the client has all ` +
      `answers, divided by the ideal ⌈${CALLS} ÷ width⌉ × ${LATENCY_MS} ms.`,
    cells: variants.map((variant) => ({
      ...cellOf(variant, 0),
      ...(variant === "gather" ? { mayFail: true, isOnce: true } : {}),
      measure: () => measure(variant, widths),
    })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = {
          client: isPeer(variant) ? `${PEERS[variant].title}, a request each` : OWN_NAMES[variant],
        };
        for (const width of widths) {
          const ms = of(variant, 0, `wall_ms@${width}`);
          row[`width ${width}: seconds`] = (ms / 1_000).toFixed(2);
          row[`width ${width}: ÷ ideal`] = (ms / (Math.ceil(CALLS / width) * LATENCY_MS)).toFixed(2);
        }
        return row;
      }),
  };
}

async function measure(variant: Variant, widths: readonly number[]): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { latencyMs: LATENCY_MS, hasShortStreams: true });
  const figures: Figures = {};
  const each = async (send: (fanOut: FanOut) => Promise<number>, hasWarmUp = true): Promise<Figures> => {
    if (hasWarmUp) await send({ n: WARM_UP_CALLS, width: 512 });
    for (const width of widths) figures[`wall_ms@${width}`] = await send({ n: CALLS, width });
    return figures;
  };
  if (variant === "direct") return await each((fanOut) => sendDirect(upstream, fanOut));
  if (variant === "gather") {
    const plan = {
      url: `${upstream.url}/v1`,
      model: MODEL,
      calls: CALLS,
      maxTokens: CAP_TOKENS,
    } as const;
    // A process each, so nothing to warm up.
    return await each(async ({ width }) => {
      const { answered, wallMs } = await runGather({ ...plan, concurrency: width });
      if (answered !== CALLS) throw new Error(`asyncio.gather: ${answered} of ${CALLS} calls were answered`);
      return wallMs;
    }, false);
  }
  if (variant === "batch") {
    await using gateway = await startGateway(upstream);
    const token = await openRun(gateway);
    return await each((fanOut) => sendBatch(gateway, token, fanOut));
  }
  if (variant === "bare") {
    await using bare = await startBare(upstream);
    return await each((fanOut) => sendBare(bare, fanOut));
  }
  await using started = await startContender(variant, upstream);
  return await each(async ({ n, width }) => {
    const { requests, rps } = await load({ ...started.target, concurrency: width, requests: n, msMax: 120_000 });
    return (requests / rps) * 1_000;
  });
}
