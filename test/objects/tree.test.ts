import { abortAllDurableObjects } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { Children } from "../../durable-objects/run/memory/children.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { RunObject } from "../../src/index.ts";
import { skipTime } from "../support/objects-clock.ts";
import { evict } from "../support/objects-direct.ts";
import {
  TestRun,
  asOperator,
  openedBy,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
} from "../support/objects-run.ts";
import { NOTHING_ASKED } from "../support/tree-run.ts";
import { begin, childRows, holdsNothing, priceOf, refusalOf, ringUntil, spend, used } from "../support/objects-tree.ts";

describe("a child run", () => {
  it("has its whole budget reserved in its parent at once, and releases what it did not spend", async () => {
    const root = await openRun({ budget: { usd: 1, calls: 10 } });
    const child = await root.openChild({ budget: { usd: 0.25, calls: 4 } });
    expect((await root.budget()).usd).toEqual({ limit: 1, spent: 0, reserved: 0.25, remaining: 0.75 });
    expect((await root.budget()).calls).toEqual({ limit: 10, spent: 0, reserved: 4, remaining: 6 });
    const answer = await child.query({ prompt: "p", model: "up/key/child-spends" });
    expect((await root.budget()).usd).toMatchObject({ spent: 0, reserved: 0.25 });
    expect((await child.post(`/runs/${child.id}/close`, {})).status).toBe(200);
    expect((await root.budget()).usd).toMatchObject({ spent: answer.usage.cost, reserved: 0 });
    expect((await root.budget()).calls).toEqual({ limit: 10, spent: 1, reserved: 0, remaining: 9 });
  });

  it("reports its parent and depth, and is visible only to its parent and the operator", async () => {
    const root = await openRun();
    const child = await root.openChild({ name: "child" });
    const stranger = await openRun();
    expect(await child.document()).toMatchObject({ name: "child", parent_id: root.id, depth: 1 });
    expect((await root.send("GET", `/runs/${child.id}`)).status).toBe(200);
    expect((await asOperator("GET", `/runs/${child.id}`)).status).toBe(200);
    expect((await stranger.send("GET", `/runs/${child.id}`)).status).toBe(404);
    expect((await child.send("GET", `/runs/${root.id}`)).status).toBe(404);
  });

  it("can be opened by the operator in a named run", async () => {
    const root = await openRun({ budget: { calls: 10 } });
    const { object } = root;
    const limits = { usd: null, calls: 3, prompt_tokens: null, completion_tokens: null, new_tokens: null };
    await object.openChild({ ...NOTHING_ASKED, limits }, "run_named");
    expect((await root.budget()).calls.reserved).toBe(3);
    expect((await asOperator("GET", "/runs/run_named")).status).toBe(200);
  });

  it("that requests more than its parent has left is refused with the field's name, and leaves no trace", async () => {
    const root = await openRun({ budget: { usd: 0.5, completion_tokens: 100 } });
    const tooDear = await refusalOf(await root.post("/runs", { budget: { usd: 0.6 } }));
    expect(tooDear).toMatchObject({ status: 402, code: "budget_exhausted", param: "budget.usd", remaining: 0.5 });
    const tooLong = await refusalOf(await root.post("/runs", { budget: { completion_tokens: 101 } }));
    expect(tooLong).toMatchObject({ status: 402, param: "budget.completion_tokens" });
    expect([await holdsNothing(root), await childRows(root)]).toEqual([true, []]);
  });

  it.each([
    ["budget.usd", { budget: { usd: -0.1 } }],
    ["budget.usd", { budget: { usd: 1_000_001 } }],
    ["budget.calls", { budget: { calls: 1.5 } }],
    ["budget.calls", { budget: { calls: null } }],
    ["budget.eur", { budget: { eur: 1 } }],
    ["max_depth", { max_depth: 17 }],
    ["unpriced", { unpriced: "free" }],
  ])("is refused with the name of the wrong field %s: %j", async (param, request) => {
    const root = await openRun();
    expect(await refusalOf(await root.post("/runs", request))).toMatchObject({ status: 400, param });
    expect(await childRows(root)).toEqual([]);
  });

  it("with a budget of zero opens, and refuses every call", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0 } });
    expect(await child.tryQuery({ prompt: "p", model: "up/key/zero" })).toMatchObject({
      status: 402,
      error: { code: "budget_exhausted" },
    });
    expect((await upstreamStats("zero")).requests).toBe(0);
  });

  it("beyond max_depth is refused with the message that agents match", async () => {
    const root = await openRun({ max_depth: 2, budget: { calls: 100 } });
    const grandchild = await (await root.openChild()).openChild();
    expect((await grandchild.document()).depth).toBe(2);
    const refused = await refusalOf(await grandchild.post("/runs", {}));
    expect(refused).toMatchObject({ status: 403, code: "depth_exceeded", max_depth: 2 });
    expect(refused.message).toBe(
      "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.",
    );
    expect(await holdsNothing(grandchild)).toBe(true);
  });

  it("cannot use a model that its parent may not use", async () => {
    const root = await openRun({ models: ["up/key/*"] });
    const child = await root.openChild({ models: ["*"] });
    expect((await child.tryQuery({ prompt: "p", model: "up/other" })).error?.code).toBe("model_not_allowed");
    expect((await child.tryQuery({ prompt: "p", model: "up/key/narrow" })).status).toBe(200);
  });
});

describe("a hundred concurrent requests for children", () => {
  it("never oversell their parent: as many open as its budget covers", { tags: ["slow"] }, async () => {
    const root = await openRun({ budget: { usd: 1, calls: 1_000 } });
    const answers = await Promise.all(prompts(100).map(() => root.post("/runs", { budget: { usd: 0.03, calls: 5 } })));
    const opened = answers.filter(({ status }) => status === 201);
    const refused = await Promise.all(answers.filter(({ status }) => status !== 201).map(refusalOf));
    expect([opened.length, refused.length]).toEqual([33, 67]);
    for (const each of refused) expect(each).toMatchObject({ status: 402, param: "budget.usd" });
    expect((await root.budget()).usd).toMatchObject({ spent: 0, reserved: 0.99 });
    expect((await root.budget()).calls.reserved).toBe(33 * 5);
    const children = await Promise.all(opened.map(openedBy));
    await Promise.all(children.map((child) => child.post(`/runs/${child.id}/close`, {})));
    expect(await holdsNothing(root)).toBe(true);
  });

  it("without a budget each get an equal share, also after a restart, and one more gets what is left", async () => {
    const root = await openRun({ budget: { usd: 1 }, max_parallel: 4 });
    const shares: number[] = [];
    for (let count = 0; count < 5; count++) {
      if (count === 2) await evict(root.object);
      shares.push((await (await root.openChild()).budget()).usd.limit ?? -1);
    }
    expect(shares).toEqual([0.25, 0.25, 0.25, 0.25, 0]);
    expect((await root.budget()).usd.remaining).toBe(0);
  });
});

describe("a child that has ended", () => {
  it("accepts neither calls nor children", async () => {
    const root = await openRun({ budget: { calls: 10 } });
    const child = await root.openChild({ budget: { calls: 5 } });
    const closed = await child.post(`/runs/${child.id}/close`, {});
    expect(await closed.json()).toMatchObject({ id: child.id, status: "closed" });
    for (const path of ["/query", "/batch", "/runs"]) {
      const body = path === "/query" ? { prompt: "p" } : path === "/batch" ? { prompts: ["p"] } : {};
      expect(await refusalOf(await child.post(path, body)), path).toMatchObject({
        status: 401,
        code: "invalid_api_key",
      });
    }
    expect((await root.tryQuery({ prompt: "p", model: "up/x" })).status).toBe(200);
  });

  it("counts once, however often it is ended", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    await spend(child, 50, 20);
    const end = () => root.send("DELETE", `/runs/${child.id}`);
    await Promise.all([end(), child.post(`/runs/${child.id}/close`, {}), end()]);
    await end();
    await root.object.childEnded(child.id, {
      usd: 1e9,
      calls: 9,
      prompt_tokens: 9,
      completion_tokens: 9,
      new_tokens: 18,
    });
    expect((await root.budget()).usd).toMatchObject({ spent: priceOf(50, 20) / 1e9, reserved: 0 });
    expect(await childRows(root)).toMatchObject([{ state: "ended" }]);
  });

  it("finishes its calls in flight before it settles, if it was closed", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const query = child.query({ prompt: "p", model: "up/key/closing/latch/closing" });
    await untilInFlight("closing", 1);
    const closing = child.post(`/runs/${child.id}/close`, {});
    await openLatch("closing");
    expect((await closing).status).toBe(200);
    const { cost } = (await query).usage;
    expect((await root.budget()).usd).toMatchObject({ spent: cost, reserved: 0 });
  });
});

describe("deleting a run", () => {
  it(
    "cancels all three levels below it: calls in flight are charged at their reservation, and nothing stays reserved",
    { tags: ["slow"] },
    async () => {
      const root = await openRun({ budget: { usd: 1, calls: 100 } });
      const child = await root.openChild({ budget: { usd: 0.5, calls: 50 } });
      const grandchild = await child.openChild({ budget: { usd: 0.2, calls: 20 } });
      const last = await grandchild.openChild({ budget: { usd: 0.1, calls: 10 } });
      const tree = [root, child, grandchild, last];
      for (const run of tree) await begin(run, 100);
      await spend(last, 40, 30);
      const deleted = await asOperator("DELETE", `/runs/${root.id}`);
      expect(await deleted.json()).toMatchObject({ status: "cancelled" });
      for (const run of tree) {
        expect((await run.object.document(null))?.status).toBe("cancelled");
        expect(await holdsNothing(run)).toBe(true);
      }
      const own = priceOf(100, 100);
      const spent = await Promise.all(tree.map(async (run) => (await run.object.budget())?.usd.spent));
      const lowest = own + priceOf(40, 30);
      expect(spent).toEqual([lowest + 3 * own, lowest + 2 * own, lowest + own, lowest].map((nano) => nano / 1e9));
      expect((await root.object.budget())?.calls.spent).toBe(5);
      for (const run of tree) expect((await run.tryQuery({ prompt: "p" })).status).toBe(401);
    },
  );

  it("stops batches below it, and accepts no more reports of their answers", { tags: ["slow"] }, async () => {
    const root = await openRun({ budget: { usd: 1 }, max_parallel: 4 });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const batch = child.batch({ prompts: prompts(20), model: "up/key/stopped/latch/stopped", max_tokens: 50 });
    await untilInFlight("stopped", 4);
    await root.send("DELETE", `/runs/${root.id}`);
    const answer = await batch;
    expect(answer.items.map(({ status }) => status)).toEqual(Array(20).fill("cancelled"));
    // What was in flight may have cost something, what never started has not.
    expect(answer.items.map(({ estimated }) => estimated)).toEqual([...Array(4).fill(true), ...Array(16).fill(false)]);
    const spent = (await root.object.budget())?.usd.spent;
    expect(spent).toBeCloseTo(answer.usage.cost, 9);
    await openLatch("stopped");
    await untilInFlight("stopped", 0);
    expect((await root.object.budget())?.usd).toMatchObject({ spent, reserved: 0 });
    expect((await upstreamStats("stopped")).requests).toBe(4);
  });

  it("does not affect its parent and siblings", async () => {
    const root = await openRun({ budget: { calls: 10 } });
    const [first, second] = [await root.openChild(), await root.openChild()];
    await root.send("DELETE", `/runs/${first.id}`);
    expect((await second.document()).status).toBe("active");
    expect((await root.document()).status).toBe("active");
    expect((await first.send("DELETE", `/runs/${second.id}`)).status).toBe(404);
    expect((await first.send("DELETE", `/runs/${root.id}`)).status).toBe(404);
    expect((await root.document()).status).toBe("active");
  });
});

describe("the end of a parent", () => {
  it("by expiry ends its children, whatever their own expiry", async () => {
    const root = await openRun({ budget: { usd: 1 }, expires_in_s: 60 });
    const child = await root.openChild({ budget: { usd: 0.5 }, expires_in_s: 9_999 });
    const grandchild = await child.openChild({ budget: { usd: 0.1 } });
    expect((await grandchild.document()).expires_at).toBe((await root.document()).expires_at);
    await spend(grandchild, 50, 20);
    const lost = await begin(child, 10);
    skipTime(60_000);
    await ringUntil([root, child, grandchild], () => holdsNothing(root));
    for (const run of [root, child, grandchild]) expect((await run.object.document(null))?.status).toBe("expired");
    expect((await child.object.settle({ attemptId: lost, outcome: used(1, 1), stored: null })).known).toBe(false);
    expect((await root.object.budget())?.usd.spent).toBe((priceOf(50, 20) + priceOf(100, 10)) / 1e9);
  });

  it("by being closed lets calls in flight below it finish", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const running = await begin(child);
    const closing = root.post(`/runs/${root.id}/close`, {});
    await ringUntil([root], async () => (await child.object.document(null))?.status === "closed");
    expect((await root.object.budget())?.usd.reserved).toBe(0.5);
    expect((await child.object.settle({ attemptId: running, outcome: used(10, 5), stored: null })).known).toBe(true);
    await ringUntil([child, root], () => holdsNothing(root));
    expect((await closing).status).toBe(200);
    expect((await root.object.budget())?.usd.spent).toBe(priceOf(10, 5) / 1e9);
  });
});

describe("a child whose opening was never confirmed", () => {
  it("releases its reservation within a lease term, and never opens", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const plain = RunObject.prototype.open;
    RunObject.prototype.open = () => {
      RunObject.prototype.open = plain;
      throw new Error("the test lets an opening fail");
    };
    const named = { headers: { "idempotency-key": "sub-agent" } };
    expect((await root.post("/runs", { budget: { usd: 0.5 } }, named)).status).toBe(500);
    const [row] = await childRows(root);
    expect(row?.state).toBe("opening");
    expect((await root.budget()).usd.reserved).toBe(0.5);
    skipTime(LEASE_TTL_MS);
    await ringUntil([root], () => holdsNothing(root));
    const again = await refusalOf(await root.post("/runs", { budget: { usd: 0.5 } }, named));
    expect(again).toMatchObject({ status: 409, code: "cancelled" });
    expect((await root.budget()).usd).toEqual({ limit: 1, spent: 0, reserved: 0, remaining: 1 });
    expect((await asOperator("GET", `/runs/${row?.id}`)).status).toBe(404);
  });

  it("is opened once if its key arrives several times in one turn", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    // A run with calls in flight gathers what arrives into turns.
    for (let call = 0; call < 3; call += 1) await begin(root);
    const named = { key: "sub-agent", hash: "of what it asks" };
    const opening = Array.from({ length: 6 }, (_, at) => root.object.openChild(NOTHING_ASKED, `run_${at}`, named));
    const opened = (await Promise.all(opening)).map((reply) => (reply.ok ? reply.document.id : reply.reason));
    expect(new Set(opened)).toEqual(new Set((await childRows(root)).map(({ id }) => id)));
    expect(await childRows(root)).toHaveLength(1);
  });

  it("is returned by its idempotency key, even if its parent was lost in between", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const plain = RunObject.prototype.open;
    RunObject.prototype.open = function (this: RunObject, ...args: Parameters<typeof plain>) {
      RunObject.prototype.open = plain;
      plain.apply(this, args);
      throw new Error("the test loses the reply of the opened child");
    };
    const named = { headers: { "idempotency-key": "sub-agent" } };
    expect((await root.post("/runs", { budget: { usd: 0.5 } }, named)).status).toBe(500);
    await evict(root.object);
    const answer = await root.post("/runs", { budget: { usd: 0.5 } }, named);
    const [row] = await childRows(root);
    expect([answer.status, await answer.json()]).toEqual([201, expect.objectContaining({ id: row?.id })]);
    expect(row?.state).toBe("open");
    expect((await root.budget()).usd.reserved).toBe(0.5);
  });

  it("releases its reservation even if its object exists and its parent was lost in between", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const plain = Children.prototype.confirm;
    Children.prototype.confirm = () => {
      Children.prototype.confirm = plain;
      throw new Error("the test loses the parent");
    };
    expect((await root.post("/runs", { budget: { usd: 0.5 } })).status).toBe(500);
    const [row] = await childRows(root);
    const child = new TestRun(row?.id ?? "", "");
    expect(await child.object.document(null)).toMatchObject({ status: "active" });
    expect((await root.budget()).usd.reserved).toBe(0.5);
    skipTime(LEASE_TTL_MS);
    await ringUntil([root, child], () => holdsNothing(root));
    expect(await child.object.document(null)).toMatchObject({ status: "cancelled" });
    expect((await root.budget()).usd).toEqual({ limit: 1, spent: 0, reserved: 0, remaining: 1 });
  });
});

describe("a tree that restarts", () => {
  it("has the same figures at every node as before", { tags: ["slow"] }, async () => {
    const root = await openRun({ budget: { usd: 1, calls: 50 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const ended = await root.openChild({ budget: { usd: 0.1 } });
    await spend(ended, 10, 10);
    await ended.post(`/runs/${ended.id}/close`, {});
    await begin(child);
    const look = async () => [await root.budget(), await child.budget(), await root.object.figures()];
    const before = await look();
    for (const run of [root, child]) await evict(run.object);
    expect(await look()).toEqual(before);
    await abortAllDurableObjects();
    expect(await look()).toEqual(before);
  });
});
