/** A child's end reaches its parent exactly once, whatever dies on the way. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { RunObject } from "../../src/index.ts";
import { FOUND_LEASE_TTL_MS } from "../../src/limits.ts";
import { abortFromWithin, crash, evict, storedLeases } from "../support/objects-direct.ts";
import { expectAtRest } from "../support/objects-group.ts";
import { logOf } from "../support/objects-log.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import {
  begin,
  childRows,
  holdsNothing,
  interceptNextReport,
  interceptNextResize,
  priceOf,
  ring,
  ringUntil,
  spend,
  used,
} from "../support/objects-tree.ts";

const SPENT = priceOf(70, 30);

/** A root of one dollar, and a child of half of it that has spent `SPENT`. */
async function family(): Promise<{ root: TestRun; child: TestRun }> {
  const root = await openRun({ budget: { usd: 1, calls: 10 } });
  const child = await root.openChild({ budget: { usd: 0.5, calls: 5 } });
  await spend(child, 70, 30);
  return { root, child };
}

async function expectSettledOnce(root: TestRun, child: TestRun): Promise<void> {
  await ringUntil([child, root], () => holdsNothing(root));
  // Whatever is still on its way may arrive now.
  await ringUntil([child, root], async () => true);
  const budget = await root.object.budget();
  expect(budget?.usd).toEqual({ limit: 1, spent: SPENT / 1e9, reserved: 0, remaining: (1e9 - SPENT) / 1e9 });
  expect(budget?.calls).toEqual({ limit: 10, spent: 1, reserved: 0, remaining: 9 });
  expect((await childRows(root)).map(({ state, spent }) => [state, spent?.usd])).toEqual([["ended", SPENT]]);
  expect((await child.object.budget())?.usd.spent).toBe(SPENT / 1e9);
  for (const run of [root, child]) await expectAtRest(run);
  const told = (await logOf(root)).filter(({ event_type }) => event_type.startsWith("child_"));
  expect(told.map(({ event_type }) => event_type)).toEqual(["child_opened", "child_closed"]);
}

describe("a child's report to its parent", () => {
  describe.each(["closed", "cancelled"] as const)("of a child that was %s", (status) => {
    it.each(["parent", "child", "both"])("counts once if the %s is lost before it is received", async (who) => {
      const { root, child } = await family();
      interceptNextReport(child, async (_, parent) => {
        if (who !== "parent") await crash(child.object);
        if (who !== "child") abortFromWithin(parent);
        throw new Error("the test loses a report");
      });
      await child.object.endAndWait(status, null).catch(() => null);
      await expectSettledOnce(root, child);
    });

    it.each(["parent", "child", "both"])("counts once if the %s is lost after it was received", async (who) => {
      const { root, child } = await family();
      interceptNextReport(child, async (real, parent) => {
        await real();
        if (who !== "parent") await crash(child.object);
        if (who !== "child") abortFromWithin(parent);
        throw new Error("the test loses the reply");
      });
      await child.object.endAndWait(status, null).catch(() => null);
      await expectSettledOnce(root, child);
    });

    it.each(["parent", "child", "both"])("counts once if the %s is evicted before it is sent", async (who) => {
      const { root, child } = await family();
      await child.object.end(status);
      if (who !== "parent") await evict(child.object);
      if (who !== "child") await evict(root.object);
      await expectSettledOnce(root, child);
    });
  });

  it("is sent by the child's alarm alone, if no client waits for its end", async () => {
    const { root, child } = await family();
    await child.object.end("closed");
    await expect.poll(() => holdsNothing(root)).toBe(true);
    await expectSettledOnce(root, child);
  });

  it("matches the child's rows: a settlement not yet written is written first", async () => {
    const { root, child } = await family();
    const attemptId = await begin(child);
    await child.object.end("closed");
    interceptNextReport(child, async (real) => {
      await real();
      await crash(child.object);
      throw new Error("the test loses the reply");
    });
    await child.object.settle({ attemptId, outcome: used(10, 10), stored: null });
    await child.object.endAndWait("closed", null).catch(() => null);
    await ringUntil([child, root], () => holdsNothing(root));
    await expect.poll(() => storedLeases(child)).toBe(0);
    const spent = (SPENT + priceOf(10, 10)) / 1e9;
    expect((await root.object.budget())?.usd.spent).toBe(spent);
    expect((await child.object.budget())?.usd).toMatchObject({ spent, reserved: 0 });
  });
});

describe("a parent that was restarted with calls in flight", () => {
  it("notifies its children of its end at once, even if its alarm keeps its time", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    await begin(root);
    await crash(root.object);
    // The platform's own alarm: while it runs, no other one does.
    await runInDurableObject(root.object, (_: RunObject, state) => state.storage.setAlarm(Date.now()));
    await scheduler.wait(200);
    await root.object.end("closed");
    // Before the terms of the found leases are over, with which the alarm ends.
    const timeout = FOUND_LEASE_TTL_MS / 2;
    await expect.poll(async () => (await child.object.document(null))?.status, { timeout }).toBe("closed");
    await root.object.end("cancelled");
    await ringUntil([child, root], () => holdsNothing(root));
  });
});

describe("a parent that is lost while it notifies its children of its end", () => {
  it("notifies them once more", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const children = [await root.openChild(), await root.openChild(), await root.openChild()];
    for (const child of children) await begin(child, 10);
    await root.object.end("cancelled");
    await crash(root.object);
    await ringUntil([root, ...children], () => holdsNothing(root));
    for (const child of children) expect((await child.object.document(null))?.status).toBe("cancelled");
    expect((await root.object.budget())?.usd.spent).toBe((3 * priceOf(100, 10)) / 1e9);
  });
});

describe("a parent's reservation for a child", () => {
  const change = (usd: number) => ({
    limits: { usd: usd * 1e9 },
    maxParallel: null,
    paused: null,
    rootNanoUsdPerDay: null,
  });
  const reservedUsd = async (run: TestRun): Promise<number | undefined> => (await run.object.budget())?.usd.reserved;

  describe.each(["before", "after"])(
    "whose limit was being changed, and which was lost %s its parent was notified,",
    (when) => {
      async function lost(usd: number): Promise<{ root: TestRun; child: TestRun }> {
        const { root, child } = await family();
        interceptNextResize(child, async (real) => {
          if (when === "after") await real();
          await crash(child.object);
          throw new Error("the test loses the change");
        });
        expect(await child.object.patch(change(usd)).catch(() => "lost")).toBe("lost");
        return { root, child };
      }

      it("is the lower limit, even without a retry", async () => {
        const { root, child } = await lost(0.25);
        expect((await child.object.budget())?.usd.limit).toBe(0.25);
        await ringUntil([child], async () => (await reservedUsd(root)) === 0.25);
      });

      it("is unchanged if the limit was to rise and is not retried", async () => {
        const { root, child } = await lost(0.75);
        expect((await child.object.budget())?.usd.limit).toBe(0.5);
        await ringUntil([child], async () => (await reservedUsd(root)) === 0.5);
        expect((await childRows(root)).map(({ hold }) => hold.usd)).toEqual([500_000_000]);
      });

      it.each([0.25, 0.75])("is %d if the same change is retried", async (usd) => {
        const { root, child } = await lost(usd);
        expect(await child.object.patch(change(usd))).toMatchObject({ ok: true });
        expect((await child.object.budget())?.usd.limit).toBe(usd);
        expect(await reservedUsd(root)).toBe(usd);
      });
    },
  );

  it("follows a lower limit by the child's alarm, if the parent was unreachable", async () => {
    const { root, child } = await family();
    let lost = 0;
    interceptNextResize(child, () => {
      lost++;
      return Promise.reject(new Error("the test loses the change"));
    });
    await child.object.patch(change(0.25)).catch(() => null);
    // The child's alarm may have followed already.
    expect(lost).toBe(1);
    await ringUntil([child], async () => (await reservedUsd(root)) === 0.25);
  });

  it("is no less than a limit that rises while the alarm repeats an earlier change", async () => {
    const { root, child } = await family();
    interceptNextResize(child, () => Promise.reject(new Error("the test loses the change")));
    await child.object.patch(change(0.25)).catch(() => null);
    const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    interceptNextResize(child, async (real) => {
      held.resolve();
      await release.promise;
      return real();
    });
    await ring(child.object);
    await held.promise;
    const raised = child.object.patch(change(0.4)).catch(() => null);
    await scheduler.wait(50);
    release.resolve();
    expect(await raised).toMatchObject({ ok: true });
    await ringUntil([child], async () => (await reservedUsd(root)) === 0.4);
    expect((await child.object.budget())?.usd.limit).toBe(0.4);
  });
});
