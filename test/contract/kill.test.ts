/**
 * A gateway that is killed (SIGKILL) in the middle of batches and started again on its disk: small rounds of
 * `npm run bench:kill`, which also says what is held against what. Nearly all of their time is the term of the leases that
 * the restart finds.
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { Round } from "../../bench/kill/audit.ts";
import type { KillPlan, RunPlan } from "../../bench/kill/plan.ts";
import { runVolley } from "../../bench/kill/volley.ts";

const SLOTS = 200;
const WIDTH = 16;
const batch = {
  slots: SLOTS,
  maxParallel: WIDTH,
  latencyMsMax: 20,
  onLost: "retry",
  budgetShare: 20,
  postsAfterMs: 0,
} as const;
const runs: RunPlan[] = [
  { ...batch, name: "attached", promptBytes: 1_200, client: "attached" },
  { ...batch, name: "looks", promptBytes: 60, client: "looks" },
];

let interrupted: Promise<Round[]> | null = null;
/** What came of the batches whose gateway is killed. So many calls are too few for either batch to have ended. */
function interruptedRounds(): Promise<Round[]> {
  interrupted ??= runVolley({ runs, kills: [{ when: { calls: SLOTS - 50 }, downMs: 0 }] }, 90_000);
  return interrupted;
}

describe("a batch that a Workflow instance executes", () => {
  const alone: RunPlan = { ...batch, name: "silent", promptBytes: 60, client: "silent" };
  const detached = { executor: "workflow", waitingFetchesMax: 512 } as const;
  const kill = { when: { calls: 50 }, downMs: 0 } as const;
  const volley = async (kills: readonly KillPlan[]): Promise<Round | undefined> =>
    (await runVolley({ runs: [alone], kills, detached }, 90_000))[0];
  let left: Round | undefined;
  let resumed: Round | undefined;
  // All volleys of this file beside each other: they wait for most of their time.
  beforeAll(async () => {
    const resumes = volley([{ ...kill, resumeAfterMs: 1_000 }]);
    [left, resumed] = await Promise.all([volley([kill]), resumes, interruptedRounds()]);
  }, 110_000);

  it(
    "ends every slot once after a kill, although nobody runs the instance again: lanes take over",
    { tags: ["slow"] },
    () => {
      const round = left;
      expect(round).toMatchObject({ completed: SLOTS, faults: [] });
      expect(round?.instances.calls).toBeGreaterThanOrEqual(50);
      expect(round?.calls).toBeLessThanOrEqual(SLOTS + WIDTH);
    },
  );

  it(
    "resumes within seconds if the instance runs again: the attempts of the lost one are given up at once",
    { tags: ["slow"] },
    () => {
      const round = resumed;
      expect(round).toMatchObject({ completed: SLOTS, faults: [], instances: { resumed: 1 } });
      expect(round?.resends.firstMs).toBeLessThan(15_000);
    },
  );
});

describe("batches whose gateway is killed and restarted", () => {
  let rounds: Round[];
  beforeAll(async () => {
    rounds = await interruptedRounds();
  }, 110_000);

  it("end every slot once, keep budget and log consistent, and replay the same results when posted once more", () => {
    expect(rounds.map(({ run, completed, faults }) => ({ run, completed, faults }))).toEqual([
      { run: "attached", completed: SLOTS, faults: [] },
      { run: "looks", completed: SLOTS, faults: [] },
    ]);
  });

  it("lose what was in flight, charge it as estimated, and send nothing else upstream twice", () => {
    for (const { phases, estimated, calls } of rounds) {
      expect(phases).toHaveLength(1);
      expect(calls).toBeLessThanOrEqual(SLOTS + estimated);
      expect(estimated).toBeLessThanOrEqual(WIDTH);
    }
    expect(rounds.some(({ estimated }) => estimated > 0)).toBe(true);
  });

  it("resume within a minute of the restart", () => {
    for (const { resends } of rounds) {
      expect(resends.firstMs).toBeLessThan(60_000);
      expect(resends.againMs ?? 0).toBeLessThan(60_000);
    }
  });
});
