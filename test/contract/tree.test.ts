/** A tree of runs as its members meet it: what a child gets, what it costs its parent, who may do what, and how it ends. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const opened = z.looseObject({
  id: z.string(),
  token: z.string(),
  parent_id: z.string().nullable(),
  depth: z.int(),
  expires_at: z.string(),
  max_parallel: z.int(),
});
const subtree = z.looseObject({
  subtree: z.strictObject({
    runs: z.int(),
    complete: z.boolean(),
    budget: z.record(z.string(), z.strictObject({ spent: z.number(), in_flight: z.number() })),
  }),
});

const root = (budget: Record<string, number>, more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget, default_model: "up-1", ...more });
const tryChild = (parent: RunAccess, body: Record<string, unknown> = {}) => parent.send("/runs", { json: body });
async function openChild(parent: RunAccess, body: Record<string, unknown> = {}) {
  const answer = await tryChild(parent, body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  const document = opened.parse(answer.json);
  const { id, token } = document;
  const access: RunAccess = { id, token, send: (path, request) => world.send(path, { token, ...request }) };
  return { ...access, document };
}
const callsOf = async (run: RunAccess) => (await documentOf(run)).budget.calls;
const send = async (run: RunAccess, prompt = "p") => replyOf(await run.send("/query", { json: { prompt } }));
const close = (by: RunAccess, id: string) => by.send(`/runs/${id}/close`, { method: "POST" });
const cancel = (by: RunAccess, id: string) => by.send(`/runs/${id}`, { method: "DELETE" });
const statusAt = async (run: RunAccess, path = "/run") => (await run.send(path)).status;

describe("a child run", () => {
  it("is opened with a run token, reports its parent and depth, and has its own token", async () => {
    const parent = await root({ calls: 10 });
    const child = await openChild(parent, { budget: { calls: 4 }, name: "child" });
    expect(child.document).toMatchObject({
      parent_id: parent.id,
      depth: 1,
      name: "child",
      status: "active",
      budget: { calls: { limit: 4, spent: 0, reserved: 0, remaining: 4 } },
    });
    expect(child.token).not.toBe(parent.token);
    expect((await openChild(child, { budget: { calls: 1 } })).document).toMatchObject({
      parent_id: child.id,
      depth: 2,
    });
  });

  it("can be opened by the operator in the run named in x-fanout-run", async () => {
    const parent = await root({ calls: 3 });
    const answer = await world.sendAsOperator("/runs", {
      json: { budget: { calls: 2 } },
      headers: { "x-fanout-run": parent.id },
    });
    expect([answer.status, opened.parse(answer.json).parent_id]).toEqual([201, parent.id]);
    expect(await callsOf(parent)).toMatchObject({ reserved: 2, remaining: 1 });
  });

  it("reserves its whole budget in its parent from the start, in every dimension", async () => {
    const parent = await root({ usd: 1, calls: 10, prompt_tokens: 1_000, completion_tokens: 500 });
    await openChild(parent, { budget: { usd: 0.25, calls: 4, prompt_tokens: 100, completion_tokens: 50 } });
    expect((await documentOf(parent)).budget).toEqual({
      usd: { limit: 1, spent: 0, reserved: 0.25, remaining: 0.75 },
      calls: { limit: 10, spent: 0, reserved: 4, remaining: 6 },
      prompt_tokens: { limit: 1_000, spent: 0, reserved: 100, remaining: 900 },
      completion_tokens: { limit: 500, spent: 0, reserved: 50, remaining: 450 },
      new_tokens: { limit: null, spent: 0, reserved: 0, remaining: null },
    });
  });

  it("spends its own budget, which stays reserved in its parent until it ends; then the rest is released", async () => {
    const parent = await root({ calls: 10 });
    const child = await openChild(parent, { budget: { calls: 4 } });
    await send(child);
    expect(await callsOf(child)).toMatchObject({ spent: 1, remaining: 3 });
    expect(await callsOf(parent)).toEqual({ limit: 10, spent: 0, reserved: 4, remaining: 6 });
    const ended = await close(child, child.id);
    expect([ended.status, ended.json]).toEqual([200, expect.objectContaining({ status: "closed" })]);
    expect(await callsOf(parent)).toEqual({ limit: 10, spent: 1, reserved: 0, remaining: 9 });
  });

  it("charges its parent once, however often it is ended", async () => {
    const parent = await root({ calls: 10 });
    const child = await openChild(parent, { budget: { calls: 4 } });
    await send(child);
    await Promise.all([close(parent, child.id), cancel(parent, child.id), close(parent, child.id)]);
    await cancel(parent, child.id);
    expect(await callsOf(parent)).toEqual({ limit: 10, spent: 1, reserved: 0, remaining: 9 });
  });

  it("that omits a limited dimension gets an equal share of what its parent has left", async () => {
    const parent = await root({ calls: 10, usd: 1 }, { max_parallel: 4 });
    const child = await openChild(parent, { budget: { usd: 0.5 } });
    expect((await documentOf(child)).budget).toMatchObject({ usd: { limit: 0.5 }, calls: { limit: 2 } });
    expect((await documentOf(child)).budget.prompt_tokens.limit).toBeNull();
  });

  it.each([
    [64, 1],
    [0, 2],
  ])(
    "gets one part of as many as a parent with max_parallel %i has, and no less than one call",
    async (width, calls) => {
      const parent = await root({ calls: 20 }, { max_parallel: width });
      const child = await openChild(parent, {});
      expect((await documentOf(child)).budget.calls.limit).toBe(calls);
    },
  );

  it("that is opened at once with others has as much as they, to the nano-dollar", async () => {
    const parent = await root({ usd: 1 }, { max_parallel: 5 });
    const children = await Promise.all(Array.from({ length: 5 }, () => openChild(parent, {})));
    const limits = await Promise.all(children.map(async (child) => (await documentOf(child)).budget.usd.limit));
    expect(limits).toEqual([0.2, 0.2, 0.2, 0.2, 0.2]);
  });

  it("leaves its parent only the unreserved rest to spend", async () => {
    const parent = await root({ calls: 3 });
    await openChild(parent, { budget: { calls: 2 } });
    await send(parent);
    const refused = await parent.send("/query", { json: { prompt: "p" } });
    expect([refused.status, errorOf(refused)]).toEqual([
      402,
      expect.objectContaining({ code: "budget_exhausted", reserved: 2 }),
    ]);
  });

  it("can only narrow its parent's models, life, max_parallel and depth", async () => {
    const parent = await root({ calls: 9 }, { models: ["up/*"], max_parallel: 4, max_depth: 2, expires_in_s: 100 });
    const child = await openChild(parent, {
      budget: { calls: 5 },
      models: ["*"],
      max_parallel: 64,
      max_depth: 9,
      expires_in_s: 9_000,
    });
    expect(child.document.max_parallel).toBe(4);
    expect(child.document.expires_at).toBe(
      z.object({ expires_at: z.string() }).parse((await parent.send("/run")).json).expires_at,
    );
    const refused = await child.send("/query", { json: { prompt: "p", model: "free-1" } });
    expect([refused.status, errorOf(refused).code]).toEqual([403, "model_not_allowed"]);
    const grandchild = await openChild(child, { budget: { calls: 1 } });
    expect((await tryChild(grandchild)).status).toBe(403);
  });

  it("cannot allow models without a price if its parent refuses them", async () => {
    const refused = await tryChild(await root({ usd: 1 }), { unpriced: "free" });
    expect([refused.status, errorOf(refused).param]).toEqual([400, "unpriced"]);
  });
});

describe("a child run is refused", () => {
  it("beyond max_depth, with the message that agents match", async () => {
    const refused = await tryChild(await root({}, { max_depth: 0 }));
    expect(refused.status).toBe(403);
    expect(errorOf(refused)).toMatchObject({ code: "depth_exceeded", max_depth: 0, retryable: false });
    expect(errorOf(refused).message).toBe(
      "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.",
    );
  });

  for (const [dimension, asked] of [
    ["usd", 1.000000001],
    ["calls", 11],
    ["prompt_tokens", 1_001],
    ["completion_tokens", 501],
  ] as const) {
    it(`that requests more ${dimension} than its parent has left, with the field's name; a request for exactly that is accepted`, async () => {
      const limits = { usd: 1, calls: 10, prompt_tokens: 1_000, completion_tokens: 500 };
      const parent = await root(limits);
      const refused = await tryChild(parent, { budget: { [dimension]: asked } });
      expect(refused.status).toBe(402);
      expect(errorOf(refused)).toMatchObject({
        code: "budget_exhausted",
        param: `budget.${dimension}`,
        dimension,
        limit: limits[dimension],
        remaining: limits[dimension],
        needed: asked,
      });
      expect((await documentOf(parent)).budget[dimension]).toMatchObject({ spent: 0, reserved: 0 });
      await openChild(parent, { budget: { [dimension]: limits[dimension] } });
      expect((await documentOf(parent)).budget[dimension]).toMatchObject({ reserved: limits[dimension], remaining: 0 });
    });
  }

  for (const [what, budget, param] of [
    ["a negative limit", { usd: -0.01 }, "budget.usd"],
    ["a huge limit", { usd: 1e300 }, "budget.usd"],
    ["a limit that is text", { usd: "1" }, "budget.usd"],
    ["half a call", { calls: 1.5 }, "budget.calls"],
    ["a limit of no known name", { euro: 1 }, "budget.euro"],
  ] as const) {
    it(`with ${what}, like a root run; the error names the field`, async () => {
      const parent = await root({ usd: 1, calls: 10 });
      for (const answer of [
        await tryChild(parent, { budget }),
        await world.sendAsOperator("/runs", { json: { budget } }),
      ]) {
        expect([answer.status, errorOf(answer).param]).toEqual([400, param]);
      }
      expect(await callsOf(parent)).toMatchObject({ reserved: 0 });
    });
  }

  it("with a limit of NaN or Infinity: neither is JSON", async () => {
    const parent = await root({ usd: 1 });
    for (const word of ["NaN", "Infinity", "1e999"]) {
      const headers = { "content-type": "application/json" };
      const body = `{"budget":{"usd":${word}}}`;
      expect([word, (await parent.send("/runs", { method: "POST", headers, body })).status]).toEqual([word, 400]);
    }
    expect((await documentOf(parent)).budget.usd.reserved).toBe(0);
  });

  it("never for a limit of zero, which then allows nothing", async () => {
    const child = await openChild(await root({ usd: 1 }), { budget: { usd: 0 } });
    expect((await child.send("/query", { json: { prompt: "p" } })).status).toBe(402);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("a run that ends", () => {
  it("ends its whole subtree and invalidates its tokens", async () => {
    for (const end of [close, cancel]) {
      const parent = await root({ calls: 10 });
      const child = await openChild(parent, { budget: { calls: 5 } });
      const grandchild = await openChild(child, { budget: { calls: 2 } });
      await send(grandchild);
      expect((await end(parent, parent.id)).status).toBe(200);
      await expect
        .poll(async () => (await world.sendAsOperator(`/runs/${grandchild.id}`)).json)
        .toMatchObject({
          status: end === close ? "closed" : "cancelled",
        });
      for (const run of [parent, child, grandchild]) {
        const refused = await run.send("/query", { json: { prompt: "after the end" } });
        expect([refused.status, errorOf(refused).code]).toEqual([401, "invalid_api_key"]);
        expect((await run.send("/batch", { json: { prompts: ["p"] } })).status).toBe(401);
        expect((await tryChild(run)).status).toBe(401);
      }
      await expect
        .poll(async () => (await world.sendAsOperator(`/runs/${parent.id}`)).json)
        .toMatchObject({ budget: { calls: { spent: 1, reserved: 0, remaining: 9 } } });
    }
    expect([...world.upstream.counters.sends.keys()]).not.toContain("after the end");
  });

  it(
    "by being closed lets calls in flight finish and settles them; queued calls are cancelled",
    { tags: ["slow"] },
    async () => {
      const parent = await root({ calls: 10 });
      const child = await openChild(parent, { budget: { calls: 5 }, max_parallel: 1 });
      const batch = child.send("/batch", { json: { prompts: ["{{delay/2000}} runs", "waits"] } });
      await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
      await close(parent, child.id);
      const group = groupOf(await batch);
      expect(group.errors.map((error) => error?.code ?? null)).toEqual([null, "cancelled"]);
      expect(await callsOf(parent)).toEqual({ limit: 10, spent: 1, reserved: 0, remaining: 9 });
    },
  );

  it(
    "by being cancelled charges calls in flight at their reservation, in its parent too",
    { tags: ["slow"] },
    async () => {
      const parent = await root({ calls: 10, completion_tokens: 1_000 });
      const child = await openChild(parent, { budget: { calls: 5, completion_tokens: 100 } });
      const batch = child.send("/batch", { json: { prompts: ["{{fault/hang}}"], max_tokens: 70 } });
      await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
      await cancel(parent, child.id);
      const group = groupOf(await batch);
      expect([group.errors[0]?.code, group.items[0]?.["estimated"]]).toEqual(["cancelled", true]);
      expect((await documentOf(parent)).budget.completion_tokens).toEqual({
        limit: 1_000,
        spent: 70,
        reserved: 0,
        remaining: 930,
      });
    },
  );

  it("by expiry releases its rest to its parent", { tags: ["slow"] }, async () => {
    const parent = await root({ calls: 10 });
    const child = await openChild(parent, { budget: { calls: 5 }, expires_in_s: 1 });
    expect(await callsOf(parent)).toMatchObject({ reserved: 5 });
    await expect.poll(() => callsOf(parent)).toMatchObject({ reserved: 0, remaining: 10 });
    expect((await child.send("/query", { json: { prompt: "p" } })).status).toBe(401);
    expect((await world.sendAsOperator(`/runs/${child.id}`)).json).toMatchObject({ status: "expired" });
  });
});

describe("in a tree", () => {
  it("a run and its ancestors can read, close and cancel it; other runs do not find it", async () => {
    const [grandparent, stranger] = [await root({ calls: 20 }), await root({ calls: 20 })];
    const parent = await openChild(grandparent, { budget: { calls: 10 } });
    const [child, sibling] = [
      await openChild(parent, { budget: { calls: 2 } }),
      await openChild(parent, { budget: { calls: 2 } }),
    ];
    for (const above of [child, parent, grandparent]) expect(await statusAt(above, `/runs/${child.id}`)).toBe(200);
    for (const [other, id] of [
      [stranger, child.id],
      [sibling, child.id],
      [child, parent.id],
      [child, grandparent.id],
      [parent, stranger.id],
    ] as const) {
      const answers = [await other.send(`/runs/${id}`), await close(other, id), await cancel(other, id)];
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    }
    expect((await close(grandparent, child.id)).status).toBe(200);
    expect((await cancel(parent, sibling.id)).status).toBe(200);
    expect((await close(parent, parent.id)).status).toBe(200);
    expect((await close(stranger, `run_${"0".repeat(32)}`)).status).toBe(404);
  });

  it("?subtree=1 totals what all open runs have spent and have in flight, each once", async () => {
    const parent = await root({ calls: 20, completion_tokens: 10_000 });
    const child = await openChild(parent, { budget: { calls: 8, completion_tokens: 5_000 } });
    const grandchild = await openChild(child, { budget: { calls: 3, completion_tokens: 500 } });
    for (const run of [parent, child, grandchild]) await send(run);
    const running = grandchild.send("/query", { json: { prompt: "{{latch/subtree}}", max_tokens: 40 } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const look = async () => subtree.parse((await parent.send(`/runs/${parent.id}?subtree=1`)).json).subtree;
    const live = await look();
    expect(live).toMatchObject({ runs: 3, complete: true });
    expect(live.budget["calls"]).toEqual({ spent: 3, in_flight: 1 });
    expect(live.budget["completion_tokens"]?.in_flight).toBe(40);
    world.upstream.open("subtree");
    await running;
    await close(grandchild, grandchild.id);
    const after = await look();
    expect([after.runs, after.budget["calls"]]).toEqual([2, { spent: 4, in_flight: 0 }]);
    expect((await parent.send(`/runs/${parent.id}`)).json).not.toHaveProperty("subtree");
  });

  it("no limit is exceeded at any node, whatever all runs request concurrently", async () => {
    const parent = await root({ calls: 30, usd: 0.01 }, { max_parallel: 8 });
    const children = await Promise.all(
      [8, 8, 8].map((calls) => openChild(parent, { budget: { calls, usd: 0.002 }, max_parallel: 8 })),
    );
    const runs: RunAccess[] = [parent, ...children];
    const prompts = Array.from({ length: 12 }, (_, at) => `{{jitter/60/status/500/percent/20}} ${at}`);
    const asked = Promise.all(runs.map((run) => run.send("/batch", { json: { prompts, max_tokens: 40 } })));
    const over = { yet: false };
    void asked.finally(() => (over.yet = true));
    for (; !over.yet;) {
      for (const run of runs) {
        for (const line of Object.values((await documentOf(run)).budget)) {
          if (line.limit !== null) expect(line.spent + line.reserved).toBeLessThanOrEqual(line.limit + 1e-12);
        }
      }
    }
    await asked;
    const spentBelow = await Promise.all(children.map(async (child) => (await callsOf(child)).spent));
    const own = (await callsOf(parent)).spent;
    for (const child of children) await close(child, child.id);
    const total = spentBelow.reduce((sum, spent) => sum + spent, own);
    expect(await callsOf(parent)).toMatchObject({ spent: total, reserved: 0 });
    expect((await documentOf(parent)).budget.usd.reserved).toBe(0);
  });
});
