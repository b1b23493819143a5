/** `timeout_ms` is the time of one attempt from its dispatch; what follows an attempt that is lost is `on_lost`. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const openOwn = (more: Record<string, unknown> = {}) => world.openRun({ default_model: "up-1", ...more });

describe("timeout_ms", () => {
  it("does not run while a call is queued", { tags: ["slow"] }, async () => {
    const run = await openOwn({ max_parallel: 1 });
    const first = run.send("/query", { json: { prompt: "{{latch/queued}} first" } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const asked = run.send("/query", { json: { prompt: "second", timeout_ms: 1_500 } });
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(2);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    world.upstream.open("queued");
    const second = replyOf(await asked);
    expect([second.text, second.attempts]).toEqual(["second", 1]);
    expect(second.queued_ms).toBeGreaterThan(1_500);
    replyOf(await first);
  });

  it("does not run while a slot is queued", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const prompts = Array.from({ length: 6 }, (_, index) => `{{delay/400}} ${index}`);
    const group = groupOf(await run.send("/batch", { json: { prompts, concurrency: 1, timeout_ms: 1_800 } }));
    expect([group.status, group.results]).toEqual(["completed", prompts]);
    expect(Number(group.items[5]?.["queued_ms"])).toBeGreaterThan(1_800);
    expect(world.upstream.counters).toMatchObject({ requests: 6, abandoned: 0 });
  });

  it.each<[string, (run: RunAccess, body: object) => Promise<string | undefined>]>([
    [
      "/query",
      async (run, body) => errorOf(await run.send("/query", { json: { prompt: "{{fault/hang}}", ...body } })).code,
    ],
    [
      "/batch",
      async (run, body) =>
        groupOf(await run.send("/batch", { json: { prompts: ["{{fault/hang}}"], ...body } })).errors[0]?.code,
    ],
  ])("closes the upstream's connection when it has passed, on %s", { tags: ["slow"] }, async (_, codeOf) => {
    const run = await openOwn({ budget: { usd: 1 } });
    const code = await codeOf(run, { timeout_ms: 1_200, on_lost: "fail" });
    expect(code).toBe("upstream_timeout");
    await expect.poll(() => world.upstream.counters).toMatchObject({ requests: 1, inFlight: 0, abandoned: 1 });
    const { budget } = await documentOf(run);
    expect([budget.calls.spent, budget.usd.reserved]).toEqual([1, 0]);
    expect(budget.usd.spent).toBeGreaterThan(0);
  });
});

describe("on_lost", () => {
  const lost = (count: number) => `{{fault/reset/first/${count}}} lost`;

  it(
    "retry, the default, makes a new attempt under a new reservation; both are charged",
    { tags: ["slow"] },
    async () => {
      for (const on_lost of [undefined, "retry"]) {
        world.upstream.forget();
        const run = await openOwn({ budget: { usd: 1 } });
        const group = groupOf(await run.send("/batch", { json: { prompts: [lost(1)], on_lost } }));
        expect([group.status, group.items[0]?.attempts, group.items[0]?.["estimated"]]).toEqual(["completed", 2, true]);
        expect(replyOf(await run.send("/query", { json: { prompt: `${lost(1)} q`, on_lost } })).attempts).toBe(2);
        expect(world.upstream.counters.requests).toBe(4);
        expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 4, reserved: 0 });
      }
    },
  );

  it("fail sends only once, and reports an unknown outcome", async () => {
    const run = await openOwn({ budget: { usd: 1 } });
    const group = groupOf(await run.send("/batch", { json: { prompts: [lost(1), "b"], on_lost: "fail" } }));
    expect([group.status, group.results[1]]).toEqual(["partial", "b"]);
    expect(group.items[0]).toMatchObject({ status: "failed", attempts: 1, estimated: true });
    const answer = await run.send("/query", { json: { prompt: `${lost(1)} q`, on_lost: "fail" } });
    expect(answer.status).toBe(502);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it("fail still retries what is known not to be billed", async () => {
    const run = await openOwn();
    const reply = await run.send("/query", { json: { prompt: "{{status/503/first/1}}", on_lost: "fail" } });
    expect(replyOf(reply).attempts).toBe(2);
  });
});

describe("dedupe", () => {
  it("lets equal calls in flight together share one answer, in a batch and between queries", async () => {
    const run = await openOwn({ budget: { usd: 1 } });
    const prompts = ["{{delay/300}} same", "other", "{{delay/300}} same", "{{delay/300}} same"];
    const group = groupOf(await run.send("/batch", { json: { prompts, dedupe: true } }));
    expect(group.results).toEqual(prompts);
    expect(world.upstream.counters.requests).toBe(2);
    const query = () => run.send("/query", { json: { prompt: "{{latch/all}} q", dedupe: true } });
    const asked = [query(), query(), query()];
    // One is sent, and the others wait for its answer.
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(asked.length);
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    world.upstream.open("all");
    const replies = (await Promise.all(asked)).map(replyOf);
    expect(replies.map(({ text }) => text)).toEqual(Array.from({ length: 3 }, () => "{{latch/all}} q"));
    expect(world.upstream.counters.requests).toBe(3);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 3, reserved: 0 });
  });

  it("distinguishes calls by everything that affects the answer", async () => {
    const run = await openOwn();
    const prompt = "{{delay/300}} p";
    const items = [
      { prompt },
      { prompt, max_tokens: 50 },
      { prompt, temperature: 0.5 },
      { prompt, system: "s" },
      { prompt, model: "up-2" },
      { prompt, params: { seed: 1 } },
      { messages: [{ role: "user", content: prompt }] },
    ];
    groupOf(await run.send("/batch", { json: { items, dedupe: true } }));
    expect(world.upstream.counters.requests).toBe(items.length);
  });

  it("is off by default", async () => {
    const run = await openOwn();
    groupOf(await run.send("/batch", { json: { prompts: ["{{delay/200}} same", "{{delay/200}} same"] } }));
    expect(world.upstream.counters.requests).toBe(2);
  });
});
