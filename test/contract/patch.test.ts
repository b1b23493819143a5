/** What an operator may change of a run while it lives: its limits, its width, and whether it runs at all. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const open = (budget: Record<string, number>, more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget, default_model: "up-1", ...more });
const patch = (id: string, body: unknown) => world.sendAsOperator(`/runs/${id}`, { method: "PATCH", json: body });
const send = (run: RunAccess, prompt: string) => run.send("/query", { json: { prompt } });
const opened = z.looseObject({ id: z.string(), token: z.string() });
const callsOf = async (run: RunAccess) => (await documentOf(run)).budget.calls;

describe("PATCH /runs/:id", () => {
  it("raises a spent budget, and returns the changed run", async () => {
    const run = await open({ calls: 1, usd: 1 });
    replyOf(await send(run, "1"));
    expect((await send(run, "2")).status).toBe(402);
    const patched = await patch(run.id, { budget: { calls: 2 } });
    expect([patched.status, patched.json]).toEqual([
      200,
      expect.objectContaining({
        id: run.id,
        object: "run",
        budget: expect.objectContaining({
          calls: { limit: 2, spent: 1, reserved: 0, remaining: 1 },
          usd: expect.objectContaining({ limit: 1 }),
        }),
      }),
    ]);
    expect(patched.json).toEqual((await run.send("/run")).json);
    expect(replyOf(await send(run, "3")).text).toBe("3");
  });

  it("lowers a limit to no less than the committed amount; below it returns 409 with both figures and changes nothing", async () => {
    const run = await open({ calls: 10, usd: 1 });
    for (const prompt of ["1", "2", "3"]) replyOf(await send(run, prompt));
    const refused = await patch(run.id, { budget: { calls: 2, usd: 0.5 }, max_parallel: 2 });
    expect(refused.status).toBe(409);
    expect(errorOf(refused)).toMatchObject({
      code: "budget_below_committed",
      dimension: "calls",
      limit: 2,
      committed: 3,
      retryable: false,
    });
    expect((await run.send("/run")).json).toMatchObject({
      max_parallel: 64,
      budget: { calls: { limit: 10 }, usd: { limit: 1 } },
    });
    expect((await patch(run.id, { budget: { calls: 3 } })).status).toBe(200);
    expect((await send(run, "4")).status).toBe(402);
  });

  it("counts the reservations of calls in flight and children as committed", async () => {
    const run = await open({ calls: 10 });
    const running = send(run, "{{latch/committed}}");
    expect((await run.send("/runs", { json: { budget: { calls: 4 } } })).status).toBe(201);
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    expect(errorOf(await patch(run.id, { budget: { calls: 4 } }))).toMatchObject({ limit: 4, committed: 5 });
    expect((await patch(run.id, { budget: { calls: 5 } })).status).toBe(200);
    world.upstream.open("committed");
    replyOf(await running);
  });

  it("reports dollar limits in dollars", async () => {
    const run = await open({ usd: 1 });
    replyOf(await send(run, "abcd"));
    const refused = await patch(run.id, { budget: { usd: 0.000005 } });
    expect(errorOf(refused)).toMatchObject({ dimension: "usd", limit: 0.000005, committed: 0.000006 });
    expect(errorOf(refused).message).toMatch(/^budget\.usd: \$0\.000005 is below the \$0\.000006 already/);
  });

  it("gives a run that had none a limit", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    replyOf(await send(run, "1"));
    expect((await patch(run.id, { budget: { calls: 1 } })).status).toBe(200);
    expect((await send(run, "2")).status).toBe(402);
  });

  it("raises the concurrency of a running batch", { tags: ["slow"] }, async () => {
    const run = await open({ calls: 100 }, { max_parallel: 1 });
    const json = { prompts: Array.from({ length: 13 }, (_, index) => `{{latch/raised}} ${index}`) };
    const batch = run.send("/batch", { method: "POST", json });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    await patch(run.id, { max_parallel: 12 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(12);
    world.upstream.open("raised");
    expect(groupOf(await batch).metrics.peak_parallel).toBe(12);
  });

  it("raises max_parallel for later requests", async () => {
    const run = await open({ calls: 100 }, { max_parallel: 1 });
    expect((await patch(run.id, { max_parallel: 4 })).json).toMatchObject({ max_parallel: 4, effective_parallel: 4 });
    const prompts = Array.from({ length: 4 }, (_, at) => `{{barrier/4/within/30000}} ${at}`);
    expect(groupOf(await run.send("/batch", { json: { prompts } }))).toMatchObject({ effective_parallel: 4 });
    expect(world.upstream.counters.peakInFlight).toBe(4);
  });

  it("changes nothing if it names no field", async () => {
    const run = await open({ calls: 5 });
    const before = (await run.send("/run")).json;
    expect([(await patch(run.id, {})).json, (await run.send("/run")).json]).toEqual([before, before]);
  });

  it("starts calls that wait for budget", async () => {
    const run = await open({ completion_tokens: 100 });
    const first = run.send("/query", { json: { prompt: "{{latch/waiting}}", max_tokens: 100 } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const second = run.send("/query", { json: { prompt: "second", max_tokens: 20 } });
    await patch(run.id, { budget: { completion_tokens: 200 } });
    await expect.poll(() => world.upstream.counters.peakInFlight).toBe(2);
    world.upstream.open("waiting");
    expect([replyOf(await first).text, replyOf(await second).text]).toEqual(["{{latch/waiting}}", "second"]);
  });
});

describe("a child's new limit", () => {
  async function family() {
    const parent = await open({ calls: 10, completion_tokens: 1_000 });
    const answer = await parent.send("/runs", { json: { budget: { calls: 4, completion_tokens: 200 } } });
    const { id } = opened.parse(answer.json);
    return { parent, id };
  }

  it("is reserved in its parent, and released there", async () => {
    const { parent, id } = await family();
    expect((await patch(id, { budget: { calls: 9 } })).status).toBe(200);
    expect(await callsOf(parent)).toMatchObject({ reserved: 9, remaining: 1 });
    expect((await patch(id, { budget: { calls: 1 } })).status).toBe(200);
    expect(await callsOf(parent)).toMatchObject({ reserved: 1, remaining: 9 });
  });

  it("is refused if its parent has less left, and changes neither run", async () => {
    const { parent, id } = await family();
    const refused = await patch(id, { budget: { calls: 11 } });
    expect([refused.status, errorOf(refused).code]).toEqual([402, "budget_exhausted"]);
    expect(errorOf(refused)).toMatchObject({
      dimension: "calls",
      param: "budget.calls",
      needed: 11,
      limit: 10,
      reserved: 4,
      remaining: 6,
    });
    expect(await callsOf(parent)).toMatchObject({ reserved: 4, remaining: 6 });
    expect((await world.sendAsOperator(`/runs/${id}`)).json).toMatchObject({ budget: { calls: { limit: 4 } } });
  });
});

describe("a child's new limits that are refused in one dimension", () => {
  it("change nothing in its parent in other dimensions", async () => {
    const parent = await open({ calls: 10, completion_tokens: 1_000 });
    const { id, token } = opened.parse(
      (await parent.send("/runs", { json: { budget: { calls: 4, completion_tokens: 200 } } })).json,
    );
    replyOf(await world.send("/query", { token, json: { prompt: "p" } }));
    const refused = await patch(id, { budget: { calls: 0, completion_tokens: 900 } });
    expect([refused.status, errorOf(refused)]).toEqual([409, expect.objectContaining({ dimension: "calls" })]);
    expect((await documentOf(parent)).budget).toMatchObject({
      calls: { reserved: 4 },
      completion_tokens: { reserved: 200 },
    });
  });
});

describe("a paused run", () => {
  it("queues new calls, ends nothing, and continues when it is resumed", async () => {
    const run = await open({ calls: 10 });
    expect((await patch(run.id, { paused: true })).json).toMatchObject({ status: "paused" });
    const asked = [send(run, "single"), run.send("/batch", { json: { prompts: ["a", "b"] } })] as const;
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(3);
    expect([world.upstream.counters.requests, await callsOf(run)]).toEqual([
      0,
      { limit: 10, spent: 0, reserved: 0, remaining: 10 },
    ]);
    expect((await patch(run.id, { paused: false })).json).toMatchObject({ status: "active" });
    expect([replyOf(await asked[0]).text, groupOf(await asked[1]).results]).toEqual(["single", ["a", "b"]]);
  });

  it("lets calls in flight end", async () => {
    const run = await open({ calls: 10 }, { max_parallel: 1 });
    const batch = run.send("/batch", { json: { prompts: ["{{latch/paused}}", "after"] } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    await patch(run.id, { paused: true });
    world.upstream.open("paused");
    await expect.poll(() => callsOf(run)).toMatchObject({ spent: 1, reserved: 0 });
    expect(world.upstream.counters.requests).toBe(1);
    await patch(run.id, { paused: false });
    expect(groupOf(await batch).status).toBe("completed");
  });

  it("can be closed", async () => {
    const run = await open({ calls: 10 });
    await patch(run.id, { paused: true });
    const batch = run.send("/batch", { json: { prompts: ["a"] } });
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(1);
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    expect(groupOf(await batch).errors[0]?.code).toBe("cancelled");
    expect((await world.sendAsOperator(`/runs/${run.id}`)).json).toMatchObject({ status: "closed" });
  });
});

describe("PATCH /runs/:id is refused", () => {
  for (const [what, body, param] of [
    ["with an unknown field", { budgets: {} }, "budgets"],
    ["with an unknown limit", { budget: { euro: 1 } }, "budget.euro"],
    ["with a negative limit", { budget: { usd: -1 } }, "budget.usd"],
    ["with a huge limit", { budget: { calls: 1e300 } }, "budget.calls"],
    ["with a limit that is text", { budget: { usd: "1" } }, "budget.usd"],
    ["with a width beyond the widest", { max_parallel: 4_097 }, "max_parallel"],
    ["with a pause that is no yes or no", { paused: 1 }, "paused"],
  ] as const) {
    it(`${what}: the error names the field, and nothing changes`, async () => {
      const run = await open({ usd: 1, calls: 5 });
      const before = (await run.send("/run")).json;
      const refused = await patch(run.id, body);
      expect([refused.status, errorOf(refused).code, errorOf(refused).param]).toEqual([400, "invalid_request", param]);
      expect((await run.send("/run")).json).toEqual(before);
    });
  }

  it("to a run's own token and to its parent's: only the operator changes budgets", async () => {
    const run = await open({ calls: 5 });
    const refused = await run.send(`/runs/${run.id}`, { method: "PATCH", json: { budget: { calls: 500 } } });
    expect([refused.status, errorOf(refused).code]).toEqual([403, "forbidden"]);
    expect(await callsOf(run)).toMatchObject({ limit: 5 });
  });

  it("for a run that does not exist", async () => {
    expect((await patch(`run_${"0".repeat(32)}`, { paused: true })).status).toBe(404);
  });

  it("for a body that is not JSON", async () => {
    const run = await open({ calls: 5 });
    const headers = { "content-type": "application/json" };
    const answer = await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", headers, body: '{"paused":' });
    expect(answer.status).toBe(400);
  });
});

describe("PATCH /runs/:id with a lifetime", () => {
  const lifeOf = async (run: RunAccess): Promise<number> =>
    Date.parse(String((await documentOf(run))["expires_at"])) - Date.now();

  it("extends the run, and returns a token that lives as long", async () => {
    const run = await open({ calls: 5 }, { expires_in_s: 600 });
    const answer = await patch(run.id, { expires_in_s: 7_200 });
    expect(answer.status).toBe(200);
    const { token } = opened.parse(answer.json);
    expect(await lifeOf(run)).toBeGreaterThan(7_000_000);
    const claims = z.object({ exp: z.number() }).parse(JSON.parse(atob(String(token.split(".")[1]))));
    expect(claims.exp * 1_000 - Date.now()).toBeGreaterThan(7_000_000);
    expect(replyOf(await world.send("/query", { token, json: { prompt: "still" } })).text).toBe("still");
    expect(replyOf(await send(run, "the old token, too")).text).toBe("the old token, too");
  });

  it("shortens it: the run expires then", { tags: ["slow"] }, async () => {
    const run = await open({ calls: 5 });
    await patch(run.id, { expires_in_s: 1 });
    await expect.poll(async () => (await documentOf(run)).status).toBe("expired");
  });

  it("refuses a child run that would outlive its parent, and changes nothing", async () => {
    const parent = await open({ usd: 1 }, { expires_in_s: 600 });
    const child = opened.parse((await parent.send("/runs", { json: { budget: { usd: 0.1 } } })).json);
    const refused = await patch(child.id, { expires_in_s: 1_200 });
    expect([refused.status, errorOf(refused).param]).toEqual([400, "expires_in_s"]);
    await patch(parent.id, { expires_in_s: 3_600 });
    expect((await patch(child.id, { expires_in_s: 1_200 })).status).toBe(200);
  });

  it("returns no token if the lifetime stays", async () => {
    const run = await open({ calls: 5 });
    expect((await patch(run.id, { max_parallel: 2 })).json).not.toHaveProperty("token");
  });
});

describe("PATCH /runs/:id with models", () => {
  const ask = async (run: RunAccess, model: string) =>
    (await run.send("/query", { json: { prompt: "x", model } })).status;

  it("replaces the models that the run may use, for calls and for batches", async () => {
    const run = await open({ usd: 1 }, { models: ["up/*"] });
    expect([await ask(run, "up-1"), await ask(run, "sim/echo")]).toEqual([200, 403]);
    expect((await patch(run.id, { models: ["sim/*"] })).status).toBe(200);
    expect([await ask(run, "up-1"), await ask(run, "sim/echo")]).toEqual([403, 200]);
    const batch = await run.send("/batch", { json: { prompts: ["a"], model: "up-1" } });
    expect(errorOf(batch).code).toBe("model_not_allowed");
  });

  it("is refused for a child run", async () => {
    const parent = await open({ usd: 1 });
    const child = opened.parse((await parent.send("/runs", { json: { budget: { usd: 0.1 } } })).json);
    const refused = await patch(child.id, { models: ["*"] });
    expect([refused.status, errorOf(refused).param]).toEqual([400, "models"]);
  });
});
