/** `GET /runs` with filters, the groups that an operator finds by their id, and the usage of a tree. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { errorOf, groupOf, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const list = z.object({
  data: z.array(z.looseObject({ id: z.string() })),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
});

async function listed(query: string): Promise<z.infer<typeof list>> {
  const { status, json } = await world.sendAsOperator(`/runs?${query}`);
  expect(status).toBe(200);
  return list.parse(json);
}
const idsOf = async (query: string): Promise<string[]> => (await listed(query)).data.map(({ id }) => id);

describe("GET /runs", () => {
  it("has the runs of a status, of a name, and of what they have spent", { tags: ["slow"] }, async () => {
    const [cheap, dear, closed] = [
      await world.openRun({ name: "Summary of March", default_model: "up-1" }),
      await world.openRun({ name: "other", default_model: "up-1" }),
      await world.openRun({ name: "summary of May", default_model: "up-1" }),
    ];
    await dear.send("/query", { json: { prompt: "a long prompt ".repeat(100) } });
    await closed.send(`/runs/${closed.id}/close`, { method: "POST" });
    expect(await idsOf("name=summary")).toEqual([closed.id, cheap.id]);
    expect(await idsOf("name=summary&status=active")).toEqual([cheap.id]);
    expect(await idsOf("status=closed")).toEqual([closed.id]);
    expect(await idsOf("spent_usd_min=0.000001")).toEqual([dear.id]);
    expect(await idsOf("spent_usd_max=0&name=of")).toEqual([closed.id, cheap.id]);
  });

  it("has the runs of a time, each once over pages of matches", async () => {
    const before = new Date().toISOString();
    await new Promise((resolve) => setTimeout(resolve, 2));
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) ids.unshift((await world.openRun({ name: index % 2 ? "odd" : "even" })).id);
    await new Promise((resolve) => setTimeout(resolve, 2));
    const after = new Date().toISOString();
    await world.openRun({ name: "later" });
    expect(await idsOf(`opened_after=${before}&opened_before=${after}`)).toEqual(ids);
    // The same times in another zone.
    const zoned = (time: string) =>
      encodeURIComponent(new Date(Date.parse(time) + 3_600_000).toISOString().replace("Z", "+01:00"));
    expect(await idsOf(`opened_after=${zoned(before)}&opened_before=${zoned(after)}`)).toEqual(ids);
    const first = await listed(`opened_after=${before}&name=even&limit=2`);
    expect(first.data.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
    const second = await listed(`opened_after=${before}&name=even&limit=2&cursor=${first.next_cursor}`);
    expect([second.data.map(({ id }) => id), second.has_more]).toEqual([[ids[4]], false]);
  });

  it.each([
    "status=running",
    "opened_after=yesterday",
    "spent_usd_min=-1",
    "spent_usd_max=",
    "limit=1e1",
    "state=active",
  ])("refuses %s", async (query) => {
    const refused = await world.sendAsOperator(`/runs?${query}`);
    expect([refused.status, errorOf(refused).param]).toEqual([400, query.split("=")[0]]);
  });
});

describe("GET /groups/:id", () => {
  it("is found by an operator who names no run", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["a", "b"] } }));
    for (const path of ["", "/results", "/report"]) {
      expect((await world.sendAsOperator(`/groups/${group.id}${path}`)).status).toBe(200);
    }
    const found = await world.sendAsOperator(`/groups/${group.id}`);
    expect(groupOf(found).id).toBe(group.id);
  });

  it("is not found in another run, and the error says how a child's is named", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const child = z
      .looseObject({ id: z.string(), token: z.string() })
      .parse((await run.send("/runs", { json: {} })).json);
    const group = groupOf(await world.send("/batch", { token: child.token, json: { prompts: ["a"] } }));
    const missed = await world.sendAsOperator(`/groups/${group.id}`);
    expect([missed.status, errorOf(missed).message]).toEqual([404, expect.stringContaining("x-fanout-run")]);
    const headers = { "x-fanout-run": child.id };
    expect((await world.sendAsOperator(`/groups/${group.id}`, { headers })).status).toBe(200);
  });

  it("has the percentiles of its calls, which lie among their latencies", async () => {
    const run = await world.openRun({ default_model: "up-1", max_parallel: 4 });
    const group = groupOf(
      await run.send("/batch", { json: { prompts: ["{{delay/60}} slow", "b", "c", "{{status/400}} d"] } }),
    );
    const percentiles = z.object({ p50: z.number(), p95: z.number(), p99: z.number() });
    const { latency_ms, queued_ms } = z
      .object({ latency_ms: percentiles, queued_ms: percentiles })
      .parse(z.looseObject({ metrics: z.unknown() }).parse(group).metrics);
    const latencies = z
      .array(z.looseObject({ latency_ms: z.number() }))
      .parse(group.items)
      .map((item) => item.latency_ms);
    expect(latency_ms.p99).toBe(Math.max(...latencies));
    expect(latency_ms.p50).toBeLessThanOrEqual(latency_ms.p95);
    expect(queued_ms.p99).toBeGreaterThanOrEqual(0);
  });
});

describe("GET /runs/:id/usage?subtree=1", () => {
  it("adds what the child runs have used, ended and open, to the run's own", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const opened = z.looseObject({ id: z.string(), token: z.string() });
    const [ended, still] = [
      opened.parse((await run.send("/runs", { json: { budget: { usd: 0.1 } } })).json),
      opened.parse((await run.send("/runs", { json: { budget: { usd: 0.1 } } })).json),
    ];
    for (const token of [run.token, ended.token, still.token])
      await world.send("/query", { token, json: { prompt: "x" } });
    await world.send(`/runs/${ended.id}/close`, { token: ended.token, method: "POST" });
    const line = z.looseObject({
      calls: z.number(),
      input_tokens: z.number(),
      output_tokens: z.number(),
      cost: z.number(),
    });
    const usage = z
      .looseObject({ llm_calls: z.number(), input_tokens: z.number(), cost: z.number(), subtree: line })
      .parse((await run.send(`/runs/${run.id}/usage?subtree=1`)).json);
    expect(usage).toMatchObject({
      llm_calls: 1,
      subtree: { calls: 3, input_tokens: 3 * usage.input_tokens, runs: 2, complete: true },
    });
    expect(usage.subtree.cost).toBeCloseTo(3 * usage.cost, 9);
    expect((await run.send(`/runs/${run.id}/usage`)).json).not.toHaveProperty("subtree");
  });
});

describe("GET /runs/:id/children", () => {
  const list = z.object({
    data: z.array(z.looseObject({ id: z.string(), name: z.string().nullable(), status: z.string() })),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  });
  const opened = z.looseObject({ id: z.string(), token: z.string() });

  it("lists the child runs of a run, newest first and by page, open and ended, and not those below them", async () => {
    const parent = await world.openRun({ budget: { usd: 1 } });
    const children: z.infer<typeof opened>[] = [];
    for (const name of ["a", "b", "c"]) {
      const json = { name, budget: { usd: 0.1 } };
      children.push(opened.parse((await parent.send("/runs", { json })).json));
    }
    const [first] = children;
    await world.send("/runs", { token: first?.token ?? "", json: { name: "below", budget: { usd: 0.01 } } });
    await parent.send(`/runs/${children[1]?.id}/close`, { method: "POST" });
    const page = list.parse((await parent.send(`/runs/${parent.id}/children?limit=2`)).json);
    expect(page.data.map(({ name, status }) => [name, status])).toEqual([
      ["c", "active"],
      ["b", "closed"],
    ]);
    const next = list.parse((await parent.send(`/runs/${parent.id}/children?limit=2&cursor=${page.next_cursor}`)).json);
    expect([next.data.map(({ name }) => name), next.has_more, next.next_cursor]).toEqual([["a"], false, null]);
    const own = list.parse((await world.send(`/runs/${first?.id}/children`, { token: first?.token ?? "" })).json);
    expect(own.data.map(({ name }) => name)).toEqual(["below"]);
    const operators = await world.send(`/runs/${parent.id}/children`, { token: world.gateway.adminKey });
    expect(list.parse(operators.json).data).toHaveLength(3);
    // A child may not look at its parent.
    expect((await world.send(`/runs/${parent.id}/children`, { token: first?.token ?? "" })).status).toBe(404);
    expect((await parent.send(`/runs/${parent.id}/children?cursor=-1`)).status).toBe(400);
  });
});
