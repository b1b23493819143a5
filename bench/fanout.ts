/** Measures one fan-out of one variant in fresh processes: warm-up, then repeats, whose median is the round's figure. */
import { askBare, askBatch, askDirect } from "./asks.ts";
import type { FanOut } from "./asks.ts";
import { openRun, startBare, startGateway, startUpstream, takeUpstreamStats } from "./servers.ts";
import type { Server } from "./process.ts";
import { median } from "./stats.ts";
import type { Figures } from "./suite.ts";

/**
 * `batch` asks every time in the run that it warmed up with, as a program does that asks batch after batch;
 * `batch-new-run` opens a new run, so new objects, for each. `batch-baseline` is `batch` of another checkout.
 */
export type FanOutVariant = "direct" | "bare" | "batch" | "batch-new-run" | "batch-baseline";

export type FanOutPlan = {
  variant: FanOutVariant;
  asked: FanOut;
  latencyMs: number;
  warmUps: number;
  repeats: number;
  baseline?: string | undefined;
};

/** Median wall time of the repeats, the most calls that the upstream had in flight, and the server's resident memory. */
export async function measureFanOut(plan: FanOutPlan): Promise<Figures> {
  await using upstream = await startUpstream({ latencyMs: plan.latencyMs });
  await using server = await startVariant(plan, upstream);
  const ask = await askerOf(plan, upstream, server);
  for (let turn = 0; turn < plan.warmUps; turn++) await ask();
  await takeUpstreamStats(upstream);
  const wallsMs: number[] = [];
  for (let turn = 0; turn < plan.repeats; turn++) wallsMs.push(await ask());
  const { requests, peak } = await takeUpstreamStats(upstream);
  if (requests !== plan.asked.n * plan.repeats)
    throw new Error(`${plan.variant}: ${plan.asked.n * plan.repeats} calls reached the upstream as ${requests}`);
  const wallMs = median(wallsMs);
  return { wall_ms: wallMs, calls_per_s: (plan.asked.n / wallMs) * 1_000, peak, rss_mb: server.rssBytes() / 1e6 };
}

async function startVariant({ variant, baseline }: FanOutPlan, upstream: Server): Promise<Server> {
  if (variant === "bare") return await startBare(upstream);
  if (variant === "direct") return { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  return await startGateway(upstream, { root: variant === "batch-baseline" ? baseline : undefined });
}

async function askerOf(plan: FanOutPlan, upstream: Server, server: Server): Promise<() => Promise<number>> {
  const { variant, asked } = plan;
  if (variant === "direct") return () => askDirect(upstream, asked);
  if (variant === "bare") return () => askBare(server, asked);
  if (variant === "batch-new-run") return async () => await askBatch(server, await openRun(server), asked);
  const token = await openRun(server);
  return () => askBatch(server, token, asked);
}
