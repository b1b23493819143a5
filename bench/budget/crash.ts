/** A gateway that is killed with sixty calls in flight and then left alone: who gives their money back? */
import { look } from "./watch.ts";
import { startStormWorld } from "./world.ts";

/** What was reserved before the crash and at the first read after it, nano-USD, and the time in between. */
export type Crash = { reservedBefore: number; reservedAfter: number; spentAfter: number; silentMs: number };

/**
 * The run's alarm wakes it within a lease's life of 30 s; a lease that a new process finds gets a fresh term, for its
 * executor may have outlived the run object; and a second of grace.
 */
const SILENT_MS = 61_000;
const CALLS = 60;

/** Thirty `/query` and a `/batch` of thirty hang at the upstream when the gateway dies. Calls are made once. */
export async function crash(): Promise<Crash> {
  await using world = await startStormWorld({ latencyMs: 600_000, attemptsMax: 1 });
  const run = await world.openRun({ budget: { usd: 1 }, max_parallel: CALLS });
  const prompts = Array.from({ length: CALLS / 2 }, (_, index) => `c${index}.1 hangs`);
  const calls = Promise.allSettled([
    ask(world.url, run.token, "/batch", { prompts }),
    ...prompts.map((prompt) => ask(world.url, run.token, "/query", { prompt: `q${prompt}` })),
  ]);
  for (let tries = 0; (await world.bill()).inFlight < CALLS; tries += 1) {
    if (tries === 200) throw new Error("the calls did not reach the upstream");
    await sleep(50);
  }
  const before = await look(world.url, run.token);
  await world.restart();
  await calls;
  await sleep(SILENT_MS);
  const after = await look(world.url, run.token);
  return {
    reservedBefore: before.reserved,
    reservedAfter: after.reserved,
    spentAfter: after.spent,
    silentMs: SILENT_MS,
  };
}

async function ask(url: string, token: string, path: string, body: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  await response.text();
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
