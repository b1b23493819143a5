/**
 * `GET /metrics`: what all runs have used, for Prometheus. The sums are in the gates; a read visits the runs that may have
 * counted more since the last one, so that a call that was answered is in the next reply.
 */
import type { Context } from "hono";
import { gateOf } from "../../objects/address.ts";
import type { AppEnv } from "../context.ts";
import { addSheet, type MeterSheet } from "../../gate/meter.ts";
import { METERED_MODELS_MAX, METRICS_RUNS_MAX } from "../../limits.ts";
import { exposition, OPENMETRICS_TYPE } from "../../log/metrics/exposition.ts";
import { metricFamilies, type Measured } from "../../log/metrics/metrics.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { settled } from "../../objects/clients/settlements.ts";
import type { Handlers } from "../handler.ts";
import { keysOf } from "./gate-keys.ts";
import { readGates, type NamedGate } from "./read-gates.ts";

export const metricsHandlers = {
  "GET /metrics": async (c) => {
    const text = exposition(metricFamilies(await measured(c)));
    return c.body(text, 200, { "content-type": OPENMETRICS_TYPE });
  },
} satisfies Partial<Handlers>;

async function measured(c: Context<AppEnv>): Promise<Measured> {
  const named = c
    .get("config")
    .upstreams.flatMap((upstream) => keysOf(upstream).map((each) => ({ name: upstream.name, ...each })));
  const look = async ({ name: upstream, key, gate }: NamedGate) => {
    return { upstream, key, gate, ...(await gateOf(c.env, gate).metering()) };
  };
  const log = (message: string, error: unknown): void => console.error(message, error);
  const { read: gates, unread: unreadGates } = await readGates(named, look, log);
  const unread = [...new Set(gates.flatMap((gate) => gate.unread))];
  const visited = unread.slice(-METRICS_RUNS_MAX);
  const counted = await countedBy(c, visited);
  const shown = gates.map(async ({ upstream, key, gate, status, sheet }) => {
    const more = counted[gate];
    if (more === undefined) return { upstream, key, status, sheet };
    const all = await gateOf(c.env, gate)
      .count(more)
      .catch((error: unknown) => {
        // This reply has what the runs have given; the gate has missed it.
        log(`the gate ${gate} did not count`, error);
        addSheet(sheet, more, METERED_MODELS_MAX);
        return sheet;
      });
    return { upstream, key, status, sheet: all };
  });
  const unreadRuns = unread.length - visited.length;
  return { gates: await Promise.all(shown), unreadRuns, unreadGates: unreadGates.length };
}

/** What these runs have counted and not reported, by gate. One that is gone has reported. */
async function countedBy(c: Context<AppEnv>, runIds: readonly string[]): Promise<Record<string, MeterSheet>> {
  const sheets: Record<string, MeterSheet> = {};
  const takes = runIds.map(async (runId) => {
    await settled(c.env, runId);
    return await new RunCaller(c.env, runId).callOnce<Record<string, MeterSheet>>((run) => run.takeMeters());
  });
  for (const taken of await Promise.allSettled(takes)) {
    if (taken.status === "rejected") continue;
    for (const [gate, sheet] of Object.entries(taken.value)) addSheet((sheets[gate] ??= {}), sheet, METERED_MODELS_MAX);
  }
  return sheets;
}
