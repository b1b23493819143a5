/** One storm in one run: a thousand calls worth ten times its budget, polled meanwhile, and then compared with the bill. */
import { planStorm } from "./calls.ts";
import { fire, type Charged, type StormResult } from "./storm.ts";
import { Watch } from "./watch.ts";
import { startStormWorld, type Bill, type StormWorld } from "./world.ts";

export type Scenario = {
  name: string;
  /** Whether the upstream fails and clients leave. */
  faults: boolean;
  maxParallel: number;
  /** Shares of the limit at whose spending the gateway is killed. */
  killsAt: readonly number[];
};

/** Amounts are nano-USD. */
export type Storm = {
  scenario: string;
  limit: number;
  worth: number;
  spent: number;
  bill: number;
  /** Calls whose outcome both sides know, and their cost according to each side. */
  known: { calls: number; billed: number; charged: number; unequal: number };
  /** All else: what the upstream billed, and what the gateway set down for it. */
  rest: { billed: number; charged: number };
  looks: number;
  violations: number;
  committedMax: number;
  /** From the end of the storm until nothing was reserved, ms. */
  releasedMs: number;
  wallMs: number;
  answers: Omit<StormResult, "charged">;
  /** Attempts charged in the run, and answers that the upstream billed. */
  callsCharged: number;
  billedAnswers: number;
};

/** Longest that clients may be busy, and that reservations may stay after them, ms. */
const STORM_MS_MAX = 100_000;
const RELEASE_MS_MAX = 45_000;

export async function runStorm({ name, faults, maxParallel, killsAt }: Scenario): Promise<Storm> {
  const plan = planStorm();
  const limit = Math.floor(plan.worthNanoUsd / 10);
  await using world = await startStormWorld({ faults });
  const run = await world.openRun({ budget: { usd: limit / 1e9 }, max_parallel: maxParallel });
  const watch = new Watch(world.url, run.token);
  const startedMs = performance.now();
  const storm = within(STORM_MS_MAX, fire(plan, { url: world.url, token: run.token, clientsLeave: faults }));
  const kills = killAt(
    world,
    watch,
    killsAt.map((share) => share * limit),
  );
  const [{ charged, ...answers }] = await Promise.all([storm, kills]);
  const endedMs = performance.now();
  const last = await watch.until((look) => !look.anyReserved, RELEASE_MS_MAX);
  const releasedMs = performance.now() - endedMs;
  await watch.stop();
  const bill = await world.bill();
  const known = knownOf(charged, bill);
  return {
    scenario: name,
    limit,
    worth: plan.worthNanoUsd,
    spent: last.spent,
    bill: bill.nanoUsd,
    known,
    rest: { billed: bill.nanoUsd - known.billed, charged: last.spent - known.charged },
    looks: watch.looks,
    violations: watch.violations,
    committedMax: watch.committedMax,
    releasedMs,
    wallMs: endedMs - startedMs,
    answers,
    callsCharged: last.calls,
    billedAnswers: bill.billedAnswers,
  };
}

/** Kills the gateway each time that so much is spent, while money is left. */
async function killAt(world: StormWorld, watch: Watch, spentNanoUsd: readonly number[]): Promise<void> {
  for (const spent of spentNanoUsd) {
    await watch.until((look) => look.spent >= spent, STORM_MS_MAX);
    await world.restart();
  }
}

/** Calls whose answers all arrived, by the upstream's account, and whose charge is no estimate, by the gateway's. */
function knownOf(charged: ReadonlyMap<string, Charged>, bill: Bill): Storm["known"] {
  const known = { calls: 0, billed: 0, charged: 0, unequal: 0 };
  for (const [name, { nanoUsd, estimated }] of charged) {
    const account = bill.accounts.get(name) ?? { nanoUsd: 0, unsure: 0 };
    if (estimated || account.unsure > 0) continue;
    known.calls += 1;
    known.billed += account.nanoUsd;
    known.charged += nanoUsd;
    if (nanoUsd !== account.nanoUsd) known.unequal += 1;
  }
  return known;
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the storm was not over after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
