/** Requests for child runs that wait for room in their parent: who is next, who left, and what a crash takes. */
import { describe, expect, it } from "vitest";
import { CAPACITY_GRACE_MS, CAPACITY_WAITERS_MAX } from "../../src/limits.ts";
import { env } from "cloudflare:workers";
import { newRunId } from "../../src/objects/address.ts";
import type { OpenChildReply } from "../../src/objects/methods/runs.ts";
import { NO_LIMITS } from "../../src/run/money/ledger.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { crash, evict } from "../support/objects-direct.ts";
import { openedBy, openRun, type TestRun } from "../support/objects-run.ts";
import { childRows, holdsNothing, ringUntil } from "../support/objects-tree.ts";
import { NOTHING_ASKED } from "../support/tree-run.ts";

/** Longer than a busy machine takes to open and end sixty runs. */
const WAIT_MS = 55_000;

/** A request of a Worker, sent to the object itself. */
function ask(parent: TestRun, calls: number, id = newRunId(env), waitMs = WAIT_MS): Promise<OpenChildReply> {
  const wait = { waitMs, isLast: false, isRepeated: false };
  return parent.object.openChild({ ...NOTHING_ASKED, limits: { ...NO_LIMITS, calls } }, id, null, wait);
}

/** The shortage of calls that a request of one call meets: what is free less what waiting requests need. */
async function freeCalls(parent: TestRun): Promise<number> {
  const asked = await ask(parent, 1, newRunId(env), 0);
  if (asked.ok) {
    await parent.send("DELETE", `/runs/${asked.document.id}`);
    return 1;
  }
  return 0;
}

async function untilFree(parent: TestRun, calls: number): Promise<void> {
  while ((await freeCalls(parent)) !== calls) await scheduler.wait(5);
}

const end = (parent: TestRun, id: string): Promise<Response> => parent.send("DELETE", `/runs/${id}`);

describe("requests that wait for room", () => {
  it("are served in order of arrival, and a small one does not overtake a large one", async () => {
    const parent = await openRun({ budget: { calls: 10 } });
    const holder = await parent.openChild({ calls: 9, wait_ms: 0 });
    const served: string[] = [];
    const asked = (name: string, calls: number): Promise<OpenChildReply> =>
      ask(parent, calls).then((reply) => (served.push(name), reply));
    const large = asked("large", 10);
    await untilFree(parent, 0);
    const small = asked("small", 1);
    expect(await ask(parent, 1, newRunId(env), 0)).toMatchObject({ ok: false, reason: { reason: "no_capacity" } });
    await end(parent, holder.id);
    const first = await large;
    expect([first.ok, served]).toEqual([true, ["large"]]);
    if (first.ok) await end(parent, first.document.id);
    expect([(await small).ok, served]).toEqual([true, ["large", "small"]]);
  });

  it(
    "all get their turn, one room after another, and the budget is never exceeded",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const parent = await openRun({ budget: { calls: 3 } });
      let inUse = 0;
      let most = 0;
      const order: number[] = [];
      const work = async (index: number): Promise<void> => {
        const reply = await ask(parent, 1);
        if (!reply.ok) throw new Error(JSON.stringify(reply.reason));
        order.push(index);
        most = Math.max(most, (inUse += 1));
        await scheduler.wait(1);
        inUse -= 1;
        await end(parent, reply.document.id);
      };
      await Promise.all(Array.from({ length: 60 }, (_, index) => work(index)));
      expect(new Set(order).size).toBe(60);
      expect(most).toBeLessThanOrEqual(3);
      expect((await parent.budget()).calls).toMatchObject({ spent: 0, reserved: 0, remaining: 3 });
    },
  );

  it("are at most as many as the bound; one more is refused as overloaded", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const holder = await parent.openChild({ calls: 1, wait_ms: 0 });
    const waiting = Array.from({ length: CAPACITY_WAITERS_MAX }, () => ask(parent, 2));
    await untilFree(parent, 0);
    expect(await ask(parent, 2)).toMatchObject({ ok: false, reason: { reason: "overloaded" } });
    await parent.send("DELETE", `/runs/${parent.id}`);
    expect(new Set((await Promise.all(waiting)).map(({ ok }) => ok))).toEqual(new Set([false]));
    expect(holder.id).not.toBe("");
  });

  it("do not open a child once they were withdrawn, and make way for the next", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const holder = await parent.openChild({ calls: 1, wait_ms: 0 });
    const id = newRunId(env);
    const left = ask(parent, 2, id);
    await untilFree(parent, 0);
    const next = ask(parent, 1);
    await parent.object.withdraw(id);
    expect(await left).toMatchObject({ ok: false, reason: { reason: "cancelled" } });
    expect((await next).ok).toBe(true);
    expect((await childRows(parent)).map(({ id: child }) => child)).not.toContain(id);
    expect(holder.id).not.toBe("");
  });

  it("lose their place if their Worker does not come back in time", { tags: ["slow"] }, async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    await parent.openChild({ calls: 1, wait_ms: 0 });
    expect(await ask(parent, 2, newRunId(env), 1)).toMatchObject({ ok: false, reason: { reason: "no_capacity" } });
    expect(await freeCalls(parent)).toBe(0);
    await scheduler.wait(CAPACITY_GRACE_MS);
    expect(await freeCalls(parent)).toBe(1);
  });

  it("are withdrawn when their client leaves", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const holder = await parent.openChild({ calls: 1, wait_ms: 0 });
    const leaving = new AbortController();
    const asked = parent.post("/runs", { calls: 2, wait_ms: 60_000 }, { signal: leaving.signal });
    await untilFree(parent, 0);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await untilFree(parent, 1);
    await end(parent, holder.id);
    expect((await parent.budget()).calls).toMatchObject({ reserved: 0 });
  });
});

describe("a crash", () => {
  it("of the parent while a request waits makes its Worker ask the next instance, and opens one child", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const holder = await parent.openChild({ calls: 1, wait_ms: 0 });
    const asked = parent.post("/runs", { calls: 2, wait_ms: 60_000 });
    await untilFree(parent, 0);
    await crash(parent.object);
    await untilFree(parent, 0);
    await end(parent, holder.id);
    await openedBy(await asked);
    expect((await parent.budget()).calls).toMatchObject({ reserved: 2, remaining: 0 });
  });

  it("of the parent after it opened the child gives the same child to the repeated call", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const id = newRunId(env);
    expect((await ask(parent, 2, id)).ok).toBe(true);
    await crash(parent.object);
    const wait = { waitMs: WAIT_MS, isLast: true, isRepeated: true };
    const again = await parent.object.openChild(
      { ...NOTHING_ASKED, limits: { ...NO_LIMITS, calls: 2 } },
      id,
      null,
      wait,
    );
    expect(again).toMatchObject({ ok: true, replayed: true, document: { id } });
    expect((await childRows(parent)).filter((child) => child.id === id)).toHaveLength(1);
  });

  it("of a child keeps its reservation, and its end frees it for who waits", async () => {
    const parent = await openRun({ budget: { calls: 2 } });
    const holder = await parent.openChild({ calls: 1, wait_ms: 0 });
    const next = ask(parent, 2);
    await untilFree(parent, 0);
    await evict(holder.object);
    await crash(holder.object);
    await holder.send("POST", `/runs/${holder.id}/close`);
    expect((await next).ok).toBe(true);
    await parent.send("DELETE", `/runs/${parent.id}`);
    await ringUntil([holder, parent], () => holdsNothing(parent));
  });
});
