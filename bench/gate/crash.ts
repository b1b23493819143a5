/**
 * The gate dies twenty times under load: alone, as its object aborts, and with everything, as the gateway is killed (SIGKILL) and
 * started on its disk. The provider counts what reaches it.
 */
import { z } from "zod";
import { GATE_TTL_MS } from "../../src/limits.ts";
import { presentVersion } from "../../test/support/gateway.ts";
import { steady } from "../../test/support/limited/latency.ts";
import { OpenAiLimiter } from "../../test/support/limited/openai-limiter.ts";
import { inFlightLimiter } from "../../test/support/limited/other-limiters.ts";
import type { LimitedCall } from "../../test/support/limited/server.ts";
import { atMost, exact, plain, type Part, type Row } from "../parts/row.ts";
import { look, openBatch, prompts, startGateWorld, type GateWorld, type WorldOptions } from "./world.ts";

const CALL_MS = 100;
/** Calls at once of the provider that only answers 429, and calls per minute of the one that has headers. */
const IN_FLIGHT = 12;
const PER_MINUTE = 1_200;
const FILL = 0.02;
/** What the gate learns before it dies first, and between two deaths; a gateway that is started again needs longer. */
const CONVERGED_MS = 20_000;
const APART_MS = { gate: 1_500, everything: 8_000 } as const;
/** A call that is lost with everything was an attempt, and those that were in flight go first again: the next death meets them. */
const ATTEMPTS = 10;
/**
 * The search for a width goes beyond it, the more the busier the machine is; deaths may add as much as in the simulation of
 * test/unit/gate.
 */
const PEAK_TIMES_MAX = 1.3;
const REFUSED_MAX = 0.05;
/** Permits are back after their TTL; then comes the next exchange, and after a SIGKILL the start of everything. */
const BACK_MS_MAX = GATE_TTL_MS + 1_000;
const LOOK_MS = 10;

type Victim = keyof typeof APART_MS;

/** `deaths`: how often each gate dies. */
export async function measureCrash(deaths: number): Promise<Part> {
  const rows: Row[] = [];
  const faults: string[] = [];
  for (const victim of ["gate", "everything"] as const) {
    const limiter = new OpenAiLimiter({ requestsPerMinute: PER_MINUTE, tokensPerMinute: 1e9, fill: FILL });
    // Both at once: they have gateways and providers of their own, and mostly wait.
    const [ofWidth, ofRate] = await Promise.all([
      dies(victim, deaths, { limiter: inFlightLimiter(IN_FLIGHT), latency: steady(CALL_MS) }),
      dies(victim, deaths, { limiter, latency: steady(CALL_MS) }),
    ]);
    rows.push(...commonRows(`${victim}, width`, deaths, ofWidth), ...widthRows(`${victim}, width`, ofWidth));
    rows.push(...commonRows(`${victim}, rate`, deaths, ofRate), ...rateRows(`${victim}, rate`, ofRate));
    for (const { fault } of [ofWidth, ofRate]) if (fault !== null) faults.push(fault);
  }
  return { rows, faults };
}

type Seen = {
  calls: readonly LimitedCall[];
  /** On the clock of `calls`: when the gate died, when the gateway listened again, and when the load ended. */
  deaths: readonly { atMs: number; againMs: number }[];
  firstMs: number;
  endMs: number;
  /** Time and calls at the provider, seen every few ms. */
  looks: readonly { atMs: number; inFlight: number }[];
  /** Instances of the gate that were met. */
  instances: number;
  completed: number;
  failed: number;
  fault: string | null;
};

/** Two batches, while the gate dies again and again. */
async function dies(victim: Victim, times: number, options: WorldOptions): Promise<Seen> {
  const version = await presentVersion("test/support/fixtures/aborting-worker.ts");
  await using world = await startGateWorld({ ...options, version, upstream: { max_attempts: ATTEMPTS } });
  const startedMs = performance.now();
  const now = (): number => performance.now() - startedMs;
  // The provider's clock began a moment earlier.
  const aheadMs = world.provider.clockMs() - now();
  const totalMs = CONVERGED_MS + times * APART_MS[victim] + 2 * GATE_TTL_MS;
  const runs = await Promise.all([world.openRun({ max_parallel: 32 }), world.openRun({ max_parallel: 32 })]);
  const slots = Math.ceil((totalMs / CALL_MS) * IN_FLIGHT);
  const ids = await Promise.all(
    runs.map(({ token }, at) => openBatch(world, token, { prompts: prompts(`${at}`, slots) })),
  );
  const looks: { atMs: number; inFlight: number }[] = [];
  const looking = setInterval(
    () => looks.push({ atMs: now() + aheadMs, inFlight: world.provider.inFlight() }),
    LOOK_MS,
  );
  await sleep(CONVERGED_MS);
  const deaths: { atMs: number; againMs: number }[] = [];
  const epochs = new Set<number>();
  for (let death = 0; death < times; death += 1) {
    const atMs = now() + aheadMs;
    if (victim === "gate") epochs.add(await abortGate(world));
    else await world.restart();
    deaths.push({ atMs, againMs: now() + aheadMs });
    // A client that looks at its batch wakes its run.
    await Promise.all(runs.map(({ token }, at) => look(world, token, ids[at] ?? "")));
    await sleep(APART_MS[victim]);
  }
  await sleep(2 * GATE_TTL_MS);
  clearInterval(looking);
  const ended = await Promise.all(runs.map(({ token }, at) => look(world, token, ids[at] ?? "")));
  const countOf = (name: string): number => ended.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  const calls = world.provider.calls.map((call) => ({ ...call }));
  return {
    calls,
    deaths,
    firstMs: calls[0]?.atMs ?? 0,
    endMs: now() + aheadMs,
    looks,
    instances: victim === "gate" ? epochs.size : deaths.length,
    completed: countOf("completed"),
    failed: countOf("failed"),
    fault: /uncaught|a turn failed/i.test(world.gateway.output()) ? `${victim}: ${world.gateway.output()}` : null,
  };
}

/** Ends the gate's object. Returns the number of the instance that died. */
async function abortGate({ gateway }: GateWorld): Promise<number> {
  const answer = await gateway.fetch("/__abort/up", { method: "POST" });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the gate did not abort: ${text}`);
  return z.object({ epoch: z.number() }).parse(JSON.parse(text)).epoch;
}

function commonRows(name: string, died: number, seen: Seen): Row[] {
  const { instances, completed, failed, deaths, calls, endMs } = seen;
  const admitted = calls.filter(({ status }) => status === 200).map(({ atMs }) => atMs);
  const pauses = deaths.map(({ againMs }, at) => longestPause(admitted, againMs, deaths[at + 1]?.atMs ?? endMs));
  return [
    exact(`${name}: instances that died`, `${instances}`, `= ${died}`, instances === died),
    exact(`${name}: slots that failed`, `${failed} of ${failed + completed}`, "= 0", failed === 0 && completed > 0),
    atMost(`${name}: longest time without a call after a death`, Math.max(...pauses), BACK_MS_MAX, " ms"),
  ];
}

function widthRows(name: string, { calls, deaths, looks, endMs, firstMs }: Seen): Row[] {
  const fromMs = firstMs + CONVERGED_MS - 1_000;
  const before = calls.filter(({ atMs }) => atMs >= firstMs + CONVERGED_MS / 2 && atMs < fromMs);
  const after = calls.filter(({ atMs }) => atMs >= fromMs);
  const backMs = deaths.map(({ againMs }, at) =>
    longestBelow(looks, IN_FLIGHT / 2, againMs, deaths[at + 1]?.atMs ?? endMs),
  );
  return [
    atMost(
      `${name}: most calls at once, those refused among them, times those before the first death`,
      peakOf(after) / peakOf(before),
      PEAK_TIMES_MAX,
    ),
    plain(`${name}: most calls at once, with deaths and before`, `${peakOf(after)}, ${peakOf(before)}`),
    atMost(`${name}: refused calls per call`, refusedShare(after), Math.max(REFUSED_MAX, refusedShare(before))),
    atMost(`${name}: longest time below half of the width after a death`, Math.max(...backMs), BACK_MS_MAX, " ms"),
  ];
}

function rateRows(name: string, { calls, firstMs, endMs }: Seen): Row[] {
  const counted = calls.filter(({ atMs }) => atMs >= firstMs + 1_000);
  const seconds = (endMs - firstMs - 1_000) / 1_000;
  const refused = counted.filter(({ status }) => status !== 200).length;
  return [
    atMost(`${name}: refused calls per call`, refusedShare(counted), REFUSED_MAX),
    plain(`${name}: most calls in 10 s, times the limit`, (mostWithin(counted, 10_000) / (PER_MINUTE / 6)).toFixed(2)),
    plain(
      `${name}: share of the limit that was used`,
      ((counted.length - refused) / seconds / (PER_MINUTE / 60)).toFixed(2),
    ),
  ];
}

/** Most calls at once at a provider that would refuse none: those that it refused count for the time of a call. */
function peakOf(calls: readonly LimitedCall[]): number {
  const ends = calls.map((call) => ({
    from: call.atMs,
    to: call.status === 200 ? (call.answeredMs ?? call.atMs) : call.atMs + CALL_MS,
  }));
  return Math.max(0, ...ends.map(({ from }) => ends.filter((other) => other.from <= from && from < other.to).length));
}

function refusedShare(calls: readonly LimitedCall[]): number {
  return calls.filter(({ status }) => status !== 200).length / Math.max(1, calls.length);
}

function mostWithin(calls: readonly LimitedCall[], ms: number): number {
  return Math.max(
    0,
    ...calls.map(({ atMs: from }) => calls.filter(({ atMs }) => atMs >= from && atMs < from + ms).length),
  );
}

function longestPause(timesMs: readonly number[], fromMs: number, toMs: number): number {
  const within = [fromMs, ...timesMs.filter((atMs) => atMs > fromMs && atMs < toMs), toMs];
  return Math.max(...within.map((atMs, at) => atMs - (within[at - 1] ?? atMs)));
}

function longestBelow(looks: Seen["looks"], least: number, fromMs: number, toMs: number): number {
  const enough = looks.filter(({ inFlight }) => inFlight >= least).map(({ atMs }) => atMs);
  return longestPause(enough, fromMs, toMs);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
