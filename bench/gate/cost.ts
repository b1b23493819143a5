/**
 * What the gate costs where nothing is limited: the same source with its gates and without. Each round has a fresh process of each,
 * which take turns of a few hundred calls: whatever else the machine does slows both alike.
 */
import { presentVersion, type Version } from "../../test/support/gateway.ts";
import { steady } from "../../test/support/limited/latency.ts";
import { noLimiter } from "../../test/support/limited/other-limiters.ts";
import { atMost, plain, type Part, type Row } from "../parts/row.ts";
import { cpuMsOf } from "../servers/process.ts";
import { median } from "../stats.ts";
import { batch, prompts, query, startGateWorld, type GateWorld } from "./world.ts";

/** The gate may take this part of a call. */
const COST_MAX = 0.03;
/** Calls of one turn, and turns of each process in a round. */
const CALLS = 400;
const TURNS = 12;
const AT_ONCE = 32;

const WAYS = ["batch", "query"] as const;
type Way = (typeof WAYS)[number];

const NAMES = ["with", "without"] as const;
type Name = (typeof NAMES)[number];

/** Of all turns of a round, by one way in: time and processor time of the gateway, ms. */
type Measured = { wallMs: number; cpuMs: number };
type Round = Record<Way, Record<Name, Measured>>;

export async function measureCost(rounds: number): Promise<Part> {
  const present = await presentVersion();
  const versions = { with: present, without: withoutGates(present) };
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round += 1) measured.push(await measure(versions));
  return {
    rows: WAYS.flatMap((way) =>
      rowsOf(
        way,
        measured.map((round) => round[way]),
      ),
    ),
    faults: [],
  };
}

function rowsOf(way: Way, rounds: readonly Record<Name, Measured>[]): Row[] {
  const ratios = (figure: keyof Measured): number[] =>
    rounds.map((round) => round.with[figure] / round.without[figure]);
  const cpuUs = (name: Name): string =>
    `${((median(rounds.map((round) => round[name].cpuMs)) * 1_000) / (TURNS * CALLS)).toFixed(0)} µs`;
  return [
    atMost(`/${way}: CPU with the gate, times that without, median`, median(ratios("cpuMs")), 1 + COST_MAX),
    plain(`/${way}: CPU per call with, without`, `${cpuUs("with")}, ${cpuUs("without")}`),
    plain(`/${way}: CPU, each round`, shown(ratios("cpuMs"))),
    atMost(`/${way}: time with the gate, times that without, median`, median(ratios("wallMs")), 1 + COST_MAX),
    plain(`/${way}: time, each round`, shown(ratios("wallMs"))),
  ];
}

function shown(ratios: readonly number[]): string {
  return ratios.map((ratio) => ratio.toFixed(2)).join(" ");
}

/**
 * The same bundle with runs that decide alone: they exchange with no gate, and count no demand for one. What a run counts of its own
 * attempts at an upstream stays. Throws if the source has no such switch any more.
 */
function withoutGates({ script, wranglerToml }: Version): Version {
  const [before, after, ...others] = script.split(SWITCH);
  if (before === undefined || after === undefined || others.length > 0)
    throw new Error(`the bundle has "${SWITCH}" not exactly once`);
  return { script: `${before}hasGates: false${after}`, wranglerToml };
}

const SWITCH = "hasGates: true";

/** A process of each version, which take turns after a warm-up. */
async function measure(versions: Record<Name, Version>): Promise<Round> {
  await using withGates = await startSide(versions.with);
  await using without = await startSide(versions.without);
  const sides = { with: withGates, without };
  const round: Round = {
    batch: { with: nothing(), without: nothing() },
    query: { with: nothing(), without: nothing() },
  };
  for (const way of WAYS) {
    for (const name of NAMES) await sides[name].send(way, "warm");
    for (let turn = 0; turn < TURNS; turn += 1) {
      const order = turn % 2 === 0 ? NAMES : NAMES.toReversed();
      for (const name of order) await timed(sides[name].pid, round[way][name], () => sides[name].send(way, `${turn}`));
    }
  }
  return round;
}

type Side = AsyncDisposable & { pid: number; send: (way: Way, name: string) => Promise<unknown> };

async function startSide(version: Version): Promise<Side> {
  const world = await startGateWorld({ limiter: noLimiter(), latency: steady(0), version });
  const { token } = await world.openRun({ window_ms: 0 });
  return {
    pid: world.gateway.pid,
    send: (way, name) =>
      way === "batch" ? batch(world, token, { prompts: prompts(name, CALLS) }) : queries(world, token, CALLS),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

function nothing(): Measured {
  return { wallMs: 0, cpuMs: 0 };
}

async function queries(world: GateWorld, token: string, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await query(world, token, `q ${left}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Adds what `work` took, and what a process has used meanwhile. */
async function timed(pid: number, sum: Measured, work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  const startedCpuMs = cpuMsOf(pid);
  await work();
  sum.wallMs += performance.now() - startedMs;
  sum.cpuMs += cpuMsOf(pid) - startedCpuMs;
}
