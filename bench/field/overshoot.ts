/** 1,000 calls over a budget that covers a tenth of them: what the upstream bills beyond it. */
import { completionBody, MODEL, promptOf } from "../load/prompts.ts";
import { benchModel, LITELLM_HEADERS, startLitellm } from "../peers/litellm.ts";
import { openRun, startGateway, startUpstream, takeUpstreamStats } from "../servers/servers.ts";
import type { Server } from "../servers/process.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { sendAll, type PoolPlan, type PoolResult } from "./pool.ts";

const CALLS = 1_000;
const BUDGET_USD = 0.05;
const LATENCY_MS = 100;
const AT_ONCE = [16, 64, 1_000];
/** USD per million tokens. The upstream answers 12 prompt tokens and 7 of completion. */
const PRICES = { input: 10, output: 50 };
const CALL_USD = (12 * PRICES.input + 7 * PRICES.output) / 1e6;
/** Calls that the budget pays for: a refusal before them is one although the money sufficed. */
const CALLS_COVERED = Math.floor(BUDGET_USD / CALL_USD);
const CAP_TOKENS = 7;

type Variant = "chat" | "batch" | "litellm";

const NAMES: Record<Variant, string> = {
  chat: "fanout, a `POST /v1/chat/completions` each",
  batch: "fanout, one `POST /batch`",
  litellm: "LiteLLM proxy, `max_budget` of a deployment",
};

export function overshootSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = ["chat", "batch", ...(peers ? (["litellm"] as const) : [])];
  const widths = quick ? [64] : AT_ONCE;
  return {
    name: "overshoot",
    isCount: true,
    title: `${CALLS} calls over a budget of $${BUDGET_USD}, what the upstream bills`,
    about:
      `${CALLS.toLocaleString("en")} calls of $${CALL_USD.toFixed(5)} each, 16, 64 and all at once, over a budget of $${BUDGET_USD} on an upstream that takes ${LATENCY_MS} ms. ` +
      "The bill is the upstream's own count of calls times their price. LiteLLM's budget is that of a deployment, which it keeps " +
      "without a database; its budgets of keys need one and were not measured.",
    cells: variants.map((variant) => ({ variant, at: 0, measure: () => measure(variant, widths) })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = { gateway: NAMES[variant] };
        for (const width of widths) {
          const bill = of(variant, 0, `bill_usd@${width}`);
          const beyond = Math.max(0, (bill / BUDGET_USD - 1) * 100);
          row[`${width} at once: bill`] = `$${bill.toFixed(4)}`;
          row[`${width} at once: beyond the budget`] = `${beyond.toFixed(0)} %`;
          const short = Math.max(0, CALLS_COVERED - of(variant, 0, `answered@${width}`));
          row[`${width} at once: refused although the money sufficed`] = `${short} of ${CALLS_COVERED}`;
        }
        return row;
      }),
  };
}

async function measure(variant: Variant, widths: readonly number[]): Promise<Figures> {
  await using upstream = await startUpstream({ latencyMs: LATENCY_MS });
  const figures: Figures = {};
  const each = async (spend: (width: number) => Promise<PoolResult>): Promise<Figures> => {
    for (const width of widths) {
      await takeUpstreamStats(upstream);
      const { answered } = await spend(width);
      const { requests } = await takeUpstreamStats(upstream);
      figures[`bill_usd@${width}`] = requests * CALL_USD;
      figures[`answered@${width}`] = answered;
    }
    return figures;
  };
  if (variant === "litellm") {
    const cost = { input_cost_per_token: PRICES.input / 1e6, output_cost_per_token: PRICES.output / 1e6 };
    const budget = { max_budget: BUDGET_USD, budget_duration: "1d" };
    // A deployment with a budget of its own for each width.
    const models = widths.map((width) => ({
      ...benchModel(upstream.url, { ...cost, ...budget }),
      name: `${MODEL}-${width}`,
    }));
    await using server = await startLitellm({ models });
    return await each((width) => {
      const target = { url: `${server.url}/v1/chat/completions`, headers: LITELLM_HEADERS };
      return sendAll({ ...target, bodies: bodies(`${MODEL}-${width}`), concurrency: width });
    });
  }
  await using gateway = await startGateway(upstream, { prices: PRICES });
  return await each(async (width) => {
    const token = await openRun(gateway, { usd: BUDGET_USD });
    return variant === "batch" ? await asBatch(gateway, token, width) : await sendAll(ofGateway(gateway, token, width));
  });
}

function bodies(model: string): string[] {
  return Array.from({ length: CALLS }, (_, index) => {
    const body: Record<string, unknown> = JSON.parse(completionBody(promptOf(index)));
    return JSON.stringify({ ...body, model, max_tokens: CAP_TOKENS });
  });
}

function ofGateway(gateway: Server, token: string, concurrency: number): PoolPlan {
  const headers = { authorization: `Bearer ${token}` };
  return { url: `${gateway.url}/v1/chat/completions`, headers, bodies: bodies(`up/${MODEL}`), concurrency };
}

async function asBatch(gateway: Server, token: string, concurrency: number): Promise<PoolResult> {
  const prompts = Array.from({ length: CALLS }, (_, index) => promptOf(index));
  const plan = { prompts, concurrency: Math.min(512, concurrency), max_tokens: CAP_TOKENS };
  const startedMs = performance.now();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${gateway.url}/batch`, { method: "POST", headers, body: JSON.stringify(plan) });
  const { errors }: { errors: unknown[] } = JSON.parse(await response.text());
  const answered = errors.filter((error) => error === null).length;
  return { answered, refused: CALLS - answered, wallMs: performance.now() - startedMs };
}
