/** One wide batch at a provider whose calls all take as long: how long it takes, and what its calls cost. */
import type { GatewayExports, IsolateDeps } from "./isolate.ts";
import { finish, type Finished } from "./programs/program.ts";
import { SLOT_NANO_USD, type Program } from "./programs/work.ts";
import type { CallTimes } from "./upstream.ts";
import { modelOf, World } from "./world.ts";

/** `known`: calls of an earlier run, from which the isolates know how long calls of the model take. */
export type WidePlan = CallTimes & { slots: number; width: number; known: number; seed: number };

export type WideOutcome = {
  violations: string[];
  completed: number;
  /** From the first call that came to the provider to the last answer, and as long as that takes if the width is always used, ms. */
  wallMs: number;
  idealMs: number;
  /** Most calls that were at the provider at once. */
  inFlightMost: number;
  lanes: number;
  objectCalls: number;
};

const PATIENCE_MS = 3_600_000;

/** @param gateway Evaluates the gateway's bundle. */
export async function wideBatch(
  { slots, width, known, seed, ...takes }: WidePlan,
  gateway: (deps: IsolateDeps) => GatewayExports,
): Promise<WideOutcome> {
  const violations: string[] = [];
  const violated = (what: string): void => void violations.push(what);
  const deps = { gateway, seed, shard: 0, hasFaults: false, upstreams: 1, takes, billed: () => undefined, violated };
  const world = new World(deps);
  await ended(world, programOf("known", known, known), violated);
  const callsBefore = world.objectCalls;
  const end = await ended(world, programOf("wide", slots, width), violated);
  const { firstAskedMs, firstAnsweredMs } = world.upstream.billOf("wide");
  return {
    violations,
    completed: end?.completed ?? 0,
    wallMs: Math.max(...firstAnsweredMs.values()) - Math.min(...firstAskedMs.values()),
    idealMs: Math.ceil(slots / width) * takes.wholeMs,
    inFlightMost: world.upstream.inFlightMost,
    lanes: [...world.objects].filter(([name]) => name.startsWith("LANE/")).length,
    objectCalls: world.objectCalls - callsBefore,
  };
}

function programOf(name: string, slots: number, width: number): Program {
  const limitNanoUsd = slots * SLOT_NANO_USD * 8;
  return { name, kind: "batch", slots, width, model: modelOf(0), patienceMs: PATIENCE_MS, limitNanoUsd };
}

/** Lets time pass until a program has ended. Null = it has not, or broke off. */
async function ended(world: World, program: Program, violated: (what: string) => void): Promise<Finished | null> {
  let end: Finished | null = null;
  let isOver = false;
  void finish(program, { world, violated, limited: () => undefined })
    .then((finished) => (end = finished))
    .catch((error: unknown) => violated(String(error)))
    .finally(() => (isOver = true));
  await world.clock.run(world.clock.nowMs + PATIENCE_MS, () => isOver);
  return end;
}
