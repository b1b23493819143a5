/** A batch of 10,000 beside single calls, and two equal runs, on one limited key. */
import { steady } from "../../test/support/limited/latency.ts";
import { OpenAiLimiter } from "../../test/support/limited/openai-limiter.ts";
import { atMost, exact, plain, type Part } from "../parts/row.ts";
import { percentile } from "../stats.ts";
import { openBatch, prompts, query, startGateWorld } from "./world.ts";

const PER_MINUTE = 3_000;
const CALL_MS = 300;
const APART_MAX = 0.05;
const MEASURED_MS = 15_000;
const BETWEEN_MS = 250;

const limiter = (): OpenAiLimiter =>
  new OpenAiLimiter({ requestsPerMinute: PER_MINUTE, tokensPerMinute: 1e9, fill: 0.02 });

export async function measureFairness(slots: number): Promise<Part> {
  return { rows: [...(await beside(slots)), ...(await equal(slots))], faults: [] };
}

/** A single call may wait for one call's time; that of its own comes on top. */
async function beside(slots: number): Promise<Part["rows"]> {
  await using world = await startGateWorld({ limiter: limiter(), latency: steady(CALL_MS) });
  const [large, single] = await Promise.all([world.openRun(), world.openRun()]);
  await openBatch(world, large.token, { prompts: prompts("large", slots) });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const asked: Promise<{ ms: number; status: number }>[] = [];
  for (let at = 0; at * BETWEEN_MS < MEASURED_MS; at += 1) {
    asked.push(query(world, single.token, `single ${at}`));
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
  }
  const queries = await Promise.all(asked);
  const waits = queries.map(({ ms }) => ms - CALL_MS);
  return [
    exact(
      "/query beside a batch: answered",
      `${queries.filter(({ status }) => status === 200).length} of ${queries.length}`,
      "all",
      queries.every(({ status }) => status === 200),
    ),
    atMost("/query beside a batch: wait, p95", percentile(waits, 0.95), CALL_MS, " ms"),
    plain("/query beside a batch: wait, median", `${percentile(waits, 0.5).toFixed(0)} ms`),
  ];
}

async function equal(slots: number): Promise<Part["rows"]> {
  await using world = await startGateWorld({ limiter: limiter(), latency: steady(CALL_MS) });
  const runs = await Promise.all([world.openRun(), world.openRun()]);
  await Promise.all(runs.map(({ token }, at) => openBatch(world, token, { prompts: prompts(`r${at}`, slots) })));
  await new Promise((resolve) => setTimeout(resolve, MEASURED_MS + 3_000));
  const calls = world.provider.admitted();
  const fromMs = (calls[0]?.atMs ?? 0) + 3_000;
  const of = (name: string): number =>
    calls.filter(({ atMs, prompt }) => atMs >= fromMs && prompt.startsWith(name)).length;
  const [first, second] = [of("r0"), of("r1")];
  const apart = Math.abs(first - second) / Math.max(1, (first + second) / 2);
  return [
    plain("two equal runs: calls of each", `${first}, ${second}`),
    atMost("two equal runs: apart", apart, APART_MAX),
  ];
}
