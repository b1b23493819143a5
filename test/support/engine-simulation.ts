/**
 * A batch in simulated time: the engine hands out permits, lanes of six execute, each attempt takes as long as it is
 * told to. Beside it the two schedules that a fan-out is measured against.
 */
import { settle } from "../../src/run/steps/settle.ts";
import { WAITING_FETCHES_DEFAULT } from "../../src/limits.ts";
import { alike, success, TestEngine } from "./engine.ts";

export type Workload = { latenciesMs: readonly number[]; width: number };

/** Latencies like those of language models: lognormal, `mu` and `sigma` of the logarithm of seconds. */
export function lognormalMs(
  count: number,
  { mu, sigma }: { mu: number; sigma: number },
  random: () => number,
): number[] {
  return Array.from({ length: count }, () => {
    // Box and Muller; 1 - random keeps the logarithm's argument above zero.
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Math.round(1_000 * Math.exp(mu + sigma * normal));
  });
}

/** Runs one batch through the engine. `startedAtMs`: by index in the batch. */
export function simulate({ latenciesMs, width }: Workload): { wallMs: number; startedAtMs: number[]; peak: number } {
  const engine = new TestEngine({ width });
  const group = engine.open(alike(latenciesMs.length), { concurrency: width });
  const lanes = Math.ceil(width / WAITING_FETCHES_DEFAULT);
  const running: { attemptId: string; endsAtMs: number; latencyMs: number }[] = [];
  const startedAtMs: number[] = [];
  let nowMs = 0;
  for (;;) {
    const wants = Array.from(
      { length: lanes },
      (_, lane) => WAITING_FETCHES_DEFAULT - (engine.state.shards.get(lane)?.leases.size ?? 0),
    );
    const offers = new Map([...wants.entries()].filter(([, want]) => want > 0));
    for (const { lease, index } of engine.slotsStarted(offers, nowMs)) {
      const latencyMs = latenciesMs[index] ?? 0;
      startedAtMs[index] = nowMs;
      running.push({ attemptId: lease.attemptId, endsAtMs: nowMs + latencyMs, latencyMs });
    }
    running.sort((a, b) => b.endsAtMs - a.endsAtMs);
    const next = running.pop();
    if (next === undefined) break;
    nowMs = next.endsAtMs;
    settle(engine.state, next.attemptId, success({}, next.latencyMs), nowMs);
  }
  if (!group.done) throw new Error("the batch makes no progress");
  const { wall_ms: wallMs, peak_parallel: peak } = group.metrics(nowMs);
  return { wallMs, startedAtMs, peak };
}

/**
 * Greedy list scheduling: each call in order goes to the worker that is free first. No queue in this order does better.
 */
export function greedyWallMs({ latenciesMs, width }: Workload): number {
  const freeAtMs = Array.from({ length: width }, () => 0);
  for (const latencyMs of latenciesMs) {
    const first = freeAtMs.indexOf(Math.min(...freeAtMs));
    freeAtMs[first] = (freeAtMs[first] ?? 0) + latencyMs;
  }
  return Math.max(...freeAtMs);
}

/** Chunks of `width`, each waiting for the last of the one before: what `Promise.all` in a loop does. */
export function chunkedWallMs({ latenciesMs, width }: Workload): number {
  let wallMs = 0;
  for (let from = 0; from < latenciesMs.length; from += width)
    wallMs += Math.max(...latenciesMs.slice(from, from + width));
  return wallMs;
}
