/** Many questions on one document at a provider that caches prompts: what it bills, against the least that it can. */
import { z } from "zod";
import {
  CACHING_PRICES,
  costOf,
  startCachingProvider,
  type CachingProvider,
} from "../../test/support/caching-provider.ts";
import { startGateway } from "../../test/support/gateway.ts";
import { LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { sendAll } from "./pool.ts";

const WIDTH = 64;
const FIRST_MS = 500;
const WHOLE_MS = 1_000;
const CHARS = 400_000;
const CHARS_PER_TOKEN = 4;
const CAP_TOKENS = 16;

type Variant = "fanout" | "marked" | "litellm";

const NAMES: Record<Variant, string> = {
  fanout: "fanout, `context` and one `POST /batch`",
  marked: "no gateway, each call marks the document",
  litellm: "LiteLLM proxy, each call marks the document",
};

const text = "Here are some of the words of a long document. ".repeat(Math.ceil(CHARS / 47)).slice(0, CHARS);
const tokens = (chars: number): number => Math.ceil(chars / CHARS_PER_TOKEN);
const question = (index: number): string => `What does it say about the subject of number ${index}?`;

export function documentSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = ["fanout", "marked", ...(peers.includes("litellm") ? (["litellm"] as const) : [])];
  const calls = quick ? 80 : 400;
  return {
    name: "document",
    isCount: true,
    title: `${calls} questions on a document of ${tokens(CHARS)} tokens, bill ÷ the least possible`,
    about:
      `${calls} questions on one document of ${tokens(CHARS).toLocaleString("en")} tokens, ${WIDTH} at a time, at a provider that caches and bills as Anthropic does: ` +
      "a write costs 1.25 times the input price, a read a tenth, and what is written can be read once the answer that writes it has " +
      "begun. The least possible bill is one write, a read for each other call, and the questions.",
    cells: variants.map((variant) => ({
      variant,
      at: 0,
      mayFail: variant === "litellm",
      measure: () => measure(variant, calls),
    })),
    table: (of) =>
      variants.map((variant) => ({
        client: NAMES[variant],
        "bill ÷ least": of(variant, 0, "bill_ratio").toFixed(2),
        bill: `$${of(variant, 0, "bill_usd").toFixed(2)}`,
        seconds: (of(variant, 0, "wall_ms") / 1_000).toFixed(1),
      })),
  };
}

async function measure(variant: Variant, calls: number): Promise<Figures> {
  const provider = await startCachingProvider({ firstMs: FIRST_MS, wholeMs: WHOLE_MS });
  try {
    const wallMs = await askAll(variant, provider, calls);
    const { usd, calls: seen } = provider.bill();
    if (seen !== calls) throw new Error(`${variant}: ${calls} calls reached the provider as ${seen}`);
    return { bill_usd: usd, bill_ratio: usd / leastUsd(calls), wall_ms: wallMs };
  } finally {
    await provider.stop();
  }
}

async function askAll(variant: Variant, provider: CachingProvider, calls: number): Promise<number> {
  if (variant === "fanout") return await askFanout(provider, calls);
  const bodies = Array.from({ length: calls }, (_, index) => markedBody(index));
  if (variant === "marked") return await sendMarked(`${provider.origin}/v1/messages`, {}, bodies);
  const params = { model: "anthropic/claude-x", api_base: provider.origin, api_key: "bench" };
  await using server = await startLitellm({ models: [{ name: "claude-x", params }] });
  return await sendMarked(`${server.url}/v1/messages`, LITELLM_HEADERS, bodies);
}

async function sendMarked(url: string, headers: Record<string, string>, bodies: readonly string[]): Promise<number> {
  const { answered, wallMs } = await sendAll({ url, headers, bodies, concurrency: WIDTH });
  if (answered !== bodies.length) throw new Error(`${url}: ${answered} of ${bodies.length} calls were answered`);
  return wallMs;
}

function markedBody(index: number): string {
  const document = { type: "text", text, cache_control: { type: "ephemeral" } };
  const content = [document, { type: "text", text: question(index) }];
  return JSON.stringify({ model: "claude-x", max_tokens: CAP_TOKENS, messages: [{ role: "user", content }] });
}

async function askFanout(provider: CachingProvider, calls: number): Promise<number> {
  const prices = { "*": CACHING_PRICES };
  const claude = { kind: "anthropic", base_url: provider.origin, api_key: "secret:KEY", prices, models: ["claude-*"] };
  const gateway = await startGateway({ vars: { UPSTREAMS: { claude }, KEY: "k", WAITING_FETCHES_MAX: "512" } });
  try {
    const { token } = await gateway.openRun({ max_parallel: WIDTH, budget: { usd: 10_000 } });
    const stored = await gateway.fetch("/contexts", { json: { text }, token });
    const { id } = z.looseObject({ id: z.string() }).parse(await stored.json());
    const prompts = Array.from({ length: calls }, (_, index) => question(index));
    const json = { context: id, prompts, model: "claude/claude-x", max_tokens: CAP_TOKENS };
    const startedMs = performance.now();
    const answer = await (await gateway.fetch("/batch", { json, token })).json();
    z.looseObject({ status: z.literal("completed") }).parse(answer);
    return performance.now() - startedMs;
  } finally {
    await gateway.stop();
  }
}

/** One write, reads, and each question. */
function leastUsd(calls: number): number {
  const document = tokens(CHARS);
  return Array.from({ length: calls }, (_, index) => {
    const input = tokens(CHARS + question(index).length) - document;
    return costOf({ input, read: index === 0 ? 0 : document, write: index === 0 ? document : 0 });
  }).reduce((sum, usd) => sum + usd, 0);
}
