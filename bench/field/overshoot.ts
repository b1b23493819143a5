/** 1,000 calls over a budget that covers a tenth of them: what the upstream bills beyond it. */
import { completionBody, MODEL, promptOf } from "../load/prompts.ts";
import { isPeer, PEERS, type PeerName } from "../peers/table.ts";
import { openRun, startGateway, takeUpstreamStats } from "../servers/servers.ts";
import type { Server } from "../servers/process.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { cellOf, startUpstreamOf } from "./contenders.ts";
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

type Variant = OwnVariant | PeerName;
type OwnVariant = "chat" | "batch";

const OWN_NAMES: Record<OwnVariant, string> = {
  chat: "fanout, a `POST /v1/chat/completions` each",
  batch: "fanout, one `POST /batch`",
};

function nameOf(variant: Variant): string {
  return isPeer(variant) ? `${PEERS[variant].title}, a ${PEERS[variant].budget} budget` : OWN_NAMES[variant];
}

export function overshootSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = ["chat", "batch", ...peers.filter((name) => PEERS[name].budget !== "none")];
  const widths = quick ? [64] : AT_ONCE;
  return {
    name: "overshoot",
    isCount: true,
    title: `${CALLS} calls over a budget of $${BUDGET_USD}, what the upstream bills`,
    about:
      `${CALLS.toLocaleString("en")} calls of $${CALL_USD.toFixed(5)} each, 16, 64 and all at once, over a budget of $${BUDGET_USD} on an upstream that takes ${LATENCY_MS} ms. ` +
      `The bill is the upstream's own count of calls times their price. The budget covers ${CALLS_COVERED} calls: fewer answers are calls refused although ` +
      "the money sufficed. A soft budget compares what was spent before a call, a hard one reserves before a call. LiteLLM's is that of a " +
      "deployment, which it keeps without a database; its budgets of keys need one and were not measured.",
    cells: variants.map((variant) => ({ ...cellOf(variant, 0), measure: () => measure(variant, widths) })),
    table: (of) =>
      variants.map((variant) => {
        const row: Record<string, string> = { gateway: nameOf(variant) };
        for (const width of widths) {
          const bill = of(variant, 0, `bill_usd@${width}`);
          const beyond = Math.max(0, (bill / BUDGET_USD - 1) * 100);
          row[`${width} at once: bill`] = `$${bill.toFixed(4)}`;
          row[`${width} at once: beyond the budget`] = `${beyond.toFixed(0)} %`;
          const short = of(variant, 0, `short@${width}`);
          row[`${width} at once: refused although the money sufficed`] = `${short} of ${CALLS_COVERED}`;
        }
        return row;
      }),
  };
}

async function measure(variant: Variant, widths: readonly number[]): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { latencyMs: LATENCY_MS, hasShortStreams: true });
  const figures: Figures = {};
  const spendAll = async (width: number, spend: () => Promise<PoolResult>): Promise<void> => {
    await takeUpstreamStats(upstream);
    const { answered } = await spend();
    const { requests } = await takeUpstreamStats(upstream);
    figures[`bill_usd@${width}`] = requests * CALL_USD;
    figures[`answered@${width}`] = answered;
    figures[`short@${width}`] = Math.max(0, CALLS_COVERED - answered);
  };
  if (isPeer(variant)) {
    const { start, model } = PEERS[variant];
    for (const width of widths) {
      await using server = await start({ upstreamUrl: upstream.url, budget: { usd: BUDGET_USD, prices: PRICES } });
      const url = `${server.url}/v1/chat/completions`;
      const plan = { url, headers: server.headers, bodies: bodies(model), concurrency: width };
      await spendAll(width, () => sendAll(plan));
    }
    return figures;
  }
  await using gateway = await startGateway(upstream, { prices: PRICES });
  for (const width of widths) {
    const token = await openRun(gateway, { usd: BUDGET_USD });
    await spendAll(width, () =>
      variant === "batch" ? asBatch(gateway, token, width) : sendAll(ofGateway(gateway, token, width)),
    );
  }
  return figures;
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
