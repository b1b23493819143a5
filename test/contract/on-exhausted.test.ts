/** `on_exhausted: "pause"`: a batch whose budget is used up waits for a higher limit, also through a SIGKILL. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runningGroup } from "../../src/contract/groups.ts";
import { openedRunDocument } from "../../src/contract/runs.ts";
import { endOf, logOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { answerOf, documentOf, groupOf, type Answer, type RunAccess } from "./world.ts";

const PROMPTS = ["one", "two", "three", "four", "five"];
const CALLS = 3;
const RULES = { default_model: "up-1", max_parallel: 2 };
const PAUSE = { on_exhausted: "pause" };

let place: Restarting;
beforeAll(async () => (place = await startRestarting()));
afterAll(() => place.stop());

const patch = async (id: string, json: object): Promise<Answer> => {
  const gateway = place.gateway();
  return answerOf(await gateway.fetch(`/runs/${id}`, { method: "PATCH", token: gateway.adminKey, json }));
};

/** The group once it has paused. */
async function pausedAt(run: RunAccess, at: string) {
  return vi.waitFor(
    async () => {
      const group = runningGroup().parse((await run.send(at)).json);
      expect(group.paused).toBeDefined();
      return group;
    },
    { timeout: 20_000, interval: 20 },
  );
}

const pauses = async (run: RunAccess) =>
  (await logOf(run)).filter(({ event_type }) => ["group_paused", "group_resumed"].includes(event_type));

describe("a batch whose run is opened with on_exhausted", () => {
  it("waits when the budget is used up, survives a SIGKILL, and continues when the limit is raised", async () => {
    const run = await place.openRun({ ...RULES, ...PAUSE, budget: { calls: CALLS } });
    const { at } = await openGroup(run, { prompts: PROMPTS });
    const group = await pausedAt(run, at);
    expect(group).toMatchObject({
      status: "running",
      counts: { completed: CALLS, queued: PROMPTS.length - CALLS, failed: 0 },
      waiting_for: [{ budget: "calls", exhausted: true, slots: PROMPTS.length - CALLS }],
      paused: { budget: "calls", since: expect.any(String) },
    });
    const asked = place.upstream.counters.requests;
    await place.restart();
    expect((await pausedAt(run, at)).paused).toEqual(group.paused);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: CALLS, reserved: 0 });
    expect((await patch(run.id, { budget: { calls: 10 } })).status).toBe(200);
    const ended = groupOf(await endOf(run, at));
    expect(ended).toMatchObject({ status: "completed", results: PROMPTS });
    expect(place.upstream.counters.requests - asked).toBe(PROMPTS.length - CALLS);
    expect((await documentOf(run)).budget.calls.spent).toBe(PROMPTS.length);
    expect(await pauses(run)).toMatchObject([
      {
        event_type: "group_paused",
        code: "budget_exhausted",
        dimension: "calls",
        limit: CALLS,
        spent: CALLS,
        needed: 1,
      },
      { event_type: "group_resumed", paused_ms: expect.any(Number) },
    ]);
  });

  it("answers a client that waits all the while, once the limit is raised", async () => {
    const run = await place.openRun({ ...RULES, budget: { calls: 1 } });
    const answer = run.send("/batch", { json: { prompts: ["one", "two"], ...PAUSE } });
    await vi.waitUntil(async () => (await pauses(run)).length > 0, { timeout: 20_000, interval: 20 });
    await patch(run.id, { budget: { calls: 2 } });
    expect(groupOf(await answer)).toMatchObject({ status: "completed", results: ["one", "two"] });
  });

  it("continues when a child run returns what it has not spent", async () => {
    const run = await place.openRun({ ...RULES, ...PAUSE, budget: { calls: 2 } });
    const child = openedRunDocument().parse((await run.send("/runs", { json: { budget: { calls: 1 } } })).json);
    const { at } = await openGroup(run, { prompts: ["one", "two"] });
    await pausedAt(run, at);
    await run.send(`/runs/${child.id}/close`, { method: "POST" });
    expect(groupOf(await endOf(run, at))).toMatchObject({ status: "completed" });
  });

  it("pauses graphs as well", async () => {
    const run = await place.openRun({ ...RULES, budget: { calls: 1 } });
    const tasks = [
      { id: "a", prompt: "one" },
      { id: "b", prompt: "two {{a.output}}" },
    ];
    const opened = await run.send("/dag", { json: { tasks, ...PAUSE }, headers: { prefer: "respond-async" } });
    const at = opened.headers.get("location") ?? "";
    await vi.waitUntil(async () => (await pauses(run)).length > 0, { timeout: 20_000, interval: 20 });
    await patch(run.id, { budget: { calls: 2 } });
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed", outputs: { b: "two one" } });
  });
});

describe("a paused batch ends", () => {
  it("at its deadline, with what the budget lacks", { tags: ["slow"] }, async () => {
    const run = await place.openRun({ ...RULES, ...PAUSE, budget: { calls: 1 } });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["one", "two"], deadline_ms: 1_500 } }));
    expect(group).toMatchObject({ status: "partial", results: ["one", expect.any(String)] });
    expect(group.errors[1]).toMatchObject({ code: "budget_exhausted", dimension: "calls", limit: 1 });
  });

  it("with its run, and when it is cancelled", async () => {
    const run = await place.openRun({ ...RULES, ...PAUSE, budget: { calls: 1 } });
    const first = await openGroup(run, { prompts: ["one", "two"] });
    const second = await openGroup(run, { prompts: ["three"] });
    await pausedAt(run, first.at);
    await pausedAt(run, second.at);
    expect((await run.send(second.at, { method: "DELETE" })).json).toMatchObject({ status: "cancelled" });
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    expect(groupOf(await endOf(run, first.at))).toMatchObject({ status: "cancelled", counts: { cancelled: 1 } });
  });
});

it("waits with its whole cap rather than be cut at what is left", async () => {
  const run = await place.openRun({ ...RULES, ...PAUSE, budget: { completion_tokens: 4_096 } });
  const long = "many words ".repeat(400);
  const { at } = await openGroup(run, { prompts: ["short", long] });
  await patch(run.id, { budget: { completion_tokens: 40_000 } });
  const group = groupOf(await endOf(run, at));
  expect(group).toMatchObject({ status: "completed", results: ["short", long] });
  expect(group.items.map((item) => item["capped_by"])).toEqual([undefined, undefined]);
});

describe("at_least", () => {
  const FAILS = "{{status/400}} no";

  it.each([
    [0.5, "completed"],
    [0.51, "partial"],
  ])("%f of two calls of which one fails: %s, with what is missing", async (at_least, status) => {
    const run = await place.openRun(RULES);
    const json = { prompts: ["one", FAILS], at_least };
    const group = groupOf(await run.send("/batch", { json }));
    expect(group).toMatchObject({ status, missing: [1], results: ["one", expect.any(String)] });
    expect((await run.send(`/groups/${group.id}`)).json).toMatchObject({ status, missing: [1] });
    const lines = (await run.send("/batch", { json, headers: { accept: "application/x-ndjson" } })).text;
    expect(JSON.parse(lines.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ status, missing: [1] });
  });

  it("of a graph counts its calls, and what an alternative answers for", async () => {
    const run = await place.openRun(RULES);
    const tasks = [
      { id: "a", prompt: "one" },
      { id: "b", prompt: FAILS },
    ];
    const statusOf = async (json: object): Promise<unknown> => (await run.send("/dag", { json })).json;
    expect(await statusOf({ tasks, at_least: 0.5 })).toMatchObject({ status: "completed", failed: ["b"] });
    expect(await statusOf({ tasks, at_least: 0.6 })).toMatchObject({ status: "partial", failed: ["b"] });
    expect(await statusOf({ tasks })).toMatchObject({ status: "partial" });
  });

  it("says nothing of missing calls where it was not requested, and is a share", async () => {
    const run = await place.openRun(RULES);
    expect(groupOf(await run.send("/batch", { json: { prompts: ["one", FAILS] } })).missing).toBeUndefined();
    for (const at_least of [0, 1.01, "1"])
      expect((await run.send("/batch", { json: { prompts: ["one"], at_least } })).status).toBe(400);
  });
});

it("on_exhausted of a batch overrides that of its run, and a single call is refused at once", async () => {
  const run = await place.openRun({ ...RULES, ...PAUSE, budget: { calls: 0 } });
  const group = groupOf(await run.send("/batch", { json: { prompts: ["one"], on_exhausted: "fail" } }));
  expect(group).toMatchObject({ status: "failed", errors: [{ code: "budget_exhausted" }] });
  expect((await run.send("/query", { json: { prompt: "one" } })).status).toBe(402);
});
