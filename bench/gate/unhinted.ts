/** Providers that answer 429 and nothing else: how soon the gate finds what they can take. */
import { steady } from "../../test/support/limited/latency.ts";
import { inFlightLimiter, perSecondLimiter } from "../../test/support/limited/other-limiters.ts";
import { atLeast, exact, plain, type Part } from "../parts/row.ts";
import { openBatch, prompts, startGateWorld, type WorldOptions } from "./world.ts";

const LATENCY_MS = 100;
const SHARE_MIN = 0.85;
/** It must have converged by then, and is measured for as long afterwards, s. */
const CONVERGED_S = 20;
const MEASURED_S = 10;

/** `perS`: what the provider can take. */
const CASES: readonly (WorldOptions & { name: string; perS: number })[] = [
  { name: "12 in flight", limiter: inFlightLimiter(12), latency: steady(LATENCY_MS), perS: 12_000 / LATENCY_MS },
  { name: "60 per second", limiter: perSecondLimiter(60), latency: steady(LATENCY_MS), perS: 60 },
];

export async function measureUnhinted(): Promise<Part> {
  const rows: Part["rows"] = [];
  for (const { name, perS, ...options } of CASES) {
    await using world = await startGateWorld(options);
    const runs = await Promise.all([world.openRun({ max_parallel: 128 }), world.openRun({ max_parallel: 128 })]);
    const slots = Math.ceil((CONVERGED_S + MEASURED_S) * perS);
    for (const { token } of runs) await openBatch(world, token, { prompts: prompts("p", slots) });
    await new Promise((resolve) => setTimeout(resolve, (CONVERGED_S + MEASURED_S) * 1_000));
    const { calls } = world.provider;
    const fromMs = (calls[0]?.atMs ?? 0) + CONVERGED_S * 1_000;
    const measured = calls.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + MEASURED_S * 1_000);
    const admitted = measured.filter(({ status }) => status === 200).length;
    rows.push(
      exact(`${name}: calls in the measured time`, `${measured.length}`, "> 0", measured.length > 0),
      atLeast(`${name}: share of its capacity after ${CONVERGED_S} s`, admitted / MEASURED_S / perS, SHARE_MIN),
      plain(`${name}: 429s per admitted call then`, ((measured.length - admitted) / Math.max(1, admitted)).toFixed(3)),
    );
  }
  return { rows, faults: [] };
}
