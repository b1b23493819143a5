/**
 * `GET /metrics`: what all runs have used, for Prometheus. The sums are in the gates; a read visits the runs that may have
 * counted more since the last one, so that a call that was answered is in the next reply. What does not reply in time is left out.
 */
import type { Context } from "hono";
import { gateOf } from "../../objects/address.ts";
import type { AppEnv } from "../context.ts";
import type { MeterSheet } from "../../gate/meter.ts";
import type { BroughtMeter } from "../../gate/meters.ts";
import { METRICS_RUNS_MAX, METRICS_WAIT_MS } from "../../limits.ts";
import { exposition, OPENMETRICS_TYPE } from "../../log/metrics/exposition.ts";
import { metricFamilies, type Measured, type MeasuredGate } from "../../log/metrics/metrics.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { settled } from "../../objects/clients/settlements.ts";
import type { Handlers } from "../handler.ts";
import type { GateReading } from "../../objects/methods/gate-api.ts";
import { keysOf, type GateKey } from "./gate-keys.ts";

export const metricsHandlers = {
  "GET /metrics": async (c) => {
    const text = exposition(metricFamilies(await measured(c)));
    return c.body(text, 200, { "content-type": OPENMETRICS_TYPE });
  },
} satisfies Partial<Handlers>;

type ReadGate = GateKey & { upstream: string; reading: GateReading | null };

async function measured(c: Context<AppEnv>): Promise<Measured> {
  const keys = c.get("config").upstreams.flatMap((upstream) => {
    return keysOf(upstream).map((key) => ({ upstream: upstream.name, ...key }));
  });
  const most = Math.max(1, Math.floor(METRICS_RUNS_MAX / Math.max(1, keys.length)));
  const gates = await Promise.all(
    keys.map(async (key): Promise<ReadGate> => {
      return { ...key, reading: await inTime(gateOf(c.env, key.gate).readMeters(most)) };
    }),
  );
  const { brought, readRuns } = await visited(c, gates);
  const shown = gates.map(async ({ upstream, key, gate, reading }): Promise<MeasuredGate> => {
    if (reading === null) return { upstream, key, read: null };
    const meters = brought.get(gate) ?? [];
    const taken: MeterSheet | null =
      meters.length === 0 ? reading.sheet : await inTime(gateOf(c.env, gate).takeMeters(meters));
    return { upstream, key, read: taken === null ? null : { status: reading.status, sheet: taken } };
  });
  const unread = new Set(gates.flatMap(({ reading }) => reading?.unread.map(({ run }) => run) ?? []));
  const notListed = gates.reduce((sum, { reading }) => {
    return sum + (reading === null ? 0 : reading.unreadCount - reading.unread.length);
  }, 0);
  return { gates: await Promise.all(shown), unreadRuns: notListed + unread.size - readRuns };
}

/** Visits the runs that the gates have listed: their meters by gate, and how many runs have replied. */
async function visited(
  c: Context<AppEnv>,
  gates: readonly ReadGate[],
): Promise<{ brought: Map<string, BroughtMeter[]>; readRuns: number }> {
  const marksOf = new Map<string, Map<string, string>>();
  for (const { gate, reading } of gates) {
    for (const { run, mark } of reading?.unread ?? []) {
      const marks = marksOf.get(run) ?? new Map<string, string>();
      marksOf.set(run, marks.set(gate, mark));
    }
  }
  const visits = await Promise.all([...marksOf].map(([run, marks]) => inTime(metersOf(c, run, marks))));
  const brought = new Map<string, BroughtMeter[]>();
  for (const { gate, meter } of visits.flatMap((visit) => visit ?? [])) {
    const meters = brought.get(gate) ?? [];
    meters.push(meter);
    brought.set(gate, meters);
  }
  return { brought, readRuns: visits.filter((visit) => visit !== null).length };
}

/** What a run has counted at the gates that have listed it. A run that is gone has reported all of it. */
async function metersOf(
  c: Context<AppEnv>,
  run: string,
  marks: ReadonlyMap<string, string>,
): Promise<{ gate: string; meter: BroughtMeter }[]> {
  await settled(c.env, run);
  const meters = await new RunCaller(c.env, run).callOnce((stub) => stub.readMeters([...marks.keys()]));
  return [...marks].map(([gate, mark], index) => {
    const read = meters[index] ?? { run, number: 0, sheet: {}, state: "ended" as const };
    return { gate, meter: { ...read, mark } };
  });
}

/** What a request to an object returns; null = it fails, or takes too long. */
async function inTime<T>(request: PromiseLike<T>): Promise<T | null> {
  const late = scheduler.wait(METRICS_WAIT_MS).then(() => null);
  return await Promise.race([Promise.resolve(request).catch(() => null), late]);
}
