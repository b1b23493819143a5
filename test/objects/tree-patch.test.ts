/** `PATCH /runs/:id`: limits, width and pause of roots and children; a child's hold follows its limits. */
import { describe, expect, it } from "vitest";
import { evict } from "../support/objects-direct.ts";
import {
  asOperator,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { begin, holdsNothing, priceOf, refusalOf, spend } from "../support/objects-tree.ts";

const patch = (run: TestRun, body: unknown): Promise<Response> => asOperator("PATCH", `/runs/${run.id}`, body);

async function patched(run: TestRun, body: unknown): Promise<void> {
  const response = await patch(run, body);
  expect([response.status, response.ok ? "" : await response.text()]).toEqual([200, ""]);
}

describe("new limits of a root run", () => {
  it("rise, and calls that waited for budget start", async () => {
    const root = await openRun({ budget: { calls: 1 } });
    await spend(root, 1, 1);
    expect((await root.tryQuery({ prompt: "p", model: "up/x" })).status).toBe(402);
    await patched(root, { budget: { calls: 2 } });
    expect((await root.tryQuery({ prompt: "p", model: "up/x" })).status).toBe(200);
    expect((await root.budget()).calls).toEqual({ limit: 2, spent: 2, reserved: 0, remaining: 0 });
  });

  it("fall to no less than spent and reserved, children included; below that they are refused", async () => {
    const root = await openRun({ budget: { usd: 1, calls: 50 } });
    await root.openChild({ budget: { usd: 0.25, calls: 5 } });
    await spend(root, 1, 1);
    await begin(root);
    const refused = await refusalOf(await patch(root, { budget: { calls: 6 } }));
    expect(refused).toMatchObject({
      status: 409,
      code: "budget_below_committed",
      dimension: "calls",
      limit: 6,
      committed: 7,
    });
    const committed = 0.25 + (priceOf(1, 1) + priceOf(100, 100)) / 1e9;
    const short = await refusalOf(await patch(root, { budget: { usd: 0.25 } }));
    expect(short).toMatchObject({ status: 409, dimension: "usd", committed });
    expect((await root.budget()).calls.limit).toBe(50);
    await patched(root, { budget: { calls: 7, usd: committed } });
    expect((await root.budget()).calls.remaining).toBe(0);
    expect((await root.budget()).usd.remaining).toBe(0);
  });

  it("survive a restart", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    await patched(root, { budget: { usd: 2, calls: 9 }, max_parallel: 3, paused: true });
    await evict(root.object);
    expect(await root.document()).toMatchObject({ status: "paused", max_parallel: 3, effective_parallel: 3 });
    const { usd, calls } = await root.budget();
    expect([usd.limit, calls.limit]).toEqual([2, 9]);
  });

  it("that two operators set concurrently in two dimensions both apply", async () => {
    const root = await openRun({ budget: { usd: 1, calls: 10 } });
    await Promise.all([patched(root, { budget: { usd: 2 } }), patched(root, { budget: { calls: 20 } })]);
    const { usd, calls } = await root.budget();
    expect([usd.limit, calls.limit]).toEqual([2, 20]);
  });

  it("cannot be set in a dimension without a limit while children without that limit are open", async () => {
    const root = await openRun();
    const child = await root.openChild();
    await spend(child, 50, 50);
    expect(await refusalOf(await patch(root, { budget: { usd: 0.000001 } }))).toMatchObject({
      status: 400,
      param: "budget.usd",
    });
    await child.post(`/runs/${child.id}/close`, {});
    await patched(root, { budget: { usd: 1 } });
    expect((await root.budget()).usd).toMatchObject({ limit: 1, spent: priceOf(50, 50) / 1e9 });
  });

  it("can only be set by the operator, not with the run's own token", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild();
    for (const run of [root, child]) {
      const answer = await refusalOf(await root.send("PATCH", `/runs/${run.id}`, { budget: { usd: 9 } }));
      expect(answer).toMatchObject({ status: 403, code: "forbidden" });
    }
    expect((await asOperator("PATCH", "/runs/run_unknown", { paused: true })).status).toBe(404);
  });

  it.each([
    ["budget.usd", { budget: { usd: -1 } }],
    ["budget.usd", { budget: { usd: null } }],
    ["budget.tokens", { budget: { tokens: 1 } }],
    ["max_parallel", { max_parallel: 4_097 }],
    ["paused", { paused: "yes" }],
    ["name", { name: "new" }],
  ])("are refused with the name of the wrong field %s: %j", async (param, body) => {
    const root = await openRun({ budget: { usd: 1 } });
    expect(await refusalOf(await patch(root, body))).toMatchObject({ status: 400, param });
  });
});

describe("new limits of a child", () => {
  it("change the parent's reservation in both directions", async () => {
    const root = await openRun({ budget: { usd: 1, calls: 10 } });
    const child = await root.openChild({ budget: { usd: 0.25, calls: 2 } });
    await patched(child, { budget: { usd: 0.75 } });
    expect((await root.budget()).usd).toMatchObject({ reserved: 0.75, remaining: 0.25 });
    expect((await child.budget()).usd.limit).toBe(0.75);
    await patched(child, { budget: { usd: 0.1, calls: 9 } });
    expect((await root.budget()).usd.reserved).toBe(0.1);
    expect((await root.budget()).calls.reserved).toBe(9);
    expect((await child.budget()).calls).toMatchObject({ limit: 9, remaining: 9 });
  });

  it("are refused if the parent has less left, and nothing changes", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const refused = await refusalOf(await patch(child, { budget: { usd: 1.1 } }));
    expect(refused).toMatchObject({ status: 402, code: "budget_exhausted", param: "budget.usd", remaining: 0.5 });
    expect((await child.budget()).usd.limit).toBe(0.5);
    expect((await root.budget()).usd.reserved).toBe(0.5);
    await patched(child, { budget: { usd: 1 } });
    expect((await root.budget()).usd.remaining).toBe(0);
  });

  it("are refused below what it has committed, and its reservation does not change", async () => {
    const root = await openRun({ budget: { calls: 10 } });
    const child = await root.openChild({ budget: { calls: 5 } });
    await spend(child, 1, 1);
    await begin(child);
    expect((await patch(child, { budget: { calls: 1 } })).status).toBe(409);
    expect((await root.budget()).calls.reserved).toBe(5);
    await patched(child, { budget: { calls: 2 } });
    expect((await root.budget()).calls.reserved).toBe(2);
  });

  it("that are set many times concurrently end with the reservation at the limit", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.1 } });
    const asked = [0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.5];
    const answers = await Promise.all(asked.map((usd) => patch(child, { budget: { usd } })));
    expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 200));
    expect((await root.budget()).usd.reserved).toBe((await child.budget()).usd.limit);
  });

  it("are refused after it has ended", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    await child.post(`/runs/${child.id}/close`, {});
    const refused = await refusalOf(await patch(child, { budget: { usd: 0.6 } }));
    expect(refused).toMatchObject({ status: 409, code: "cancelled" });
    expect(await holdsNothing(root)).toBe(true);
  });
});

describe("a paused run", () => {
  it("queues new calls, lets calls in flight end, and continues when it is resumed", async () => {
    const run = await openRun({ max_parallel: 2 });
    const model = "up/key/paused/latch/paused";
    const running = run.query({ prompt: "running", model });
    await untilInFlight("paused", 1);
    await patched(run, { paused: true });
    expect((await run.document()).status).toBe("paused");
    const waiting = run.query({ prompt: "waiting", model });
    const batch = run.batch({ prompts: prompts(3), model });
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(5);
    await openLatch("paused");
    expect((await running).text).toBe("running");
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(4);
    expect((await upstreamStats("paused")).requests).toBe(1);
    await patched(run, { paused: false });
    expect((await waiting).text).toBe("waiting");
    expect((await batch).results).toEqual(prompts(3));
    expect((await run.document()).status).toBe("active");
  });

  it("that is closed cannot be resumed", async () => {
    const run = await openRun();
    await patched(run, { paused: true });
    await run.post(`/runs/${run.id}/close`, {});
    await patched(run, { paused: false });
    expect((await run.document()).status).toBe("closed");
    expect((await run.tryQuery({ prompt: "p" })).status).toBe(401);
  });
});

describe("a new width", () => {
  it("applies from then on, also to queued calls", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 1 });
    const batch = run.batch({ prompts: prompts(12), model: "up/key/widened/latch/widened", concurrency: 6 });
    await untilInFlight("widened", 1);
    await patched(run, { max_parallel: 6 });
    await untilInFlight("widened", 6);
    await openLatch("widened");
    await batch;
    await Promise.all(
      prompts(6).map((prompt) => run.query({ prompt, model: "up/key/widened-too/barrier/6/within/15000" })),
    );
  });
});
