/** The leases of executors that have sockets: named at each, ended with it, and no heartbeat is needed. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { workerOf } from "../../src/run/leases/shard.ts";
import {
  CALL_SOCKET_AFTER_MS,
  EXECUTOR_LEASE_MS,
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  SOCKET_RENEW_MS,
} from "../../src/limits.ts";
import type { WorkerState } from "../../src/objects/methods/groups.ts";
import { DONE_CODE, ENDED_CODE } from "../../src/objects/clients/run-socket.ts";
import { skipTime, withTimers } from "../support/objects-clock.ts";
import {
  acquireRequest,
  crash,
  evict,
  factsOf,
  openingOf,
  openUnwatched,
  pagesOf,
  SUCCESS,
} from "../support/objects-direct.ts";
import { EXECUTORS, expectAtRest } from "../support/objects-group.ts";
import {
  expectSettled,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { hold, signalsOf, untilRenewed } from "../support/objects-sockets.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe.each(EXECUTORS)("$executor", ({ key: kind, sendBatch }) => {
  it("keeps its leases by what it says at its sockets, without a heartbeat", { tags: ["slow"] }, async () => {
    const key = `named-${kind}`;
    const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
    const answer = await withTimers([CALL_SOCKET_AFTER_MS, SOCKET_RENEW_MS], 20, async () => {
      const batch = sendBatch(run, { prompts: prompts(6), model: `up/key/${key}/latch/${key}` });
      await untilInFlight(key, 4);
      await untilRenewed(run);
      for (let leftMs = 3 * EXECUTOR_LEASE_MS; leftMs > 0; leftMs -= SOCKET_RENEW_MS) {
        await age(run, SOCKET_RENEW_MS);
        await untilRenewed(run);
      }
      await openLatch(key);
      return batch;
    });
    expect(answer.items.map(({ attempts }) => attempts)).toEqual(Array<number>(6).fill(1));
    expect((await upstreamStats(key)).requests).toBe(6);
    expect(watched(run.id).calls["heartbeat"]).toBeUndefined();
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("keeps them while the run's object sleeps and wakes", async () => {
    const key = `slept-${kind}`;
    const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
    const answer = await withTimers([CALL_SOCKET_AFTER_MS], 10, async () => {
      const batch = sendBatch(run, { prompts: prompts(6), model: `up/key/${key}/latch/${key}` });
      await untilInFlight(key, 4);
      await expect.poll(() => watched(run.id).calls["webSocketMessage"] ?? 0).toBeGreaterThanOrEqual(1);
      await expect.poll(() => watched(run.id).timers.size).toBe(0);
      await evict(run.object);
      await age(run, FOUND_LEASE_TTL_MS + 1);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 4 });
      await openLatch(key);
      return batch;
    });
    expect(answer.items.map(({ attempts }) => attempts)).toEqual(Array<number>(6).fill(1));
    expect((await upstreamStats(key)).requests).toBe(6);
    expectSettled(await run.budget(), answer.usage.cost);
  });
});

const THERE: WorkerState = { covers: null, asksForLanes: false, leaves: false, holds: null, gaveUp: [] };

/** Kinds of executors of a run's first group, and how each gets four attempts of its six slots. */
const CLAIMED = [
  {
    kind: "the Worker of a group",
    executor: workerOf(1),
    claim: async (run: TestRun, model: string) => {
      const { pages, models } = pagesOf(prompts(6), model);
      const opened = await run.object.openGroup(openingOf(6, models), pages, 4);
      return opened.ok && opened.claim !== null ? opened.claim.jobs : [];
    },
  },
  {
    kind: "a lane",
    executor: 0,
    claim: async (run: TestRun, model: string) => {
      await openUnwatched(run, prompts(6), model);
      return (await run.object.settleAndClaim(0, [], 4, false)).jobs;
    },
  },
] as const;

/** The replies to what an executor names. Between them the run may send that slots wait. */
const heldIn = (signals: readonly unknown[]) =>
  signals.filter((signal) => JSON.stringify(signal).startsWith('{"type":"held"'));

describe.each(CLAIMED)("$kind that has a socket", ({ executor, claim }) => {
  const owner = { kind: "executor", executor } as const;

  async function claimed(key: string): Promise<{ run: TestRun; attemptIds: string[] }> {
    const run = await openRun({ max_parallel: 4, budget: { calls: 50 } });
    const jobs = await claim(run, `up/key/${key}-${executor}`);
    expect(jobs).toHaveLength(4);
    return { run, attemptIds: jobs.map(({ lease }) => lease.attemptId) };
  }

  it("learns which of the attempts that it names are not its own any more", async () => {
    const { run, attemptIds } = await claimed("told");
    const socket = await hold(run, owner);
    const signals = signalsOf(socket);
    socket.send(JSON.stringify({ ...owner, holds: [...attemptIds, "foreign"] }));
    await expect.poll(signals).toEqual([{ type: "held", lost: ["foreign"] }]);
  });

  it("keeps what it has named for a term from then, and not longer if it falls silent", async () => {
    const { run, attemptIds } = await claimed("silent");
    const socket = await hold(run, owner);
    const signals = signalsOf(socket);
    skipTime(LEASE_TTL_MS - 1_000);
    socket.send(JSON.stringify({ ...owner, holds: attemptIds }));
    await expect.poll(() => heldIn(signals())).toHaveLength(1);
    await age(run, EXECUTOR_LEASE_MS - 1_000);
    expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 4 });
    await age(run, 1_000);
    expect((await run.budget()).calls.spent).toBeGreaterThanOrEqual(4);
    await untilMadeByLanes(run);
  });

  it(
    "loses what it does not name, once the reply that granted it cannot be on its way",
    { tags: ["slow"] },
    async () => {
      const { run, attemptIds } = await claimed("lacks");
      const socket = await hold(run, owner);
      const signals = signalsOf(socket);
      const [kept = ""] = attemptIds;
      socket.send(JSON.stringify({ ...owner, holds: [kept] }));
      await expect.poll(() => heldIn(signals())).toHaveLength(1);
      await age(run, LEASE_TTL_MS - 1);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 4 });
      skipTime(1);
      socket.send(JSON.stringify({ ...owner, holds: [kept] }));
      await expect.poll(signals).toHaveLength(2);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls.spent).toBeGreaterThanOrEqual(3);
      skipTime(CALL_SOCKET_AFTER_MS);
      socket.close(ENDED_CODE);
      await untilMadeByLanes(run);
      expect((await run.object.results(1, 0)).map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 1, 1]);
    },
  );

  it("and has ended loses its attempts at once, and lanes make them", { tags: ["slow"] }, async () => {
    const { run } = await claimed("ended");
    const socket = await hold(run, owner);
    skipTime(CALL_SOCKET_AFTER_MS);
    const earlier = watched(run.id).alarmsSet;
    socket.close(ENDED_CODE);
    // Its alarm is set to now.
    await expect.poll(() => watched(run.id).alarmsSet).toBe(earlier + 1);
    await untilMadeByLanes(run);
    expect((await run.object.results(1, 0)).map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 1, 1]);
    expect((await run.budget()).calls.spent).toBe(10);
    await expectAtRest(run);
  });

  it("closes it to open the next without losing an attempt", async () => {
    const { run } = await claimed("renews");
    const socket = await hold(run, owner);
    skipTime(CALL_SOCKET_AFTER_MS);
    socket.close(DONE_CODE);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    await age(run, FOUND_LEASE_TTL_MS);
    expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 4 });
  });

  it("that breaks has the time of a reconnect, and then loses its attempts", { tags: ["slow"] }, async () => {
    const { run, attemptIds } = await claimed("breaks");
    const socket = await hold(run, owner);
    const signals = signalsOf(socket);
    socket.send(JSON.stringify({ ...owner, holds: attemptIds }));
    await expect.poll(() => heldIn(signals())).toHaveLength(1);
    socket.close(4_000);
    await expect.poll(() => watched(run.id).calls["webSocketClose"]).toBe(1);
    await age(run, FOUND_LEASE_TTL_MS - 1_000);
    expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 4 });
    await age(run, 1_000);
    expect((await run.budget()).calls.spent).toBeGreaterThanOrEqual(4);
    await untilMadeByLanes(run);
  });

  it("gets attempts that last until it has named them at its next", async () => {
    const { run, attemptIds } = await claimed("granted");
    await hold(run, owner);
    const settlements = attemptIds.map((attemptId) => ({ attemptId, outcome: SUCCESS }));
    const worker = executor === 0 ? null : THERE;
    expect((await run.object.settleAndClaim(executor, settlements, 4, false, worker)).jobs).toHaveLength(2);
    await age(run, EXECUTOR_LEASE_MS - 1_000);
    expect((await run.budget()).calls).toMatchObject({ spent: 4, reserved: 2 });
    await age(run, 1_000);
    expect((await run.budget()).calls.spent).toBeGreaterThanOrEqual(6);
    await untilMadeByLanes(run);
  });
});

/** Rings the run's alarm, which is set to a time that tests have put forward, until lanes have ended the group. */
async function untilMadeByLanes(run: TestRun): Promise<void> {
  const status = async (): Promise<string | undefined> => {
    await runDurableObjectAlarm(run.object);
    return (await run.object.waitGroup(1, 0))?.status;
  };
  await expect.poll(status, { timeout: 20_000 }).toBe("completed");
}

/** Puts the time forward and rings the run's alarm. */
async function age(run: TestRun, ms: number): Promise<void> {
  skipTime(ms);
  await runDurableObjectAlarm(run.object);
}

describe("attempts at an upstream that bills what was seen, once the run's object has restarted", () => {
  const { claim } = CLAIMED[0];

  /** What an executor that names its attempts is told to stop, after `stop` and a crash. Nothing else has told it so. */
  async function stoppedAfter(stop: (run: TestRun) => Promise<unknown>): Promise<{ stopped: string[]; all: string[] }> {
    const run = await openRun({ max_parallel: 8, budget: { usd: 1 } });
    const jobs = await claim(run, "seen/latch/never");
    const single = await run.object.acquire(acquireRequest("single", factsOf("p", "seen/latch/never")));
    if (single.ok !== true) throw new Error("the run gave no permit");
    const ofGroup = jobs.map(({ lease }) => lease.attemptId);
    const all = [...ofGroup, single.lease.attemptId];
    expect(all).toHaveLength(5);
    await stop(run);
    await crash(run.object);
    return { stopped: await env.RUN.get(run.object.id).heartbeat(all), all };
  }

  it("stop all if the run was cancelled", async () => {
    const { stopped, all } = await stoppedAfter((run) => run.object.end("cancelled"));
    expect(stopped).toEqual(all);
  });

  it("stop if their group was cancelled, and no others", async () => {
    const { stopped, all } = await stoppedAfter((run) => run.object.cancelGroup(1));
    expect(stopped).toEqual(all.slice(0, -1));
  });

  it("go on if the run was closed", async () => {
    const { stopped } = await stoppedAfter((run) => run.object.end("closed"));
    expect(stopped).toEqual([]);
  });
});
