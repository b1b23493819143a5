/** Groups that outlive the request that opened them: opening, reading, waiting, and access by other runs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { ASYNC, endOf, openGroup } from "./following.ts";
import { errorOf, groupOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 8 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const SLOW = "{{latch/never}} slow";
const MIXED = ["a", "{{status/400}} refused", "{{delay/200}} c | d", "e"];

describe("Prefer: respond-async", () => {
  it("returns 202 with the group's location and status while its calls run", async () => {
    const answer = await run.send("/batch", { json: { prompts: [SLOW, "b"] }, headers: ASYNC });
    expect(answer.status).toBe(202);
    const { id } = z.looseObject({ id: z.string() }).parse(answer.json);
    expect(answer.headers.get("location")).toBe(`/groups/${id}`);
    expect(answer.headers.get("preference-applied")).toBe("respond-async");
    expect(answer.json).toMatchObject({ object: "group", status: "running", count: 2, ended_at: null });
    expect(answer.json).not.toHaveProperty("results");
    await run.send(`/groups/${id}`, { method: "DELETE" });
  });

  it.each(["wait=5, respond-async", "Respond-Async", "respond-async; foo=bar"])(
    "is recognised as %s",
    async (prefer) => {
      const answer = await run.send("/batch", { json: { prompts: ["a"] }, headers: { prefer } });
      expect([answer.status, answer.headers.get("preference-applied")]).toEqual([202, "respond-async"]);
    },
  );

  it.each(["return=minimal", "respond-asynchronously", ""])("is not recognised in %s", async (prefer) => {
    const answer = await run.send("/batch", { json: { prompts: ["a"] }, headers: { prefer } });
    expect([answer.status, answer.headers.get("preference-applied")]).toEqual([200, null]);
  });

  it("makes a /query a group of one", async () => {
    const answer = await run.send("/query", { json: { prompt: "alone" }, headers: ASYNC });
    expect(answer.status).toBe(202);
    const group = groupOf(await endOf(run, answer.headers.get("location") ?? ""));
    expect(group).toMatchObject({ status: "completed", results: ["alone"], count: 1 });
  });

  it("has no effect on an empty batch, which has no group", async () => {
    const answer = await run.send("/batch", { json: { prompts: [] }, headers: ASYNC });
    expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ id: null, results: [] })]);
  });

  it("refuses what /batch refuses, before a group is opened", async () => {
    const answer = await run.send("/batch", { json: { prompts: [1] }, headers: ASYNC });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "prompts[0]"]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("GET /groups/:id", () => {
  it("returns at once the number of slots in each state", async () => {
    const { id, at } = await openGroup(run, { prompts: [SLOW, SLOW, SLOW], concurrency: 2 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    const answer = await run.send(at);
    const counts = { queued: 1, running: 2, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
    expect(answer.json).toMatchObject({ id, status: "running", count: 3, counts, effective_parallel: 2 });
    await run.send(at, { method: "DELETE" });
  });

  it("with wait_ms replies when the group ends, not when the time has passed", async () => {
    const { at } = await openGroup(run, { prompts: ["{{delay/400}} a"] });
    const started = performance.now();
    const group = groupOf(await run.send(`${at}?wait_ms=60000`));
    expect(performance.now() - started).toBeLessThan(60_000);
    expect(group.status).toBe("completed");
  });

  it("with wait_ms replies after that time if the group does not end", async () => {
    const { at } = await openGroup(run, { prompts: [SLOW] });
    const started = performance.now();
    const answer = await run.send(`${at}?wait_ms=300`);
    const waited = performance.now() - started;
    expect(answer.json).toMatchObject({ status: "running" });
    expect(waited).toBeGreaterThanOrEqual(295);
    await run.send(at, { method: "DELETE" });
  });

  it.each(["wait_ms=-1", "wait_ms=60001", "wait_ms=1.5", "wait_ms=soon", "wait=1"])("refuses %s", async (query) => {
    const { at } = await openGroup(run, { prompts: ["a"] });
    const answer = await run.send(`${at}?${query}`);
    expect([answer.status, errorOf(answer).param]).toEqual([400, query.split("=")[0]]);
  });

  it(
    "returns, once the group has ended, exactly the reply of the request that opened it",
    { tags: ["slow"] },
    async () => {
      for (const style of ["bracket", "null", "settled", "dspy"]) {
        const answer = await run.send("/batch", { json: { prompts: MIXED, error_style: style } });
        const { id } = groupOf(answer);
        const later = await run.send(`/groups/${id}`);
        expect(later.text.trim()).toBe(answer.text.trim());
      }
    },
  );

  it("returns for an asynchronous group the reply of a synchronous one", async () => {
    const { at } = await openGroup(run, { prompts: MIXED });
    const left = await endOf(run, at);
    const waited = await run.send("/batch", { json: { prompts: MIXED } });
    expect(measured(left)).toEqual(measured(waited));
    expect(groupOf(left).status).toBe("partial");
  });

  it("returns the slots of a group with error_style throw instead of its error", async () => {
    const { at } = await openGroup(run, { prompts: MIXED, error_style: "throw" });
    const group = groupOf(await endOf(run, at));
    expect([group.status, group.results[1]]).toEqual(["partial", expect.stringMatching(/^\[error\] /)]);
  });

  it("returns the same after the run has ended", async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const answer = await own.send("/batch", { json: { prompts: MIXED } });
    const { id } = groupOf(answer);
    expect((await own.send(`/runs/${own.id}/close`, { method: "POST" })).json).toMatchObject({ status: "closed" });
    expect((await own.send(`/groups/${id}`)).text.trim()).toBe(answer.text.trim());
  });
});

describe("a group is not found", () => {
  const DOORS: [string, string][] = [
    ["GET", ""],
    ["GET", "/results"],
    ["GET", "/report"],
    ["DELETE", ""],
  ];

  it.each(["pg-1763712000000-000000", "pg-1763712000000-zzzzzz", "pg-1", "x", "%00", `pg-${"9".repeat(300)}`])(
    "by the id %s, which does not exist",
    async (id) => {
      for (const [method, path] of DOORS) {
        const answer = await run.send(`/groups/${id}${path}`, { method });
        expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
      }
    },
  );

  it("by another run, which can neither read nor cancel it", async () => {
    const other = await world.openRun();
    const { id, at } = await openGroup(run, { prompts: ["{{latch/mine}} mine"] });
    for (const [method, path] of DOORS) {
      const answer = await other.send(`${at}${path}`, { method });
      expect([answer.status, errorOf(answer).message]).toEqual([404, expect.stringContaining(id)]);
    }
    world.upstream.open("mine");
    expect(groupOf(await endOf(run, at)).results).toEqual(["{{latch/mine}} mine"]);
  });

  it("by its sequence number with another timestamp", async () => {
    const { id } = await openGroup(run, { prompts: ["a"] });
    const forged = id.replace(/^pg-\d/, (head) => (head === "pg-1" ? "pg-2" : "pg-1"));
    expect((await run.send(`/groups/${forged}`)).status).toBe(404);
  });

  it("but is found by the operator with the name of its run", async () => {
    const { at } = await openGroup(run, { prompts: ["a"] });
    const headers = { "x-fanout-run": run.id };
    const answer = await world.sendAsOperator(`${at}?wait_ms=5000`, { headers });
    expect(groupOf(answer).results).toEqual(["a"]);
  });
});

/** A group without what differs from one time to the next. */
function measured(answer: Answer): unknown {
  const { results, errors, items, usage, status } = groupOf(answer);
  return { results, errors, usage, status, items: items.map((item) => ({ ...item, latency_ms: 0, queued_ms: 0 })) };
}
