/** A simulation from a seed: programs that begin over some hours, faults among them, and what must hold at the end. */
import { createHash } from "node:crypto";
import { Random } from "../../bench/adversary/random.ts";
import type { GatewayExports, IsolateDeps } from "./isolate.ts";
import { drawProgram, finish, type Finished, type Mix } from "./programs/program.ts";
import type { Program } from "./programs/work.ts";
import { Scrapes } from "./scrapes.ts";
import { World } from "./world.ts";

export type Plan = Mix & {
  seed: number;
  /** Virtual hours in which programs begin. */
  hours: number;
  runs: number;
  hasFaults: boolean;
  /** The jurisdiction in which the gateway has to keep all objects; absent = anywhere. */
  jurisdiction?: string;
  /** Which of the shards this is. Each has every `count`th program, in a world of its own. */
  shard: { index: number; count: number };
  /** Ends here, without what must hold at the end: to see how a violation comes about. Infinity = at the end. */
  untilHour: number;
};

/** What the programs that have ended add up to. */
type Tally = {
  ended: number;
  completed: number;
  failed: number;
  upstreamCalls: number;
  /** Answers of the provider beyond one for each slot. */
  repeated: number;
};

export type Outcome = Tally & {
  /** Slots that the provider has answered, also of programs that have not ended. */
  answered: number;
  violations: string[];
  objectCalls: number;
  faults: World["faults"];
  virtualHours: number;
  events: number;
  awakeHours: number;
  /** The same for every simulation of the same plan and code. */
  fingerprint: string;
};

const HOUR_MS = 3_600_000;
/** How long runs may settle after the last program, and how long what they store may last after that, ms. */
const SETTLE_MS = HOUR_MS / 2;
const RETENTION_MS = 14 * HOUR_MS;
const VIOLATIONS_MAX = 50;
/** An object without anything to do sleeps after so long, ms; those that delete themselves at this moment are awake for less. */
const AWAKE_MS_MAX = 300_000;
/** Longest that a program takes, with every patience of its client; and how often objects that have nothing left are dropped, ms. */
const PROGRAM_MS_MAX = 24 * HOUR_MS;
const SWEEP_MS = HOUR_MS / 4;

/** How far a simulation is. */
export type Progress = Tally & { answered: number; virtualHours: number; violations: readonly string[] };

/** What looks on while a simulation runs. */
export type Spectator = {
  /** Called each quarter of a virtual hour. */
  progressed: (progress: Progress) => void;
  /** Whether it ends here, without what must hold at the end. */
  isStopped: () => boolean;
};

const NOBODY: Spectator = { progressed: () => undefined, isStopped: () => false };

/** @param gateway Evaluates the gateway's bundle. */
export async function simulate(
  plan: Plan,
  gateway: (deps: IsolateDeps) => GatewayExports,
  { progressed, isStopped }: Spectator = NOBODY,
): Promise<Outcome> {
  const { index, count } = plan.shard;
  const violations: string[] = [];
  const fingerprint = createHash("sha256");
  const violated = (what: string): void => {
    if (violations.length >= VIOLATIONS_MAX) return;
    const hour = (world.clock.nowMs - beginMs) / HOUR_MS;
    violations.push(`[seed ${plan.seed}, shard ${index + 1}/${count}, hour ${hour.toFixed(4)}] ${what}`);
  };
  const limits = new Map<string, number>();
  /** What the runs that have ended have spent: what comes in later is inside. */
  const closed = new Map<string, number>();
  const world: World = new World({
    gateway,
    seed: plan.seed,
    shard: index,
    hasFaults: plan.hasFaults,
    jurisdiction: plan.jurisdiction,
    upstreams: plan.upstreams,
    billed: (program, { nanoUsd, calls }) => {
      fingerprint.update(`${program} ${calls} ${nanoUsd} ${world.clock.nowMs}\n`);
      const limit = limits.get(program);
      if (limit !== undefined && nanoUsd > limit) violated(`${program} was billed ${nanoUsd} of ${limit} nano-USD`);
      const spent = closed.get(program);
      if (spent !== undefined && nanoUsd > spent)
        violated(`${program} was billed ${nanoUsd} nano-USD after it had ended with ${spent}`);
    },
    violated,
  });
  const tally: Tally = { ended: 0, completed: 0, failed: 0, upstreamCalls: 0, repeated: 0 };
  const random = new Random(plan.seed, 4);
  const beginMs = world.clock.nowMs;
  const scrapes = new Scrapes(world, violated);
  let pending = 0;
  const begin = async (program: Program): Promise<void> => {
    const limited = (name: string, nanoUsd: number): void => void limits.set(name, nanoUsd);
    try {
      const ended = await finish(program, { world, violated, limited });
      audit(world, program, { ended, plan, violated, tally });
      closed.set(program.name, ended.spentNanoUsd);
      // Someone looks between the programs, and nobody waits for that.
      void scrapes.look();
    } catch (error) {
      violated(`${program.name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    } finally {
      for (const name of [program.name, ...limits.keys()]) {
        if (name.split("/")[0] !== program.name) continue;
        limits.delete(name);
        world.upstream.forgetSlots(name);
      }
      pending -= 1;
      if (pending === 0) world.endFaults();
    }
  };
  for (let run = 0; run < plan.runs; run += 1) {
    // All shards draw all programs, so that each has the same programs whatever the others are.
    const program = drawProgram(run, plan, random);
    const atMs = beginMs + random.fraction() * plan.hours * HOUR_MS;
    if (run % count !== index) continue;
    pending += 1;
    world.clock.at(atMs, () => void begin(program));
  }
  // A gateway that breaks its promises all the time may never end its work.
  const isOver = (): boolean => pending === 0 || violations.length === VIOLATIONS_MAX || isStopped();
  const lastMs = beginMs + Math.min(plan.hours * HOUR_MS + PROGRAM_MS_MAX, plan.untilHour * HOUR_MS);
  const hoursNow = (): number => (world.clock.nowMs - beginMs) / HOUR_MS;
  while (!isOver() && world.clock.nowMs < lastMs) {
    await world.clock.run(Math.min(world.clock.nowMs + SWEEP_MS, lastMs), isOver);
    world.sweep();
    progressed({ ...tally, answered: world.upstream.answered, virtualHours: hoursNow(), violations });
  }
  const spentNanoUsd = [...closed.values()].reduce((sum, spent) => sum + spent, 0);
  if (pending === 0) await drained(world, violated, () => scrapes.end(spentNanoUsd));
  else if (hoursNow() < plan.untilHour && !isStopped()) violated(`${pending} programs did not end`);
  const { faults, awakeMs, objectCalls } = world;
  return {
    violations,
    ...tally,
    answered: world.upstream.answered,
    objectCalls,
    faults,
    virtualHours: hoursNow(),
    events: world.clock.events,
    awakeHours: awakeMs / HOUR_MS,
    fingerprint: fingerprint.digest("hex").slice(0, 16),
  };
}

/** Runs until everything sleeps, then until everything is deleted. */
async function drained(world: World, violated: (what: string) => void, look: () => Promise<void>): Promise<void> {
  await world.clock.run(world.clock.nowMs + SETTLE_MS);
  const awake = world.awakeFor(AWAKE_MS_MAX);
  if (awake.length > 0) violated(`awake an hour after the last program: ${awake.slice(0, 5).join("; ")}`);
  if (world.upstream.inFlight !== 0) violated(`${world.upstream.inFlight} calls are in flight for ever`);
  await looked(world, look);
  await world.clock.run(world.clock.nowMs + RETENTION_MS);
  await looked(world, look);
  const runs = world.sweep().filter((name) => name.startsWith("RUN/"));
  if (runs.length > 0) violated(`${runs.length} runs still store something after their retention`);
}

/** Lets time pass until a look has ended. */
async function looked(world: World, look: () => Promise<void>): Promise<void> {
  let hasEnded = false;
  void look().finally(() => (hasEnded = true));
  await world.clock.run(world.clock.nowMs + SWEEP_MS, () => hasEnded);
}

type Audited = {
  ended: Finished;
  plan: Plan;
  violated: (what: string) => void;
  tally: Tally;
};

/** Compares the run's books with the provider's. */
function audit(world: World, { name, kind, slots }: Program, { ended, plan, violated, tally }: Audited): void {
  const bill = world.upstream.billOf(name);
  const { completed, failed, spentNanoUsd } = ended;
  const answers = [...bill.answered.values()].reduce((sum, count) => sum + count, 0);
  tally.ended += 1;
  tally.completed += completed;
  tally.failed += failed;
  tally.upstreamCalls += bill.calls;
  tally.repeated += answers - bill.answered.size;
  if (bill.answered.size < completed)
    violated(`${name}: ${completed} slots completed, ${bill.answered.size} were answered`);
  if (completed + failed !== slots) violated(`${name}: ${completed} + ${failed} of ${slots} slots ended`);
  if (spentNanoUsd < bill.nanoUsd) violated(`${name}: spent ${spentNanoUsd}, billed ${bill.nanoUsd} nano-USD`);
  // A hedge that was aborted stays charged at its reservation, and may have been answered.
  if (plan.hasFaults || kind === "hedged") return;
  if (answers !== bill.answered.size)
    violated(`${name}: ${answers} answers to ${bill.answered.size} slots without a fault`);
  if (spentNanoUsd !== bill.nanoUsd) violated(`${name}: spent ${spentNanoUsd}, billed ${bill.nanoUsd} without a fault`);
}
