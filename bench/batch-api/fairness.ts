/** Fairness: how much longer a call waits because a batch of the same run has all its permits. */
import { setTimeout as sleep } from "node:timers/promises";
import { draw } from "../budget/tariff.ts";
import { promptOf } from "../load/prompts.ts";
import { percentile } from "../stats.ts";
import { send } from "../../test/support/gateway.ts";
import { audit } from "./audit.ts";
import { create, endOf, upload, writeInput } from "./batch.ts";
import { atMost, exact, plain, type Part } from "../parts/row.ts";
import { startWorld, statsOf, type BatchRun } from "./world.ts";

export type FairnessPlan = { lines: number; queries: number };

const LATENCY_MS = 200;
const WIDTH = 32;
const LINE_BYTES = 400;
const BATCH_MS_MAX = 600_000;

/** Latencies of queries one after the other, each a random part of the upstream's latency after the last, ms. */
async function ask({ url, token }: BatchRun, queries: number): Promise<number[]> {
  const latenciesMs: number[] = [];
  for (let query = 0; query < queries; query++) {
    await sleep(LATENCY_MS * draw("fairness", query));
    const sentMs = performance.now();
    const answered = await send(`${url}/query`, { token, json: { prompt: promptOf(query) } });
    const text = await answered.text();
    if (answered.status !== 200) throw new Error(`a query was answered ${answered.status}: ${text}`);
    latenciesMs.push(performance.now() - sentMs);
  }
  return latenciesMs;
}

/** Asks in a run that does nothing else, then in one whose batch fills it. */
export async function measureFairness(plan: FairnessPlan, report: (text: string) => void): Promise<Part> {
  const { lines, queries } = plan;
  await using world = await startWorld({ latencyMs: LATENCY_MS });
  await using input = await writeInput(lines, LINE_BYTES);
  const idle = await ask(await world.openRun(WIDTH), queries);
  const run = await world.openRun(WIDTH);
  const created = await create(run, await upload(run, input));
  while ((await statsOf(world.provider)).inFlight < WIDTH) await sleep(LATENCY_MS / 10);
  const startedMs = performance.now();
  const busy = await ask(run, queries);
  const { lines: meanwhile, peak } = await statsOf(world.provider);
  const seconds = (performance.now() - startedMs) / 1_000;
  const still = (await run.openai.batches.retrieve(created.id)).status;
  const batch = await endOf(run, created, BATCH_MS_MAX);
  const { faults } = await audit(run, batch, lines);
  const added = (share: number) => percentile(busy, share) - percentile(idle, share);
  report(`fairness: median ${percentile(busy, 0.5).toFixed(0)} ms, idle ${percentile(idle, 0.5).toFixed(0)} ms`);
  const rows = [
    atMost(`fairness: added wait of a /query beside a batch of ${lines}, median`, added(0.5), LATENCY_MS, " ms"),
    atMost("fairness: the same, p95", added(0.95), LATENCY_MS, " ms"),
    plain(
      "fairness: queries that waited longer than that",
      `${busy.filter((ms) => ms > percentile(idle, 0.5) + LATENCY_MS).length} of ${queries}`,
    ),
    plain("fairness: latency in an idle run, median and p95", `${both(idle)}`),
    plain("fairness: latency beside the batch, median, p95, most", `${both(busy)}, ${Math.max(...busy).toFixed(0)} ms`),
    exact(
      "fairness: the batch was still on its way after the last query",
      still,
      "= in_progress",
      still === "in_progress",
    ),
    plain(
      `fairness: lines sent while ${queries} queries came`,
      `${meanwhile} in ${seconds.toFixed(1)} s, ${peak} at once`,
    ),
    exact("fairness: faults in the files", String(faults.length), "= 0", faults.length === 0),
  ];
  return { rows, faults };
}

function both(latenciesMs: readonly number[]): string {
  return `${percentile(latenciesMs, 0.5).toFixed(0)} ms, ${percentile(latenciesMs, 0.95).toFixed(0)} ms`;
}
