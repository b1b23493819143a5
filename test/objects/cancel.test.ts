/** Cancelling ends what is queued and what runs: the upstream sees its connections closed, and nothing stays reserved. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { CALL_SOCKET_AFTER_MS, HEARTBEAT_MS, LEASE_TTL_MS } from "../../src/limits.ts";
import { skipTime, withRenewals, withTimers } from "../support/objects-clock.ts";
import { crash, openUnwatched } from "../support/objects-direct.ts";
import { cancel, expectAtRest, lookAt, openAsync, untilClosed } from "../support/objects-group.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { late } from "../support/objects-paces.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { untilRenewed } from "../support/objects-sockets.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

/** Such a call ends only by being given up. */
const SLOW = "latch/never";

describe("cancelling a group", () => {
  it("closes its connections at once, releases its reservations and does not affect the run's other calls", async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 1 } });
    const body = { prompts: prompts(20), model: late(`up/key/cancelled-group/${SLOW}`), concurrency: 8 };
    // Without renewals nothing but the run's own call to its lanes can end their attempts.
    const group = await withRenewals(null, () => openAsync(run, body));
    const other = run.query({ prompt: "other", model: "up/key/other/latch/other" });
    await untilInFlight("cancelled-group", 8);
    expect(await cancel(run, group)).toMatchObject({ id: group, status: "cancelled" });
    await untilClosed("cancelled-group", 8);
    await openLatch("other");
    expect((await other).text).toBe("other");
    await expectAtRest(run);
    expect((await upstreamStats("cancelled-group")).requests).toBe(8);
    const lines = await logOf(run);
    expect(ofType(lines, "slots_cancelled").map(({ count }) => count)).toEqual([12]);
    expect(ofType(lines, "slot_completed").filter(({ status }) => status === "cancelled").length).toBe(8);
    // The run speaks to lanes from its alarm alone: a chain of calls must not come back to where it began.
    expect([...watched(run.id).laneStubsTakenBy].toSorted()).toEqual(["run.alarm", "worker"]);
  });

  it("replies to waiting clients with the ended results, and the rest as cancelled", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 3 });
    const items = ["quick", "quick too", "slow {{latch/never}}", "never"].map((prompt) => ({ prompt }));
    const waiting = run.batch({ items, model: "up/key/half", concurrency: 1 });
    await expect.poll(async () => (await upstreamStats("half")).requests).toBe(3);
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.completed).toBe(2);
    await run.object.cancelGroup(1);
    const answer = await waiting;
    expect(answer.status).toBe("cancelled");
    expect(answer.items.map(({ status }) => status)).toEqual(["completed", "completed", "cancelled", "cancelled"]);
    expect(answer.errors.map((error) => error?.code ?? null)).toEqual([null, null, "cancelled", "cancelled"]);
    expect(answer.items.map(({ estimated }) => estimated)).toEqual([false, false, true, false]);
    await expectAtRest(run);
  });

  it("that has ended changes nothing, and cancelling twice has the effect of once", async () => {
    const run = await openRun();
    const { id } = await run.batch({ prompts: ["done"] });
    expect(await cancel(run, id ?? "")).toMatchObject({ status: "completed" });
    const slow = await openAsync(run, { prompts: prompts(2), model: `up/key/twice/${SLOW}` });
    await untilInFlight("twice", 2);
    await cancel(run, slow);
    await cancel(run, slow);
    await expectAtRest(run);
    expect(ofType(await logOf(run), "slot_completed").length).toBe(3);
  });

  it("survives a loss of the run right after it: the lane is notified when it names its attempts", async () => {
    const run = await openRun({ max_parallel: 4 });
    await withRenewals(50, async () => {
      const group = await openAsync(run, { prompts: prompts(4), model: `up/key/unheard/${SLOW}` });
      await untilInFlight("unheard", 4);
      await run.object.cancelGroup(1);
      await crash(run.object);
      await untilClosed("unheard", 4);
      expect(await lookAt(run, group)).toMatchObject({ status: "cancelled" });
    });
    await expectAtRest(run);
  });
});

describe("cancelling a run", () => {
  it(
    "closes the connections of its batches at once, and those of its single calls by their sockets",
    { tags: ["slow"] },
    async () => {
      // A call that has no socket yet opens one by then, and the run refuses it.
      expect(CALL_SOCKET_AFTER_MS).toBeLessThan(2_000);
      const run = await openRun({ max_parallel: 8, budget: { usd: 1 } });
      const model = `up/key/cancelled-run/${SLOW}`;
      const batch = withTimers([HEARTBEAT_MS], null, () => run.batch({ prompts: prompts(5), model }));
      const queries = prompts(3, "alone").map((prompt) => run.tryQuery({ prompt, model }));
      await untilInFlight("cancelled-run", 8);
      expect((await run.send("DELETE", `/runs/${run.id}`)).status).toBe(200);
      await untilClosed("cancelled-run", 8);
      expect((await batch).status).toBe("cancelled");
      for (const { status, error } of await Promise.all(queries)) {
        expect({ status, code: error?.code }).toEqual({ status: 409, code: "cancelled" });
      }
      await expectAtRest(run);
    },
  );

  it(
    "reaches every descendant run: connections are closed, and reservations released",
    { tags: ["slow"] },
    async () => {
      const root = await openRun({ max_parallel: 8, max_depth: 3, budget: { usd: 1 } });
      const child = await root.openChild({ budget: { usd: 0.5 } });
      const grandchild = await child.openChild({ budget: { usd: 0.2 } });
      const model = `up/key/cancelled-tree/${SLOW}`;
      const batches = [root, child, grandchild].map((run) => run.batch({ prompts: prompts(2), model, concurrency: 2 }));
      const query = grandchild.tryQuery({ prompt: "alone", model });
      await untilInFlight("cancelled-tree", 7);
      expect((await root.send("DELETE", `/runs/${root.id}`)).status).toBe(200);
      await untilClosed("cancelled-tree", 7);
      for (const batch of batches) expect((await batch).status).toBe("cancelled");
      expect((await query).error?.code).toBe("cancelled");
      for (const run of [root, child, grandchild]) await expectAtRest(run);
      expect(ofType(await logOf(root), "child_closed").length).toBe(1);
    },
  );
});

describe("a group that was opened with detach: false", () => {
  it(
    "is cancelled when its client leaves, once its calls in flight have had the time of a short answer",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 4 });
      const client = new AbortController();
      const body = { prompts: prompts(9), model: `up/key/attached/${SLOW}`, detach: false };
      const left = run.post("/batch", body, { signal: client.signal }).then((response) => response.text());
      await untilInFlight("attached", 4);
      client.abort();
      await left.catch(() => null);
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.cancelled).toBe(5);
      await untilClosed("attached", 4);
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("cancelled");
      expect((await upstreamStats("attached")).requests).toBe(4);
      await expectAtRest(run);
    },
  );

  it(
    "runs as long as a client follows it, and is cancelled one lease term after the last one left",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 2 });
      await withRenewals(20, async () => {
        await openFollowed(run);
        for (let look = 0; look < 4; look++) {
          await age(run, LEASE_TTL_MS - 5_000);
          expect((await run.object.waitGroup(1, 0))?.status).toBe("running");
        }
        await age(run, LEASE_TTL_MS - 5_000);
        expect((await upstreamStats("followed")).closed).toBe(0);
        await age(run, 5_000);
        await untilClosed("followed", 2);
      });
      expect((await run.object.waitGroup(1, 0))?.status).toBe("cancelled");
      await expectAtRest(run);
    },
  );
});

/** Opens such a group as a Worker does that dies before it waits, and starts its lane. */
async function openFollowed(run: TestRun): Promise<void> {
  const lanes = await openUnwatched(run, prompts(2), `up/key/followed/${SLOW}`, { detach: false });
  for (const lane of lanes) await env.LANE.getByName(`${run.id}/${lane}`).start(run.id, lane);
  await untilInFlight("followed", 2);
}

/** Puts the time forward, with a renewal of the lane's leases on either side of it, and rings the run's alarm. */
async function age(run: TestRun, ms: number): Promise<void> {
  await untilRenewed(run);
  skipTime(ms);
  await untilRenewed(run);
  await runDurableObjectAlarm(run.object);
}
