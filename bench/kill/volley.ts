/** A volley: batches in several runs of one gateway, hit by the same kills, each followed to its end and then audited. */
import { audit, type Round } from "./audit.ts";
import type { Hit } from "./hit.ts";
import { type Instances, noteInstances, resumeInstances } from "./instances.ts";
import { Client } from "./client.ts";
import { Looks } from "./looks.ts";
import type { KillPlan, RunPlan, VolleyPlan } from "./plan.ts";
import { billNanoUsd, lostNanoUsdMax } from "./provider.ts";
import { sleep, until } from "./wait.ts";
import { startKillWorld, type KillWorld } from "./world.ts";

type Subject = { client: Client; runId: string; looks: Looks; hits: Hit[]; instances: Instances };

/** Between two looks, ms, at one run after the other. */
const LOOK_EVERY_MS = 20;

/**
 * One round for each run that a kill hit while its batch was on its way. Rejects when a batch has not ended after `msMax`:
 * the default is enough for three kills, each followed by a long restart and the leases' terms, on a busy machine.
 */
export async function runVolley(plan: VolleyPlan, msMax = 400_000): Promise<Round[]> {
  await using world = await startKillWorld(plan.runs, plan.detached);
  const subjects = await Promise.all(plan.runs.map((run) => subjectOf(world, run, plan.kills.length)));
  const over = new AbortController();
  const follow = async (): Promise<void> => {
    await Promise.all(subjects.map(({ client }) => client.follow(over.signal)));
    over.abort();
  };
  const works = [follow(), kill(world, plan.kills, subjects, over.signal), watch(subjects, over.signal)];
  try {
    await within(msMax, Promise.all(works), subjects);
  } finally {
    // A gateway that is being started must be there to be ended.
    over.abort();
    await Promise.allSettled(works);
  }
  const rounds: Round[] = [];
  for (const subject of subjects) {
    if (subject.hits.some(({ phase }) => phase !== "before")) rounds.push(await audit(world, subject));
  }
  return rounds;
}

/** A budget that is to last pays, beside its share, for all that the kills can take while it is in flight. */
async function subjectOf(world: KillWorld, plan: RunPlan, kills: number): Promise<Subject> {
  let worthNanoUsd = 0;
  for (let index = 0; index < plan.slots; index += 1) worthNanoUsd += billNanoUsd(plan, index);
  const lostNanoUsd = plan.budgetShare < 1 ? 0 : kills * plan.maxParallel * lostNanoUsdMax(plan);
  const usd = (worthNanoUsd * plan.budgetShare + lostNanoUsd) / 1e9;
  const run = await world.openRun({ budget: { usd }, max_parallel: plan.maxParallel });
  const client = new Client(plan, run.token, world);
  const looks = new Looks(world.url, client, run.id);
  return { client, runId: run.id, looks, hits: [], instances: { calls: 0, resumed: 0 } };
}

/** Kills the gateway at the planned moments, as long as batches are on their way. */
async function kill(
  world: KillWorld,
  kills: readonly KillPlan[],
  subjects: readonly Subject[],
  over: AbortSignal,
): Promise<void> {
  const resuming: Promise<void>[] = [];
  for (const [number, { when, downMs, resumeAfterMs }] of kills.entries()) {
    await moment(world, when, subjects, over);
    if (over.aborted) break;
    if (number === 0) await noteInstances(world, subjects);
    const phases = subjects.map(({ client }) => client.phase);
    const killed = await world.kill(downMs);
    for (const [at, { hits }] of subjects.entries()) {
      const phase = phases[at] ?? "before";
      if (phase !== "ended" && phase !== "before") hits.push({ ...killed, phase });
    }
    if (resumeAfterMs !== undefined) resuming.push(resumeInstances(world, subjects, { afterMs: resumeAfterMs, over }));
  }
  await Promise.all(resuming);
}

/** Resolves at a planned moment, or when all is over. */
async function moment(
  world: KillWorld,
  when: KillPlan["when"],
  subjects: readonly Subject[],
  over: AbortSignal,
): Promise<void> {
  const posted = (): number => subjects.filter(({ client }) => client.phase !== "before").length;
  const come = (): boolean => {
    if ("calls" in when) return world.provider.requests >= when.calls;
    return "posted" in when ? posted() >= when.posted : world.upForMs() >= when.afterMs;
  };
  await until(() => over.aborted || come());
  if ("posted" in when) await sleep(when.afterMs);
}

/** Looks at one run after the other. One that nobody polls is left alone once its batch is posted: a look would wake it. */
async function watch(subjects: readonly Subject[], over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    for (const { client, looks } of subjects) {
      if (over.aborted) return;
      const isPolled = client.plan.client === "attached" || client.plan.client === "looks";
      if (isPolled || client.phase === "before") await looks.take();
      await sleep(LOOK_EVERY_MS);
    }
  }
}

async function within<T>(ms: number, work: Promise<T>, subjects: readonly Subject[]): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const open = subjects.filter(({ client }) => client.phase !== "ended").map(({ client }) => client.plan.name);
      reject(new Error(`after ${ms} ms these batches have not ended: ${open.join(", ")}`));
    }, ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
