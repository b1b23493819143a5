/** One attack on a fresh gateway: rounds of a quiet stretch and a strike. */
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { cpuMsOf, type Server } from "../servers/process.ts";
import { Attacker, type Attack } from "./attack.ts";
import { profiled, startProfiled } from "./profiled.ts";
import { clockMs, startVictim, summary, type Stretch, type Summary, type Victim } from "./victim.ts";

/** Time before the first round, in which the gateway warms up, ms. */
const WARM_UP_MS = 2_000;
/** Length of a quiet stretch, and the least length of one with a strike, ms. */
const STRETCH_MS = 2_000;
/** The gateway is at rest when it uses at most so many times as much as in the quiet stretch before. */
const RESTING = 2;
/** And always when it uses at most this share of a processor. */
const RESTING_SHARE_MIN = 0.3;
/** Time over which its use is taken, and the longest wait for its rest, ms. */
const REST_STEP_MS = 500;
const REST_MS_MAX = 60_000;

/** What is promised to the other run, whatever a run does. */
export const P95_TIMES_MAX = 3;
export const ANSWER_MS_MAX = 500;
export const CPU_S_PER_MB_MAX = 1;

export type Measured = {
  quiet: Summary;
  during: Summary;
  /** p95 during the strikes ÷ that of the quiet stretches. */
  ratio: number;
  sentMb: number;
  /** Processor time of the gateway for one strike, without what it uses in quiet. */
  cpuMs: number;
  /** The same per MB that the attack sent. */
  cpuSPerMb: number;
  /** Answers to the attack. */
  statuses: string;
  /** Promises that do not hold. */
  misses: string[];
};

/** Plain upstreams of all attacks, and what they are for. */
function varsOf(upstream: Server): Record<string, unknown> {
  const free = { "*": { input: 0, output: 0 } };
  return {
    UPSTREAMS: {
      // Answers each call after 20 ms with the same short sentence.
      up: {
        kind: "openai",
        base_url: `${upstream.url}/v1`,
        models: ["m"],
        prices: { "*": { input: 0.15, output: 0.6 } },
      },
      // `sim/echo` answers with the prompt.
      sim: { kind: "simulated" },
      // Answered by pull workers.
      pull: { kind: "pull", models: ["worker"], prices: free },
    },
    DEFAULT_MODEL: "up/m",
  };
}

/** Measures one attack on a gateway of its own. */
export async function measure(
  attack: Attack,
  upstream: Server,
  { rounds, profile }: { rounds: number; profile: boolean },
): Promise<Measured> {
  const vars = varsOf(upstream);
  const gateway = profile ? await startProfiled(vars) : await startGateway({ vars });
  const victim = await startVictim(gateway);
  const attacker = new Attacker(gateway);
  const quiet: Stretch[] = [];
  const during: Stretch[] = [];
  let cpuMs = 0;
  try {
    await pause(WARM_UP_MS);
    for (let round = 0; round < rounds; round += 1) {
      const strike = await attack.prepare(attacker, round);
      await rested(gateway, RESTING_SHARE_MIN);
      const before = await observed(gateway, victim, () => pause(STRETCH_MS));
      const striking = () =>
        observed(gateway, victim, async () => {
          await Promise.all([attacker.counted(strike), pause(STRETCH_MS)]);
          // What a request leaves behind is its cost too.
          await rested(gateway, before.share * RESTING);
        });
      const struck = await (profile ? profiled(gateway, striking) : striking());
      attacker.leave();
      quiet.push(before.stretch);
      during.push(struck.stretch);
      cpuMs += Math.max(0, struck.cpuMs - before.share * struck.ms);
    }
    return measured({ quiet, during, cpuMs, rounds, attacker });
  } finally {
    attacker.leave();
    await victim.stop();
    await gateway.kill();
  }
}

/** What the other run saw while `work` ran, and what the gateway used meanwhile. `share`: processor time per time. */
type Observed = { stretch: Stretch; ms: number; cpuMs: number; share: number };

async function observed(gateway: Gateway, victim: Victim, work: () => Promise<unknown>): Promise<Observed> {
  const fromMs = clockMs();
  const fromCpuMs = cpuMsOf(gateway.pid);
  await work();
  const ms = clockMs() - fromMs;
  const cpuMs = cpuMsOf(gateway.pid) - fromCpuMs;
  return { stretch: await victim.between(fromMs, fromMs + ms), ms, cpuMs, share: cpuMs / ms };
}

/** Waits until the gateway uses at most this share of a processor. */
async function rested(gateway: Gateway, share: number): Promise<void> {
  const endMs = clockMs() + REST_MS_MAX;
  for (;;) {
    const [fromMs, fromCpuMs] = [clockMs(), cpuMsOf(gateway.pid)];
    await pause(REST_STEP_MS);
    const used = (cpuMsOf(gateway.pid) - fromCpuMs) / (clockMs() - fromMs);
    if (used <= Math.max(share, RESTING_SHARE_MIN) || clockMs() > endMs) return;
  }
}

type Rounds = { quiet: Stretch[]; during: Stretch[]; cpuMs: number; rounds: number; attacker: Attacker };

function measured(of: Rounds): Measured {
  const quiet = summary(of.quiet);
  const during = summary(of.during);
  const sentMb = of.attacker.bytes / 1e6;
  const ratio = during.p95 / quiet.p95;
  const cpuSPerMb = of.cpuMs / 1_000 / sentMb;
  const misses = [
    ...(ratio > P95_TIMES_MAX ? ["p95"] : []),
    ...(during.max > ANSWER_MS_MAX ? ["max"] : []),
    ...(cpuSPerMb > CPU_S_PER_MB_MAX ? ["CPU"] : []),
    ...(during.failed > 0 ? [`${during.failed} failed`] : []),
  ];
  const statuses = [...of.attacker.statuses].map(([status, count]) => `${count} × ${status}`).join(", ");
  return { quiet, during, ratio, sentMb, cpuMs: of.cpuMs / of.rounds, cpuSPerMb, statuses, misses };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
