/** Measures one fan-out of one variant in fresh processes: warm-up, then repeats, whose median is the round's figure. */
import { sendBare, sendBatch, sendDirect } from "./load/fan-outs.ts";
import type { FanOut } from "./load/fan-outs.ts";
import { openRun, startBare, startGateway, startUpstream, takeUpstreamStats } from "./servers/servers.ts";
import type { Server } from "./servers/process.ts";
import { median } from "./stats.ts";
import type { Figures } from "./suite.ts";

/**
 * `batch` uses the run of the warm-up each time, like a program that sends one batch after another;
 * `batch-new-run` opens a new run, so new objects, for each. `batch-baseline` is `batch` of another checkout.
 */
export type FanOutVariant = "direct" | "bare" | "batch" | "batch-new-run" | "batch-baseline";

export type FanOutPlan = {
  variant: FanOutVariant;
  fanOut: FanOut;
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
  if (requests !== plan.fanOut.n * plan.repeats)
    throw new Error(`${plan.variant}: ${plan.fanOut.n * plan.repeats} calls reached the upstream as ${requests}`);
  const wallMs = median(wallsMs);
  return { wall_ms: wallMs, calls_per_s: (plan.fanOut.n / wallMs) * 1_000, peak, rss_mb: server.rssBytes() / 1e6 };
}

async function startVariant({ variant, baseline }: FanOutPlan, upstream: Server): Promise<Server> {
  if (variant === "bare") return await startBare(upstream);
  if (variant === "direct") return { ...upstream, [Symbol.asyncDispose]: () => Promise.resolve() };
  return await startGateway(upstream, { root: variant === "batch-baseline" ? baseline : undefined });
}

async function askerOf(plan: FanOutPlan, upstream: Server, server: Server): Promise<() => Promise<number>> {
  const { variant, fanOut } = plan;
  if (variant === "direct") return () => sendDirect(upstream, fanOut);
  if (variant === "bare") return () => sendBare(server, fanOut);
  if (variant === "batch-new-run") return async () => await sendBatch(server, await openRun(server), fanOut);
  const token = await openRun(server);
  return () => sendBatch(server, token, fanOut);
}
