/** One batch whose client disconnects in the middle: what came of its slots, and how long nothing was sent. */
import { audit, type Round } from "../kill/audit.ts";
import { Client } from "../kill/client.ts";
import { Looks } from "../kill/looks.ts";
import type { RunPlan } from "../kill/plan.ts";
import type { Send } from "../kill/provider.ts";
import type { KillWorld } from "../kill/world.ts";

export type HandOver = {
  round: Round;
  /** Share of slots that were answered when the client left; null if the batch had ended before. */
  leftAt: number | null;
  /** Longest time without a call from then until the last, ms; null if no call was left to send. */
  pauseMs: number | null;
};

/** Longest that a batch may take, ms. */
const END_MS_MAX = 120_000;

/** @param url Where the client connects: a relay that reports its disconnect to the gateway. */
export async function handOver(world: KillWorld, url: string, plan: RunPlan): Promise<HandOver> {
  const run = await world.openRun({ max_parallel: plan.maxParallel, budget: { usd: 10 } });
  const client = new Client(plan, run.token, { ...world, url });
  await client.follow(AbortSignal.timeout(END_MS_MAX));
  const { leftAtMs } = client;
  const sends = world.provider.sendsOf(plan.name);
  const round = await audit(world, { client, runId: run.id, looks: new Looks(world.url, client, run.id), hits: [] });
  if (leftAtMs === null) return { round, leftAt: null, pauseMs: null };
  const answered = sends.flat().filter(({ answeredMs }) => answeredMs !== null && answeredMs <= leftAtMs).length;
  return { round, leftAt: answered / plan.slots, pauseMs: pauseAfter(leftAtMs, sends) };
}

function pauseAfter(leftAtMs: number, sends: readonly (readonly Send[])[]): number | null {
  const times = sends.flatMap((slot) => slot.map(({ atMs }) => atMs)).filter((atMs) => atMs > leftAtMs);
  if (times.length === 0) return null;
  const sorted = [leftAtMs, ...times.toSorted((a, b) => a - b)];
  return Math.max(...sorted.slice(1).map((atMs, place) => atMs - (sorted[place] ?? atMs)));
}
