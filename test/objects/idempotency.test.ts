/** The same key and body give the same group and its recorded answers, at no cost, whenever they come back. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { crash, evict, openingOf, pagesOf } from "../support/objects-direct.ts";
import { expectAtRest, keyed, openAsync, rowCounts } from "../support/objects-group.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a batch under an Idempotency-Key", () => {
  it("that has ended is answered as recorded, without a call to the upstream, before and after a restart", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const body = { prompts: prompts(5), model: "up/key/recorded/status/400/percent/40" };
    const first = await keyed(run, "again", "/batch", body);
    const { spent } = (await run.budget()).usd;
    const second = await keyed(run, "again", "/batch", body);
    await evict(run.object);
    const third = await keyed(run, "again", "/batch", body);
    expect(first).toMatchObject({ status: 200, replayed: false });
    for (const repeated of [second, third]) {
      expect(repeated).toMatchObject({ status: 200, replayed: true });
      expect(repeated.json).toEqual(first.json);
    }
    expect((await upstreamStats("recorded")).requests).toBe(5);
    expect((await run.budget()).usd.spent).toBe(spent);
    expect((await run.document()).stats.total_queries).toBe(5);
    await expectAtRest(run);
  });

  it("that still runs attaches later requests, from another connection and after a restart, and sends nothing twice", async () => {
    const run = await openRun({ max_parallel: 4 });
    const body = { prompts: prompts(8), model: "up/key/joined/latch/joined" };
    const client = new AbortController();
    const headers = { "idempotency-key": "joined" };
    const left = run.post("/batch", body, { signal: client.signal, headers }).then((response) => response.text());
    await untilInFlight("joined", 4);
    client.abort();
    await left.catch(() => null);
    // An object is evicted once its calls have ended.
    const evicted = evict(run.object);
    await openLatch("joined");
    await evicted;
    const back = await keyed(run, "joined", "/batch", body);
    expect(back).toMatchObject({ status: 200, replayed: true, json: { results: prompts(8), status: "completed" } });
    expect((await upstreamStats("joined")).requests).toBe(8);
    await expectAtRest(run);
  });

  it("that arrives twice concurrently opens one group", async () => {
    const run = await openRun();
    const body = { prompts: prompts(3), model: "up/key/at-once/delay/50" };
    const both = await Promise.all([1, 2, 3].map(() => keyed(run, "at once", "/batch", body)));
    expect(both).toMatchObject([{ status: 400 }, { status: 400 }, { status: 400 }]);
    const answers = await Promise.all([1, 2, 3].map(() => keyed(run, "at-once", "/batch", body)));
    expect(new Set(answers.map(({ json }) => group.parse(json).id)).size).toBe(1);
    expect(answers.map(({ replayed }) => replayed).toSorted()).toEqual([false, true, true]);
    expect((await upstreamStats("at-once")).requests).toBe(3);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1, named: 1 });
  });

  it("that arrives twice concurrently in a busy run opens one group", async () => {
    const run = await openRun({ max_parallel: 8 });
    // With calls in flight, what arrives together is decided in one turn.
    await openAsync(run, { prompts: prompts(4), model: "up/key/busy/latch/busy" });
    await untilInFlight("busy", 4);
    const { pages, models } = pagesOf(["named"], "up/key/busy");
    const idempotencyKey = { key: "busy", hash: "same" };
    const opened = await Promise.all(
      [1, 2, 3].map(() => run.object.openGroup({ ...openingOf(1, models), idempotencyKey }, pages)),
    );
    await openLatch("busy");
    expect(new Set(opened.map((reply) => (reply.ok ? reply.id : "refused"))).size).toBe(1);
    expect(opened.map((reply) => reply.ok && reply.replayed)).toEqual([false, true, true]);
    expect(await rowCounts(run)).toMatchObject({ grp: 2, page: 2, named: 1 });
  });

  it("with another body is a conflict, leaves nothing stored and does not disturb the first", async () => {
    const run = await openRun();
    const body = { prompts: ["one"], model: "up/key/conflict" };
    await keyed(run, "taken", "/batch", body);
    const before = await rowCounts(run);
    for (const [path, other] of [
      ["/batch", { ...body, prompts: ["two"] }],
      ["/query", { prompt: "one", model: "up/key/conflict" }],
    ] as const) {
      expect(await keyed(run, "taken", path, other)).toMatchObject({
        status: 409,
        json: { error: { code: "idempotency_conflict", retryable: false } },
      });
    }
    expect(await rowCounts(run)).toEqual(before);
    expect((await upstreamStats("conflict")).sends).toEqual({ one: 1 });
    expect(await keyed(run, "taken", "/batch", body)).toMatchObject({ replayed: true, json: { results: ["one"] } });
  });

  it("of another run is another key", async () => {
    const [mine, yours] = [await openRun(), await openRun()];
    const body = { prompts: ["one"], model: "up/key/two-runs" };
    await keyed(mine, "shared", "/batch", body);
    expect(await keyed(yours, "shared", "/batch", body)).toMatchObject({ replayed: false });
    expect((await upstreamStats("two-runs")).sends).toEqual({ one: 2 });
  });

  it(
    "that arrives in several calls is answered as recorded, and leaves no page of its repetition",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 12 });
      const large = prompts(30).map((prompt) => prompt.padEnd(100_000, "."));
      const body = { prompts: large, model: "up/key/large" };
      const first = await keyed(run, "large", "/batch", body);
      const stored = await rowCounts(run);
      await evict(run.object);
      const second = await keyed(run, "large", "/batch", body);
      expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(3);
      expect(second.replayed).toBe(true);
      expect(group.parse(second.json).results).toEqual(large);
      expect(group.parse(second.json).id).toBe(group.parse(first.json).id);
      expect(await rowCounts(run)).toEqual(stored);
      const conflict = await keyed(run, "large", "/batch", { ...body, prompts: large.slice(1) });
      expect(conflict.status).toBe(409);
      expect(await rowCounts(run)).toEqual(stored);
      expect((await upstreamStats("large")).requests).toBe(30);
    },
  );

  it("can be replayed as a stream and through its group's routes", async () => {
    const run = await openRun();
    const body = { prompts: prompts(3), model: "up/key/streamed-again" };
    const id = await openAsync(run, body, "async");
    expect(await openAsync(run, body, "async")).toBe(id);
    const response = await run.post("/batch", body, {
      accept: "application/x-ndjson",
      headers: { "idempotency-key": "async" },
    });
    const lines = new TextDecoder()
      .decode(await response.arrayBuffer())
      .trim()
      .split("\n");
    expect(response.headers.get("idempotent-replayed")).toBe("true");
    expect(lines.length).toBe(5);
    expect((await upstreamStats("streamed-again")).requests).toBe(3);
  });

  it(
    "can be replayed as a stream of several pages by an instance that has only its rows",
    { tags: ["slow"] },
    async () => {
      const run = await openRun();
      const words = "word ".repeat(2_000);
      const body = { prompts: prompts(30).map((prompt) => `${prompt} ${words}`), model: "up/key/paged-again" };
      await keyed(run, "paged", "/batch", body);
      await crash(run.object);
      const request = { accept: "application/x-ndjson", headers: { "idempotency-key": "paged" } };
      const lines = (await (await run.post("/batch", body, request)).text()).split("\n");
      const texts = lines.filter((line) => line.includes('"type":"slot"'));
      expect(texts.map((line, index) => line.includes(`"result":"${body.prompts[index] ?? "none"}"`))).toEqual(
        Array<boolean>(30).fill(true),
      );
    },
  );
});

describe("the opening of a group", () => {
  it("whose reply was lost finds the group that it has opened, before and after a restart", async () => {
    const run = await openRun();
    const { pages, models } = pagesOf(["once"], "up/key/reopened");
    const request = openingOf(1, models);
    const first = await run.object.openGroup(request, pages);
    const second = await run.object.openGroup(request, pages);
    await evict(run.object);
    const third = await run.object.openGroup(request, pages);
    if (!first.ok) throw new Error("the batch was refused");
    for (const reply of [second, third]) expect(reply).toMatchObject({ ok: true, id: first.id, replayed: false });
    expect((await run.object.openGroup(openingOf(1, models), pages)).ok).toBe(true);
    expect(await rowCounts(run)).toMatchObject({ grp: 2, page: 2 });
  });

  it("that arrives twice in one turn opens one group", async () => {
    const run = await openRun();
    const { pages, models } = pagesOf(["once"], "up/key/reopened-at-once");
    const request = openingOf(1, models);
    const replies = await Promise.all([1, 2].map(() => run.object.openGroup(request, pages)));
    expect(new Set(replies.map((reply) => (reply.ok ? reply.id : "refused"))).size).toBe(1);
    expect(await rowCounts(run)).toMatchObject({ grp: 1, page: 1 });
  });
});

describe("a query under an Idempotency-Key", () => {
  it("is answered as recorded, without a call to the upstream, before and after a restart", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const body = { prompt: "one", model: "up/key/one-query" };
    const first = await keyed(run, "query", "/query", body);
    const second = await keyed(run, "query", "/query", body);
    await evict(run.object);
    const third = await keyed(run, "query", "/query", body);
    expect(first).toMatchObject({ status: 200, replayed: false, json: { text: "one", parallel_group_id: null } });
    for (const repeated of [second, third]) expect(repeated).toEqual({ ...first, replayed: true });
    expect((await upstreamStats("one-query")).requests).toBe(1);
    await expectAtRest(run);
  });

  it("that still runs attaches later requests", async () => {
    const run = await openRun();
    const body = { prompt: "one", model: "up/key/joined-query/latch/joined-query" };
    const first = keyed(run, "query", "/query", body);
    await untilInFlight("joined-query", 1);
    const second = keyed(run, "query", "/query", body);
    await openLatch("joined-query");
    expect(await second).toEqual({ ...(await first), replayed: true });
    expect((await upstreamStats("joined-query")).requests).toBe(1);
  });

  it("that failed replays the same failure, and is not retried", async () => {
    const run = await openRun();
    const body = { prompt: "one", model: "up/key/failed-query/status/400" };
    const first = await keyed(run, "query", "/query", body);
    expect(first.status).toBe(502);
    expect(await keyed(run, "query", "/query", body)).toMatchObject({ status: 502, json: first.json });
    expect((await upstreamStats("failed-query")).requests).toBe(1);
  });

  it("belongs to its parallel group like a query without a key, also in a replay", async () => {
    const run = await openRun({ window_ms: 10_000, max_parallel: 8 });
    const model = "up/key/windowed/latch/windowed";
    const send = (prompt: string) => keyed(run, prompt, "/query", { prompt, model });
    // It opens the window: only the others form its group.
    const opening = run.query({ prompt: "second", model });
    await untilInFlight("windowed", 1);
    const answers = Promise.all([send("first"), opening, send("third")]);
    await untilInFlight("windowed", 3);
    expect((await run.send("POST", `/runs/${run.id}/flush`)).ok).toBe(true);
    await openLatch("windowed");
    const [first, plain, third] = await answers;
    const group = plain.parallel_group_id;
    expect(group).toMatch(/^pg-/);
    expect([first, third].map(({ json }) => query.parse(json).parallel_group_id)).toEqual([group, group]);
    await evict(run.object);
    expect(query.parse((await send("first")).json).parallel_group_id).toBe(group);
    expect((await run.document()).stats).toMatchObject({
      total_queries: 3,
      parallel_batches: 1,
      total_parallel_queries: 3,
      sequential_queries: 0,
    });
  });
});

const group = z.looseObject({ id: z.string(), results: z.array(z.string()) });
const query = z.looseObject({ parallel_group_id: z.string().nullable() });
