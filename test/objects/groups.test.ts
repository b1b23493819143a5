import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { RunObject } from "../../src/index.ts";
import { CALL_AGE_MS_MAX } from "../../src/limits.ts";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { isHit } from "../support/steering.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";
import { crash, evict, openUnwatched } from "../support/objects-direct.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { skipTime } from "../support/objects-clock.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const GROUP_ID = /^pg-\d{13}-[0-9a-z]{1,6}$/;

/** A body that arrives once the test writes it. */
function slowBody() {
  const written = Promise.withResolvers<unknown>();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(JSON.stringify(await written.promise)));
      controller.close();
    },
  });
  return { body, write: written.resolve };
}

describe("concurrent queries", () => {
  it("within the coalescing window share a group, which the run's statistics count", async () => {
    const run = await openRun({ window_ms: 10_000 });
    const answers = await Promise.all(
      ["a", "b", "c"].map((prompt) => run.query({ prompt, model: "up/key/window/barrier/3/within/15000" })),
    );
    const groups = new Set(answers.map((answer) => answer.parallel_group_id));
    expect(groups.size).toBe(1);
    expect([...groups][0]).toMatch(GROUP_ID);
    expect((await run.document()).stats).toEqual({
      total_queries: 3,
      parallel_batches: 1,
      sequential_queries: 0,
      total_parallel_queries: 3,
      pending_queries: 0,
    });
  });

  it("after the window's end begin another group", async () => {
    const run = await openRun({ window_ms: 10_000 });
    const model = "up/key/windows/barrier/2/within/15000";
    const pair = () => Promise.all(["a", "b"].map((prompt) => run.query({ prompt, model })));
    const [first] = await pair();
    skipTime(10_000);
    const [second] = await pair();
    expect(first?.parallel_group_id).toMatch(GROUP_ID);
    expect(second?.parallel_group_id).toMatch(GROUP_ID);
    expect(second?.parallel_group_id).not.toBe(first?.parallel_group_id);
    expect((await run.document()).stats).toMatchObject({ parallel_batches: 2, total_parallel_queries: 4 });
  });

  it.each([
    ["/query", {}, (prompt: string) => ({ prompt })],
    ["/query", { "idempotency-key": "late" }, (prompt: string) => ({ prompt })],
    ["/v1/chat/completions", {}, (content: string) => ({ messages: [{ role: "user", content }] })],
  ])(
    "belong to the window in which their Worker got them, however late they reach the run: %s %o",
    async (path, headers, bodyOf) => {
      const run = await openRun({ window_ms: 10_000 });
      await run.query({ prompt: "first" });
      const { body, write } = slowBody();
      const answering = run.postStream(path, body, "application/json", headers);
      // A later request is answered: the gateway has got this one.
      await run.document();
      skipTime(12_000);
      write({ model: "up/x", ...bodyOf("second") });
      expect((await answering).status).toBe(200);
      expect((await run.document()).stats).toMatchObject({ parallel_batches: 1, total_parallel_queries: 2 });
    },
  );

  it.each([
    [3_000, 1],
    [1_000, 0],
    // A clock that runs ahead of the object's.
    [-5_000, 0],
  ])("whose Worker got them %i ms before they reach the run after 12 s form %i groups", async (ageMs, groups) => {
    const run = await openRun({ window_ms: 10_000 });
    await openUnwatched(run, ["first"], "up/x", { single: true });
    skipTime(12_000);
    await openUnwatched(run, ["second"], "up/x", { single: true, ageMs });
    expect((await run.document()).stats).toMatchObject({ parallel_batches: groups });
  });

  it("count as on their way since their Worker has sent them", async () => {
    const run = await openRun({ window_ms: 1_000 });
    await openUnwatched(run, ["first"], "up/x", { single: true });
    const sentAtMs = Date.now();
    skipTime(3_000);
    await openUnwatched(run, ["second"], "up/x", { single: true, ageMs: 0, sentAtMs });
    expect((await run.document()).stats).toMatchObject({ parallel_batches: 1 });
  });

  it("count as on their way for no longer than a window can be open", async () => {
    const run = await openRun({ window_ms: 10_000 });
    await openUnwatched(run, ["first"], "up/x", { single: true });
    skipTime(10_000 + CALL_AGE_MS_MAX);
    await openUnwatched(run, ["second"], "up/x", { single: true, ageMs: 1e9, sentAtMs: 0 });
    expect((await run.document()).stats).toMatchObject({ parallel_batches: 0 });
  });

  it("form no group if there is only one, which does not wait for the window", async () => {
    const run = await openRun({ window_ms: 10_000 });
    const answer = await run.query({ prompt: "alone" });
    expect(answer.parallel_group_id).toBeNull();
    expect(answer.queued_ms).toBeLessThan(10_000);
    expect((await run.document()).stats).toMatchObject({
      total_queries: 1,
      parallel_batches: 0,
      sequential_queries: 1,
      total_parallel_queries: 0,
    });
  });
});

describe("a batch", () => {
  it("counts as one parallel group of its slots, and as a sequential query when it has one", async () => {
    const run = await openRun();
    const many = await run.batch({ prompts: prompts(5) });
    await run.batch({ prompts: ["one"] });
    await run.batch({ prompts: [] });
    expect(many.id).toMatch(GROUP_ID);
    expect((await run.document()).stats).toEqual({
      total_queries: 6,
      parallel_batches: 1,
      sequential_queries: 1,
      total_parallel_queries: 5,
      pending_queries: 0,
    });
  });

  it("stops at its first failure with on_error abort, and lets calls in flight end", async () => {
    const run = await openRun({ max_parallel: 4 });
    const items = [
      ...prompts(3).map((prompt) => ({ prompt: `${prompt} {{latch/abort}}` })),
      { prompt: "bad {{status/400}}" },
      ...prompts(20, "never").map((prompt) => ({ prompt })),
    ];
    const batch = run.batch({ items, model: "up/key/abort", on_error: "abort" });
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.cancelled).toBe(20);
    await openLatch("abort");
    const answer = await batch;
    expect(answer.status).toBe("partial");
    expect(answer.items.map(({ status }) => status)).toEqual([
      ...Array<string>(3).fill("completed"),
      "failed",
      ...Array<string>(20).fill("cancelled"),
    ]);
    expect(answer.errors[3]?.code).toBe("upstream_error");
    expect(answer.errors[23]?.code).toBe("cancelled");
    expect((await upstreamStats("abort")).requests).toBe(4);
  });

  it("starts slots by priority, and equal ones in input order", async () => {
    const run = await openRun({ max_parallel: 1 });
    const priorities = [0, 4, 2, 4, 1, 2];
    const items = priorities.map((priority, index) => ({ prompt: `slot ${index}`, priority }));
    await run.batch({ items, model: "up/key/priority" });
    const inOrder = [1, 3, 2, 5, 4, 0].map((index) => `slot ${index}`);
    expect(Object.keys((await upstreamStats("priority")).sends)).toEqual(inOrder);
  });

  it("respects a concurrency below the run's max_parallel", async () => {
    const run = await openRun({ max_parallel: 32 });
    const answer = await run.batch({ prompts: prompts(40), model: "up/key/narrow/delay/10", concurrency: 5 });
    expect(answer.effective_parallel).toBe(5);
    expect(answer.metrics.peak_parallel).toBe(5);
    expect((await upstreamStats("narrow")).peakInFlight).toBeLessThanOrEqual(5);
  });

  it("shares the run's max_parallel with another batch and with queries", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 10 });
    const model = "up/key/shared/delay/20";
    const work = [run.batch({ prompts: prompts(40, "a"), model }), run.batch({ prompts: prompts(40, "b"), model })];
    const asked = prompts(30, "c").map((prompt) => run.query({ prompt, model }));
    const answers = await Promise.all(work);
    await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual(["completed", "completed"]);
    const { peakInFlight, requests } = await upstreamStats("shared");
    expect(requests).toBe(110);
    expect(peakInFlight).toBeLessThanOrEqual(10);
    expect((await run.document()).metrics.peak_parallel).toBe(10);
  });

  it("does not wait for an earlier batch if max_parallel allows both", async () => {
    const run = await openRun({ max_parallel: 12 });
    const slow = run.batch({ prompts: prompts(6), model: "up/key/slow/latch/slow" });
    await untilInFlight("slow", 6);
    const quick = await run.batch({ prompts: prompts(12), model: "up/key/quick" });
    expect(quick.status).toBe("completed");
    expect((await upstreamStats("slow")).inFlight).toBe(6);
    await openLatch("slow");
    expect((await slow).status).toBe("completed");
  });
});

describe("a batch of more than 1 MB", () => {
  const large = prompts(12).map((prompt) => prompt.padEnd(400_000, "."));

  it("reaches the run in several calls and comes back whole and in order", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 12 });
    const answer = await run.batch({ prompts: large });
    expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(1);
    expect(answer.status).toBe("completed");
    expect(answer.results).toEqual(large);
  });

  it("that is refused once all of it has arrived leaves nothing stored", async () => {
    const run = await openRun({ models: ["sim/*"] });
    const large = Array.from({ length: 60 }, (_, index) => `${index} ${"x".repeat(50_000)}`);
    const refused = await run.post("/batch", { prompts: large, model: "up/echo" });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("model_not_allowed")]);
    expect(watched(run.id).calls["stagePages"]).toBeGreaterThan(1);
    const stored = await runInDurableObject<RunObject, number>(run.object, (_, { storage }) => {
      const count = "SELECT (SELECT count(*) FROM page) + (SELECT count(*) FROM grp) AS rows";
      return storage.sql.exec<{ rows: number }>(count).one().rows;
    });
    expect(stored).toBe(0);
  });
});

describe("slots of the maximum size", () => {
  it("are stored, sent and answered, one per row", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 4 });
    const asked = ["x", "é", '"', "漢"].map((letter, at) =>
      letter.repeat([1_499_000, 749_000, 749_000, 499_000][at] ?? 0),
    );
    const answer = await run.batch({ prompts: asked });
    expect(answer.status).toBe("completed");
    expect(answer.results.map((result, index) => result === asked[index])).toEqual([true, true, true, true]);
  });

  it("fail alone if the answer exceeds a row", async () => {
    const run = await openRun({ max_parallel: 4 });
    const items = [{ prompt: "small" }, { prompt: "huge {{fault/huge}}" }, { prompt: "small too" }];
    const answer = await run.batch({ items });
    expect(answer.items.map(({ status }) => status)).toEqual(["completed", "failed", "completed"]);
    expect(answer.errors[1]?.message).toMatch(/bytes/);
  });
});

describe("a Retry-After", () => {
  it("delays every call of the run to that upstream, and to no other upstream", async () => {
    const run = await openRun({ max_parallel: 2, unpriced: "free" });
    const model = "up/key/cool";
    const turnedAway = run.query({ prompt: "turned away {{status/429/retry-after/60/first/1}}", model });
    await expect.poll(async () => (await upstreamStats("cool")).requests).toBe(1);
    await expect.poll(async () => ofType(await logOf(run), "throttled").length).toBe(1);
    const batch = run.batch({ prompts: prompts(4), model });
    await expect.poll(async () => (await run.document()).stats.pending_queries).toBe(5);
    await run.query({ prompt: "elsewhere", model: "unpriced/x" });
    expect((await upstreamStats("cool")).requests).toBe(1);
    // The gate knows of the batch: an exchange under way would bring back a wait of the time before.
    await expect.poll(async () => (await env.GATES.getByName("up").status()).waiting).toBe(4);
    // The run's timer keeps its pace, so it is a minute before the upstream is called again by itself.
    skipTime(60_000);
    await run.query({ prompt: "later", model: "unpriced/x" });
    expect((await batch).status).toBe("completed");
    expect((await turnedAway).attempts).toBe(2);
  });
});

describe("under load", () => {
  it(
    "batches of all widths, with retries and queries between them, all end: nothing waits for a lane that has ended",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 14 });
      const model = "up/key/mixed/jitter/30/status/503/first/1/percent/15";
      const batches = Array.from({ length: 12 }, async (_, at) => {
        await scheduler.wait(at * 37);
        const concurrency = [1, 3, 6, 7, 12, 14][at % 6];
        return run.batch({ prompts: prompts(5 + 4 * at, `batch ${at}`), model, concurrency, priority: at % 5 });
      });
      const queries = Array.from({ length: 40 }, async (_, at) => {
        await scheduler.wait(at * 13);
        return run.query({ prompt: `query ${at}`, model });
      });
      const answers = await Promise.all(batches);
      await Promise.all(queries);
      expect(answers.map(({ status }) => status)).toEqual(Array(12).fill("completed"));
      const { budget, metrics } = await run.document();
      const calls = 12 * 5 + (4 * 12 * 11) / 2 + 40;
      expect(metrics.attempts - metrics.retries).toBe(calls);
      expect(budget.calls).toMatchObject({ spent: metrics.attempts, reserved: 0 });
      expect(metrics.peak_parallel).toBeLessThanOrEqual(14);
    },
  );

  it(
    "500 queries of one run are each sent once, answered once and counted once",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ max_parallel: 128, window_ms: 10_000 });
      const asked = prompts(500);
      const answers = await Promise.all(asked.map((prompt) => run.query({ prompt, model: "up/key/crowd/jitter/20" })));
      expect(answers.map(({ text }) => text)).toEqual(asked);
      const { sends, requests } = await upstreamStats("crowd");
      expect(requests).toBe(500);
      expect(new Set(Object.values(sends))).toEqual(new Set([1]));
      const { stats, metrics, budget } = await run.document();
      expect(stats).toEqual({
        total_queries: 500,
        parallel_batches: 1,
        sequential_queries: 0,
        total_parallel_queries: 500,
        pending_queries: 0,
      });
      expect(metrics).toMatchObject({ attempts: 500, retries: 0, success_rate: 1 });
      expect(budget.calls).toMatchObject({ spent: 500, reserved: 0 });
      expect(await shardRows(run.object)).toBeLessThanOrEqual(Math.ceil(128 / 16) + 1);
    },
  );

  it.each(["in memory", "in rows only"])(
    "that has ended, %s, is looked at without a read of its slots",
    { tags: ["slow"] },
    async (where) => {
      const run = await openRun({ max_parallel: 8 });
      const first = { prompts: prompts(20), model: `up/key/looked-${where.length}/status/500/first/1` };
      const { usage } = await run.batch(first);
      expect(usage.prompt_tokens).toBeGreaterThan(0);
      if (where === "in rows only") await evict(run.object);
      const look = async () => (await run.object.waitGroup(1, 0))?.usage;
      const before = await look();
      expect([before?.promptTokens, before?.completionTokens]).toEqual([usage.prompt_tokens, usage.completion_tokens]);
      const change = (query: string): Promise<void> =>
        runInDurableObject(run.object, (_: RunObject, state) => void state.storage.sql.exec(query));
      // A row as it was written before it had the usage: then the slots tell.
      if (where === "in rows only") {
        await change("UPDATE grp SET result = json_remove(result, '$.usage')");
        expect(await look()).toEqual(before);
        await change("UPDATE slot SET prompt_tokens = 0");
        expect((await look())?.promptTokens).toBe(0);
      } else {
        await change("UPDATE slot SET prompt_tokens = 0");
        expect(await look()).toEqual(before);
      }
    },
  );

  it(
    "1,000 slots keep their order with answers in any order and a tenth failing",
    { tags: ["slow"], ...MANY_CALLS },
    async () => {
      const run = await openRun({ max_parallel: 100 });
      const asked = prompts(1_000);
      const answer = await run.batch({ prompts: asked, model: "up/key/thousand/jitter/30/status/400/percent/10" });
      const failing = asked.map((prompt) => isHit(prompt, 10));
      expect(failing.filter(Boolean).length).toBeGreaterThan(50);
      expect(answer.status).toBe("partial");
      expect(answer.errors.map((error) => error?.code ?? null)).toEqual(
        failing.map((fails) => (fails ? "upstream_error" : null)),
      );
      answer.results.forEach((result, index) => {
        if (failing[index]) expect(result).toMatch(/^\[error\] .*400/);
        else expect(result).toBe(asked[index]);
      });
      expect((await upstreamStats("thousand")).requests).toBe(1_000);
    },
  );
});

function shardRows(stub: DurableObjectStub<RunObject>): Promise<number> {
  return runInDurableObject(stub, (_: RunObject, state) =>
    Number(state.storage.sql.exec("SELECT count(*) AS n FROM shard").one()["n"]),
  );
}

describe("a group that is retried", () => {
  it("continues after a crash in the middle of it, and makes no call that had completed", async () => {
    const run = await openRun({ max_parallel: 1 });
    const headers = { prefer: "respond-async" };
    const items = [
      { prompt: "one", model: "up/key/retried" },
      { prompt: "two", model: "up/latch/retried" },
    ];
    const look = async (path: string): Promise<unknown> => (await run.send("GET", path)).json();
    const inMiddle = { counts: { completed: 1, running: 1 } };
    const opened = await run.post("/batch", { items }, { headers });
    const at = opened.headers.get("location") ?? "";
    await expect.poll(() => look(at)).toMatchObject(inMiddle);
    await run.send("DELETE", at);
    const retried = await run.post(`${at}/retry`, {}, { headers });
    const again = retried.headers.get("location") ?? "";
    await expect.poll(() => look(again)).toMatchObject(inMiddle);
    await crash(run.object);
    await openLatch("retried");
    const ended = await look(`${again}?wait_ms=60000`);
    expect(ended).toMatchObject({ status: "completed", results: ["one", "two"], items: [{ attempts: 0 }, {}] });
    expect((await upstreamStats("retried")).requests).toBe(1);
  });
});
