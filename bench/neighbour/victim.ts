/** The other run: a query every 25 ms, and what its answers say of a stretch of time. */
import { Worker } from "node:worker_threads";
import { z } from "zod";
import type { Gateway } from "../../test/support/gateway.ts";
import { percentile } from "../stats.ts";

const EVERY_MS = 25;

const answer = z.object({ sentMs: z.number(), answeredMs: z.number(), status: z.number() });
type Answer = z.infer<typeof answer>;

/** Latencies of the answers to what was sent in a stretch of time, ms. `silentMs`: the longest time without any answer. */
export type Stretch = { latenciesMs: number[]; silentMs: number; failed: number };

export type Victim = {
  /** What was sent from one moment to another. Waits until all of it is answered. */
  between(fromMs: number, toMs: number): Promise<Stretch>;
  stop(): Promise<unknown>;
};

/** The clock of both threads, ms. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Opens a run and has it query from now on. */
export async function startVictim(gateway: Gateway): Promise<Victim> {
  const { token } = await gateway.openRun({ name: "neighbour", max_parallel: 64, budget: { usd: 1_000 } });
  const workerData = { url: gateway.url, token, everyMs: EVERY_MS };
  const thread = new Worker(new URL("victim-thread.ts", import.meta.url), { workerData });
  const answers: Answer[] = [];
  thread.on("message", (message) => answers.push(answer.parse(message)));
  return {
    between: async (fromMs, toMs) => {
      await until(() => answers.some(({ sentMs }) => sentMs > toMs + OUT_OF_ORDER_MS));
      return stretchOf(answers, fromMs, toMs);
    },
    stop: () => thread.terminate(),
  };
}

/** Longest wait for the answers to the last queries of a stretch, ms. */
const LAST_ANSWERS_MS = 120_000;
/** An answer to a query that was sent so much later shows that all of a stretch are answered: they have the same upstream, ms. */
const OUT_OF_ORDER_MS = 500;

async function until(holds: () => boolean): Promise<void> {
  const endMs = clockMs() + LAST_ANSWERS_MS;
  while (!holds() && clockMs() < endMs) await new Promise((resolve) => setTimeout(resolve, 50));
}

function stretchOf(answers: readonly Answer[], fromMs: number, toMs: number): Stretch {
  const sent = answers.filter(({ sentMs }) => sentMs >= fromMs && sentMs <= toMs);
  const arrivals = answers
    .map(({ answeredMs }) => answeredMs)
    .filter((atMs) => atMs > fromMs)
    .toSorted((a, b) => a - b);
  let silentMs = 0;
  let beforeMs = fromMs;
  for (const atMs of arrivals) {
    // A silence that begins after the stretch is none of its.
    if (beforeMs <= toMs) silentMs = Math.max(silentMs, atMs - beforeMs);
    beforeMs = atMs;
  }
  return {
    latenciesMs: sent.map(({ sentMs, answeredMs }) => answeredMs - sentMs),
    silentMs,
    failed: sent.filter(({ status }) => status !== 200).length,
  };
}

/** Latencies over several stretches, ms; the longest silence of them, and all failures. */
export type Summary = { p50: number; p95: number; max: number; silentMs: number; failed: number };

export function summary(stretches: readonly Stretch[]): Summary {
  const latenciesMs = stretches.flatMap((each) => each.latenciesMs);
  return {
    p50: percentile(latenciesMs, 0.5),
    p95: percentile(latenciesMs, 0.95),
    max: Math.max(...latenciesMs),
    silentMs: Math.max(...stretches.map((each) => each.silentMs)),
    failed: stretches.reduce((sum, { failed }) => sum + failed, 0),
  };
}
