/** Cancelling what runs: the upstream's connections are closed, not just forgotten, and nothing stays reserved. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { ASYNC, endOf, openGroup } from "./following.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const openOwn = (more: Record<string, unknown> = {}) =>
  world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 8, ...more });

const hanging = (count: number, name = "h") => Array.from({ length: count }, (_, at) => `{{fault/hang}} ${name}${at}`);

async function inFlight(count: number): Promise<void> {
  await expect.poll(() => world.upstream.counters.inFlight, { interval: 10 }).toBe(count);
}

/** Does what closes `count` connections at the upstream. That no heartbeat is needed: test/objects/cancel.test.ts. */
async function closing<T>(count: number, act: () => Promise<T>): Promise<T> {
  const done = await act();
  await expect.poll(() => world.upstream.counters.abandoned, { interval: 10 }).toBe(count);
  expect(world.upstream.counters.inFlight).toBe(0);
  return done;
}

async function expectNothingReserved(run: RunAccess): Promise<void> {
  const { budget, stats } = await documentOf(run);
  expect(Object.values(budget).filter(({ reserved }) => reserved !== 0)).toEqual([]);
  expect(stats.pending_queries).toBe(0);
}

const cancel = (run: RunAccess, path: string) => run.send(path, { method: "DELETE" });

describe("DELETE /groups/:id", () => {
  it("closes calls in flight, never starts queued ones, and keeps ended results", async () => {
    const run = await openOwn();
    const { at } = await openGroup(run, { prompts: ["a", "b", ...hanging(30)], concurrency: 6 });
    await inFlight(6);
    const { budget: before } = await documentOf(run);
    const answer = await closing(6, () => cancel(run, at));
    expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ object: "group", count: 32 })]);
    const group = groupOf(await endOf(run, at));
    expect([group.status, group.results.slice(0, 2)]).toEqual(["cancelled", ["a", "b"]]);
    const rest = group.items.slice(2);
    expect(rest.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => "cancelled"));
    expect(group.errors.slice(2).every((error) => error?.code === "cancelled")).toBe(true);
    expect(rest.filter(({ attempts }) => attempts === 1)).toHaveLength(6);
    expect(rest.filter(({ attempts }) => attempts === 0)).toHaveLength(24);
    // What a provider bills for a closed call is unknown: it stays charged at its reservation.
    expect(rest.filter((item) => item["estimated"] === true)).toHaveLength(6);
    expect(world.upstream.counters.requests).toBe(8);
    await expectNothingReserved(run);
    const { budget } = await documentOf(run);
    expect(budget.usd.spent).toBeCloseTo(before.usd.spent + before.usd.reserved, 9);
    expect(budget.calls.spent).toBe(8);
  });

  it("can cancel a single slot: its connection is closed, and the others continue", async () => {
    const run = await openOwn();
    const { at } = await openGroup(run, { prompts: ["a", ...hanging(1), "c"] });
    await inFlight(1);
    expect((await cancel(run, `${at}/slots/3`)).status).toBe(404);
    expect((await cancel(run, `${at}/slots/x`)).status).toBe(404);
    const answer = await closing(1, () => cancel(run, `${at}/slots/1`));
    expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ status: "partial", count: 3 })]);
    const group = groupOf(await endOf(run, at));
    expect(group.items.map(({ status }) => status)).toEqual(["completed", "cancelled", "completed"]);
    await expectNothingReserved(run);
  });

  it("frees the run's permits for later calls", async () => {
    const run = await openOwn({ max_parallel: 2 });
    const { at } = await openGroup(run, { prompts: hanging(9) });
    await inFlight(2);
    const next = run.send("/query", { json: { prompt: "next" } });
    await closing(2, () => cancel(run, at));
    expect((await next).status).toBe(200);
  });

  it("is reported to everyone who waits for the group, in every reply format", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const key = (accept: string) => ({ accept, "idempotency-key": "waiting" });
    const json = { prompts: hanging(3) };
    const [whole, lines] = ["application/json", "application/x-ndjson"].map((accept) =>
      run.send("/batch", { json, headers: key(accept) }),
    );
    const left = await run.send("/batch", { json, headers: { ...key("application/json"), ...ASYNC } });
    await inFlight(3);
    await closing(3, () => cancel(run, left.headers.get("location") ?? ""));
    if (whole === undefined || lines === undefined) throw new Error("nothing was asked");
    expect(groupOf(await whole).status).toBe("cancelled");
    const told = (await lines).text.trimEnd().split("\n");
    expect(told).toHaveLength(5);
    expect(JSON.parse(told[4] ?? "")).toMatchObject({ type: "group_completed", status: "cancelled" });
  });

  it("fails a waiting request of error_style throw with 409", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const json = { prompts: hanging(2), error_style: "throw" };
    const waiting = run.send("/batch", { json, headers: { "idempotency-key": "thrown" } });
    const { headers } = await run.send("/batch", { json, headers: { "idempotency-key": "thrown", ...ASYNC } });
    await inFlight(2);
    await closing(2, () => cancel(run, headers.get("location") ?? ""));
    const answer = await waiting;
    expect([answer.status, errorOf(answer).code]).toEqual([409, "cancelled"]);
  });

  it("ends a call that waits for its retry", async () => {
    const run = await openOwn({ default_model: world.modelAside() });
    const { at } = await openGroup(run, { prompts: ["{{status/429/retry-after/30}}"] });
    await expect.poll(async () => (await documentOf(run)).metrics.attempts).toBe(1);
    await cancel(run, at);
    expect(groupOf(await endOf(run, at)).status).toBe("cancelled");
    // The next attempt, which would be due in half a minute, is not made.
    expect(world.upstream.counters.requests).toBe(1);
    await expectNothingReserved(run);
  });

  it("ends the call of a /query with an idempotency key with 409", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const json = { prompt: "{{fault/hang}}" };
    const waiting = run.send("/query", { json, headers: { "idempotency-key": "q" } });
    const { headers } = await run.send("/query", { json, headers: { "idempotency-key": "q", ...ASYNC } });
    await inFlight(1);
    await closing(1, () => cancel(run, headers.get("location") ?? ""));
    const answer = await waiting;
    expect([answer.status, errorOf(answer).code]).toEqual([409, "cancelled"]);
  });

  it("does not change a group that has ended, however often it is sent", async () => {
    const run = await openOwn();
    const { at } = await openGroup(run, { prompts: ["a"] });
    const before = await endOf(run, at);
    for (let time = 0; time < 2; time += 1) {
      const answer = await cancel(run, at);
      expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ status: "completed" })]);
    }
    expect((await run.send(at)).text).toBe(before.text);
  });

  it("does not affect other groups of the run", async () => {
    const run = await openOwn();
    const doomed = await openGroup(run, { prompts: hanging(2) });
    const other = await openGroup(run, { prompts: ["{{latch/other}} other"] });
    await inFlight(3);
    await cancel(run, doomed.at);
    world.upstream.open("other");
    expect(groupOf(await endOf(run, other.at)).results).toEqual(["{{latch/other}} other"]);
    // A busy machine closes connections after it has answered.
    await expect.poll(() => world.upstream.counters.abandoned).toBe(2);
  });
});

const LATCHED = (count: number, latch: string) => Array.from({ length: count }, (_, at) => `{{latch/${latch}}} ${at}`);

describe("a group whose calls in flight may end", () => {
  it.each([
    ["DELETE /groups/:id?in_flight=end", (run: RunAccess, at: string) => cancel(run, `${at}?in_flight=end`)],
    [
      "POST /groups/cancel with its id",
      (run: RunAccess, at: string) => run.send("/groups/cancel", { json: { ids: [at.slice("/groups/".length)] } }),
    ],
  ])("by %s starts no queued call, and is charged what the answers cost", async (name, stop) => {
    const run = await openOwn();
    const latch = `stopped-${name.startsWith("POST")}`;
    const { at } = await openGroup(run, { prompts: LATCHED(20, latch), concurrency: 5 });
    await inFlight(5);
    expect((await stop(run, at)).status).toBe(200);
    world.upstream.open(latch);
    const group = groupOf(await endOf(run, at));
    expect(group.items.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 5 }, () => "completed"),
      ...Array.from({ length: 15 }, () => "cancelled"),
    ]);
    expect(world.upstream.counters).toMatchObject({ requests: 5, abandoned: 0 });
    expect(group.items.some((item) => item["estimated"] === true)).toBe(false);
    await expectNothingReserved(run);
  });

  it("is found by the key of its request, and its figures are those at the end of its calls", async () => {
    const run = await openOwn();
    const headers = (key: string) => ({ "idempotency-key": key });
    const batch = run.send("/batch", {
      json: { prompts: ["a", "b", ...LATCHED(9, "keyed")], concurrency: 3 },
      headers: headers("batch-key"),
    });
    const query = run.send("/query", { json: { prompt: "{{latch/keyed}} q" }, headers: headers("query-key") });
    await inFlight(4);
    const json = { idempotency_keys: ["batch-key", "query-key", "other"], wait_ms: 60_000 };
    const cancelled = run.send("/groups/cancel", { json });
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(4);
    world.upstream.open("keyed");
    const { json: reply } = await cancelled;
    const counts = { queued: 0, running: 0, completed: 6, failed: 0, skipped: 0, cancelled: 6 };
    const { budget } = await documentOf(run);
    expect(reply).toEqual({
      object: "cancellation",
      groups: 2,
      ids: [expect.stringMatching(/^pg-/), expect.stringMatching(/^pg-/)],
      running: 0,
      counts,
      spent_usd: budget.usd.spent,
      unknown: ["other"],
    });
    expect([(await query).status, groupOf(await batch).status]).toEqual([200, "cancelled"]);
    expect(world.upstream.counters.requests).toBe(6);
  });

  it("can be aborted afterwards", async () => {
    const run = await openOwn();
    const { id, at } = await openGroup(run, { prompts: hanging(4), concurrency: 2 });
    await inFlight(2);
    const stopped = await run.send("/groups/cancel", { json: { ids: [id] } });
    expect(stopped.json).toMatchObject({ running: 1, counts: { running: 2, cancelled: 2 } });
    const aborted = await closing(2, () => run.send("/groups/cancel", { json: { ids: [id], in_flight: "abort" } }));
    expect(aborted.json).toMatchObject({ running: 0, counts: { running: 0, cancelled: 4 } });
    expect(groupOf(await endOf(run, at)).status).toBe("cancelled");
  });

  it("is not that of another run, nor is a child run stopped by its key", async () => {
    const [run, other] = [await openOwn(), await openOwn()];
    const { id } = await openGroup(run, { prompts: LATCHED(1, "of-run") });
    await other.send("/runs", { json: {}, headers: { "idempotency-key": "child" } });
    const reply = await other.send("/groups/cancel", { json: { ids: [id], idempotency_keys: ["child"] } });
    expect(reply.json).toMatchObject({ groups: 0, spent_usd: 0, unknown: ["child", id] });
    world.upstream.open("of-run");
  });

  it.each([
    [{}, "expected the name of a group, in ids or idempotency_keys"],
    [{ ids: Array.from({ length: 10_001 }, (_, at) => `${at}`) }, "at most 10000"],
    [{ ids: ["pg-1"], in_flight: "stop" }, "in_flight"],
    [{ id: "pg-1" }, "ids"],
  ])("is named in full: %#", async (json, message) => {
    const run = await openOwn();
    const answer = await run.send("/groups/cancel", { json });
    expect([answer.status, errorOf(answer).message]).toEqual([400, expect.stringContaining(message)]);
  });
});

describe("DELETE /runs/:id", () => {
  it(
    "closes the calls of batches and queries in flight, and replies to everyone who waits for them",
    { tags: ["slow"] },
    async () => {
      const run = await openOwn();
      const { at } = await openGroup(run, { prompts: hanging(10), concurrency: 4 });
      const queries = hanging(3, "q").map((prompt) => run.send("/query", { json: { prompt } }));
      await inFlight(7);
      const answer = await closing(7, () => cancel(run, `/runs/${run.id}`));
      expect(answer.json).toMatchObject({ status: "cancelled" });
      for (const query of await Promise.all(queries)) {
        expect([query.status, errorOf(query).code]).toEqual([409, "cancelled"]);
      }
      const group = groupOf(await endOf(run, at));
      expect([group.status, new Set(group.items.map(({ status }) => status))]).toEqual([
        "cancelled",
        new Set(["cancelled"]),
      ]);
      await expectNothingReserved(run);
      expect(world.upstream.counters.requests).toBe(7);
      const late = await run.send("/query", { json: { prompt: "late" } });
      expect([late.status, errorOf(late).code]).toEqual([401, "invalid_api_key"]);
    },
  );

  it("closes the calls of every descendant run", { tags: ["slow"] }, async () => {
    const run = await openOwn({ max_depth: 2 });
    const child = await childOf(run);
    const grandchild = await childOf(child);
    await openGroup(run, { prompts: hanging(2, "a") });
    await openGroup(child, { prompts: hanging(2, "b") });
    const query = grandchild.send("/query", { json: { prompt: "{{fault/hang}} c" } });
    await inFlight(5);
    await closing(5, () => cancel(run, `/runs/${run.id}`));
    expect((await query).status).toBe(409);
    for (const access of [grandchild, child, run]) {
      expect(await documentOf(access)).toMatchObject({ status: "cancelled" });
      await expect.poll(async () => (await documentOf(access)).budget.usd.reserved).toBe(0);
    }
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 5, reserved: 0 });
  });

  it("of a child does not end its parent", async () => {
    const run = await openOwn();
    const child = await childOf(run);
    const { at } = await openGroup(run, { prompts: ["{{latch/parent}} parent"] });
    await openGroup(child, { prompts: hanging(2) });
    await inFlight(3);
    await cancel(run, `/runs/${child.id}`);
    await expect.poll(() => world.upstream.counters.abandoned).toBe(2);
    world.upstream.open("parent");
    expect(groupOf(await endOf(run, at)).status).toBe("completed");
    await expect.poll(async () => (await documentOf(run)).budget.calls).toMatchObject({ spent: 3, reserved: 0 });
  });
});

describe("POST /runs/:id/close", () => {
  it("lets calls in flight finish, and starts nothing more", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const prompts = ["{{delay/2000}} a", "{{delay/2000}} b", "never"];
    const { at } = await openGroup(run, { prompts, concurrency: 2 });
    await inFlight(2);
    expect((await run.send(`/runs/${run.id}/close`, { method: "POST" })).json).toMatchObject({ status: "closed" });
    const group = groupOf(await endOf(run, at));
    expect(group.items.map(({ status }) => status)).toEqual(["completed", "completed", "cancelled"]);
    expect(world.upstream.counters).toMatchObject({ requests: 2, abandoned: 0 });
    await expectNothingReserved(run);
  });
});

async function childOf(run: RunAccess): Promise<RunAccess> {
  const opened = z.looseObject({ id: z.string(), token: z.string() });
  const { id, token } = opened.parse((await run.send("/runs", { json: {} })).json);
  return { id, token, send: (path, request) => world.send(path, { token, ...request }) };
}
