/** Tiers of the calls of a batch: which wait for which, and what a failure of each means. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { ASYNC, endOf, logOf, openGroup } from "./following.ts";
import { errorOf, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const openOwn = (more: Record<string, unknown> = {}) =>
  world.openRun({ default_model: "up-1", budget: { usd: 50 }, ...more });

const item = (tier: string | undefined, prompt: string, more: object = {}) =>
  tier === undefined ? { prompt, ...more } : { tier, prompt, ...more };

describe("strict tiers", () => {
  it("start nothing of a tier before all calls of those before it have ended", async () => {
    const run = await openOwn({ max_parallel: 8 });
    const items = [
      item("P1", "b1"),
      item("P0", "{{latch/first}} a1"),
      item(undefined, "c1"),
      item("P0", "{{status/400}} a2"),
      item("P1", "{{latch/second}} b2"),
    ];
    const { at } = await openGroup(run, { items, tiers: "strict" });
    const { counters } = world.upstream;
    await expect.poll(() => counters.requests, { interval: 10 }).toBe(2);
    const inOrder = async () => (await run.send(`${at}`)).json;
    await expect.poll(inOrder).toMatchObject({ counts: { running: 1, failed: 1, queued: 3 } });
    expect(counters.requests).toBe(2);
    world.upstream.open("first");
    await expect.poll(inOrder).toMatchObject({ counts: { running: 1, completed: 2, queued: 1 } });
    expect(counters.requests).toBe(4);
    world.upstream.open("second");
    expect((await endOf(run, at)).json).toMatchObject({ status: "escalated", counts: { completed: 4, failed: 1 } });
    const started = (await logOf(run)).filter((line) => line.event_type === "attempt_started");
    expect(started.map((line) => [0, 2, 4].indexOf(Number(line["index"])) === -1).slice(0, 2)).toEqual([true, true]);
    expect(started.at(-1)).toMatchObject({ index: 2 });
  });

  it("are a barrier in a group of 400 that its own Worker executes", async () => {
    const run = await openOwn({ max_parallel: 64 });
    const tierOf = (at: number) => `P${at % 3}`;
    const items = Array.from({ length: 400 }, (_, at) => item(tierOf(at), `{{jitter/20}} p${at}`));
    const answer = await run.send("/batch", { json: { items, tiers: "strict" } });
    expect(answer.json).toMatchObject({ status: "completed", escalations: [], warnings: [], notes: [] });
    const lines = await logOf(run);
    const tiers = lines
      .filter(({ event_type }) => event_type === "attempt_started")
      .map((line) => Number(line["index"]) % 3);
    expect(tiers).toEqual(tiers.toSorted((a, b) => a - b));
    const before = lines.findIndex((line) => line.event_type === "attempt_started" && Number(line["index"]) % 3 === 1);
    const ended = lines.slice(0, before).filter(({ event_type }) => event_type === "slot_completed");
    expect(ended).toHaveLength(134);
  });
});

describe("a failed call", () => {
  it("is an escalation, a warning or a note by its tier, in every form of the answer", async () => {
    const run = await openOwn();
    const failing = "{{status/400}} x";
    const items = [
      item("P2", failing),
      item("P1", failing, { id: "second" }),
      item("P0", failing, { id: "first" }),
      item("P0", "fine"),
      item(undefined, failing),
    ];
    const listed = {
      status: "escalated",
      escalations: [{ index: 2, id: "first", tier: "P0", code: "upstream_error", message: expect.any(String) }],
      warnings: [{ index: 1, id: "second", tier: "P1" }],
      notes: [
        { index: 0, tier: "P2" },
        { index: 4, tier: "P2" },
      ],
    };
    expect((await run.send("/batch", { json: { items } })).json).toMatchObject(listed);
    const lines = await run.send("/batch", { json: { items }, headers: { accept: "application/x-ndjson" } });
    expect(JSON.parse(lines.text.trim().split("\n").at(-1) ?? "")).toMatchObject(listed);
    const accepted = await run.send("/batch", { json: { items }, headers: { ...ASYNC, "idempotency-key": "k" } });
    const { id } = accepted.json as { id: string };
    expect((await endOf(run, `/groups/${id}`)).json).toMatchObject(listed);
    expect((await run.send(`/groups/${id}/report?format=json`)).json).toMatchObject(listed);
    const ends = (await logOf(run)).filter((line) => line.event_type === "group_completed");
    expect(ends.map((line) => line["status"])).toEqual(["escalated", "escalated", "escalated"]);
  });

  it("of P0 is an event of the log at once, while its group runs on; one of P1 is none", async () => {
    const run = await openOwn();
    const items = [item("P0", "{{status/400}} x"), item("P1", "{{status/400}} y"), item("P0", "{{latch/last}} z")];
    const { at } = await openGroup(run, { items });
    const escalated = async () => (await logOf(run)).filter((line) => line.event_type === "escalated");
    await expect.poll(async () => (await escalated()).length).toBe(1);
    expect((await escalated())[0]).toMatchObject({
      index: 0,
      tier: "P0",
      code: "upstream_error",
      message: expect.any(String),
    });
    expect((await run.send(at)).json).toMatchObject({ status: "running" });
    world.upstream.open("last");
    expect((await endOf(run, at)).json).toMatchObject({ status: "escalated" });
    expect(await escalated()).toHaveLength(1);
    const forged = await run.send(`/runs/${run.id}/log`, { json: { event_type: "escalated" } });
    expect(forged.status).toBe(400);
  });

  it("of P1 alone leaves the group partial, and a batch without tiers lists none", async () => {
    const run = await openOwn();
    const items = [item("P1", "{{status/400}} x"), item("P0", "a")];
    expect((await run.send("/batch", { json: { items } })).json).toMatchObject({ status: "partial", escalations: [] });
    const plain = await run.send("/batch", { json: { prompts: ["{{status/400}} x"] } });
    expect(plain.json).not.toHaveProperty("notes");
  });
});

it("the more important tier starts first, unless an item names its own priority", async () => {
  const run = await openOwn({ max_parallel: 1 });
  const items = [item("P2", "c"), item("P1", "b", { priority: "background" }), item("P0", "a"), item("P1", "b2")];
  await run.send("/batch", { json: { items, concurrency: 1 } });
  const started = (await logOf(run)).filter((line) => line.event_type === "attempt_started");
  expect(started.map((line) => line["index"])).toEqual([2, 3, 0, 1]);
});

it.each([
  [{ prompts: ["a"], tiers: "loose" }, "tiers"],
  [{ items: [{ prompt: "a", tier: "P3" }] }, "items[0].tier"],
  [{ prompts: ["a"], tier: "P0" }, "tier"],
])("%j is refused with the name of the field", async (json, param) => {
  const run = await openOwn();
  expect(errorOf(await run.send("/batch", { json })).param).toBe(param);
});

describe("a run in which something has escalated", () => {
  const failing = { items: [item("P0", "{{status/400}} a"), item("P1", "b")] };
  const undecided = { prompts: ["yes", "no"], aggregate: { strategy: "vote", escalate: {} } };

  it.each([
    ["a call of P0", failing],
    ["a vote that decides nothing", undecided],
  ])("by %s is escalated wherever it is shown, and goes on taking calls", async (_, json) => {
    const run = await openOwn({ name: "watched" });
    const statuses = async (): Promise<unknown[]> => {
      const shown = z.looseObject({ status: z.string() });
      const own = shown.parse((await run.send("/run")).json).status;
      const operators = shown.parse((await world.sendAsOperator(`/runs/${run.id}`)).json).status;
      const listed = (await world.sendAsOperator(`/runs?status=escalated&name=watched&limit=1`)).json;
      return [own, operators, z.object({ data: z.array(z.looseObject({ id: z.string() })) }).parse(listed).data[0]?.id];
    };
    expect((await statuses())[0]).toBe("active");
    expect((await run.send("/batch", { json })).json).toMatchObject({ status: "escalated" });
    expect(await statuses()).toEqual(["escalated", "escalated", run.id]);
    expect((await run.send("/query", { json: { prompt: "next" } })).status).toBe(200);
    expect((await run.send(`/runs/${run.id}/worker-token`, { method: "POST" })).status).toBe(201);
    const patch = async (paused: boolean): Promise<unknown> =>
      (await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { paused } })).json;
    expect(await patch(true)).toMatchObject({ status: "paused" });
    expect(await patch(false)).toMatchObject({ status: "escalated" });
    expect((await run.send(`/runs/${run.id}/close`, { method: "POST" })).json).toMatchObject({ status: "closed" });
  });

  it("by a failure of a lower tier stays active", async () => {
    const run = await openOwn();
    await run.send("/batch", { json: { items: [item("P1", "{{status/400}} a"), item("P2", "{{status/400}} b")] } });
    expect((await run.send("/run")).json).toMatchObject({ status: "active" });
  });

  it("leaves the runs above it active", async () => {
    const parent = await openOwn();
    const opened = await parent.send("/runs", { json: {} });
    const { token } = z.looseObject({ token: z.string() }).parse(opened.json);
    await world.send("/batch", { token, json: failing });
    expect((await world.send("/run", { token })).json).toMatchObject({ status: "escalated" });
    expect((await parent.send("/run")).json).toMatchObject({ status: "active" });
  });
});
