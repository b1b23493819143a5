/** Groups that outlive the request which opened them: opened, looked at, waited for, and found by nobody else. */
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

const SLOW = "{{delay/3000}} slow";
const MIXED = ["a", "{{status/400}} refused", "{{delay/200}} c | d", "e"];

describe("Prefer: respond-async", () => {
  it("is answered with 202, the group's place and where it stands, while its calls run", async () => {
    const started = performance.now();
    const answer = await run.ask("/batch", { json: { prompts: [SLOW, "b"] }, headers: ASYNC });
    expect(performance.now() - started).toBeLessThan(2_500);
    expect(answer.status).toBe(202);
    const { id } = z.looseObject({ id: z.string() }).parse(answer.json);
    expect(answer.headers.get("location")).toBe(`/groups/${id}`);
    expect(answer.headers.get("preference-applied")).toBe("respond-async");
    expect(answer.json).toMatchObject({ object: "group", status: "running", count: 2, ended_at: null });
    expect(answer.json).not.toHaveProperty("results");
    await run.ask(`/groups/${id}`, { method: "DELETE" });
  });

  it.each(["wait=5, respond-async", "Respond-Async", "respond-async; foo=bar"])("may stand as %s", async (prefer) => {
    const answer = await run.ask("/batch", { json: { prompts: ["a"] }, headers: { prefer } });
    expect([answer.status, answer.headers.get("preference-applied")]).toEqual([202, "respond-async"]);
  });

  it.each(["return=minimal", "respond-asynchronously", ""])("is not read into %s", async (prefer) => {
    const answer = await run.ask("/batch", { json: { prompts: ["a"] }, headers: { prefer } });
    expect([answer.status, answer.headers.get("preference-applied")]).toEqual([200, null]);
  });

  it("makes a group of one of a /query", async () => {
    const answer = await run.ask("/query", { json: { prompt: "alone" }, headers: ASYNC });
    expect(answer.status).toBe(202);
    const group = groupOf(await endOf(run, answer.headers.get("location") ?? ""));
    expect(group).toMatchObject({ status: "completed", results: ["alone"], count: 1 });
  });

  it("of an empty batch changes nothing: there is no group to wait for", async () => {
    const answer = await run.ask("/batch", { json: { prompts: [] }, headers: ASYNC });
    expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ id: null, results: [] })]);
  });

  it("refuses what /batch refuses, before anything is opened", async () => {
    const answer = await run.ask("/batch", { json: { prompts: [1] }, headers: ASYNC });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "prompts[0]"]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("GET /groups/:id", () => {
  it("tells at once how many slots stand where", async () => {
    const { id, at } = await openGroup(run, { prompts: [SLOW, SLOW, SLOW], concurrency: 2 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    const answer = await run.ask(at);
    const counts = { queued: 1, running: 2, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
    expect(answer.json).toMatchObject({ id, status: "running", count: 3, counts, effective_parallel: 2 });
    await run.ask(at, { method: "DELETE" });
  });

  it("with wait_ms answers when the group ends, not when the time is over", async () => {
    const { at } = await openGroup(run, { prompts: ["{{delay/400}} a"] });
    const started = performance.now();
    const group = groupOf(await run.ask(`${at}?wait_ms=60000`));
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(group.status).toBe("completed");
  });

  it("with wait_ms answers in time when the group does not end", async () => {
    const { at } = await openGroup(run, { prompts: [SLOW] });
    const started = performance.now();
    const answer = await run.ask(`${at}?wait_ms=300`);
    const waited = performance.now() - started;
    expect(answer.json).toMatchObject({ status: "running" });
    expect(waited).toBeGreaterThanOrEqual(295);
    expect(waited).toBeLessThan(2_000);
    await run.ask(at, { method: "DELETE" });
  });

  it.each(["wait_ms=-1", "wait_ms=60001", "wait_ms=1.5", "wait_ms=soon", "wait=1"])("refuses %s", async (query) => {
    const { at } = await openGroup(run, { prompts: ["a"] });
    const answer = await run.ask(`${at}?${query}`);
    expect([answer.status, errorOf(answer).param]).toEqual([400, query.split("=")[0]]);
  });

  it("answers, once the group has ended, exactly what the request that opened it was answered", async () => {
    for (const style of ["bracket", "null", "settled", "dspy"]) {
      const answer = await run.ask("/batch", { json: { prompts: MIXED, error_style: style } });
      const { id } = groupOf(answer);
      const later = await run.ask(`/groups/${id}`);
      expect(later.text.trim()).toBe(answer.text.trim());
    }
  });

  it("answers a group opened to be left as it would have answered one that was waited for", async () => {
    const { at } = await openGroup(run, { prompts: MIXED });
    const left = await endOf(run, at);
    const waited = await run.ask("/batch", { json: { prompts: MIXED } });
    expect(measured(left)).toEqual(measured(waited));
    expect(groupOf(left).status).toBe("partial");
  });

  it("shows the slots of a group that throws, instead of throwing", async () => {
    const { at } = await openGroup(run, { prompts: MIXED, error_style: "throw" });
    const group = groupOf(await endOf(run, at));
    expect([group.status, group.results[1]]).toEqual(["partial", expect.stringMatching(/^\[error\] /)]);
  });

  it("tells the same when the run has ended", async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const answer = await own.ask("/batch", { json: { prompts: MIXED } });
    const { id } = groupOf(answer);
    expect((await own.ask(`/runs/${own.id}/close`, { method: "POST" })).json).toMatchObject({ status: "closed" });
    expect((await own.ask(`/groups/${id}`)).text.trim()).toBe(answer.text.trim());
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
    "by the id %s, which is none's",
    async (id) => {
      for (const [method, path] of DOORS) {
        const answer = await run.ask(`/groups/${id}${path}`, { method });
        expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
      }
    },
  );

  it("by another run, which learns nothing from it and ends nothing", async () => {
    const other = await world.openRun();
    const { id, at } = await openGroup(run, { prompts: ["{{delay/300}} mine"] });
    for (const [method, path] of DOORS) {
      const answer = await other.ask(`${at}${path}`, { method });
      expect([answer.status, errorOf(answer).message]).toEqual([404, expect.stringContaining(id)]);
    }
    expect(groupOf(await endOf(run, at)).results).toEqual(["{{delay/300}} mine"]);
  });

  it("by its number with another time", async () => {
    const { id } = await openGroup(run, { prompts: ["a"] });
    const forged = id.replace(/^pg-\d/, (head) => (head === "pg-1" ? "pg-2" : "pg-1"));
    expect((await run.ask(`/groups/${forged}`)).status).toBe(404);
  });

  it("but is by the operator who names its run", async () => {
    const { at } = await openGroup(run, { prompts: ["a"] });
    const headers = { "x-fanout-run": run.id };
    const answer = await world.operate(`${at}?wait_ms=5000`, { headers });
    expect(groupOf(answer).results).toEqual(["a"]);
  });
});

/** A group without what differs from one time to the next. */
function measured(answer: Answer): unknown {
  const { results, errors, items, usage, status } = groupOf(answer);
  return { results, errors, usage, status, items: items.map((item) => ({ ...item, latency_ms: 0, queued_ms: 0 })) };
}
