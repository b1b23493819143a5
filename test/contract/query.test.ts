/** `POST /query`: one call, many at once, and clients that leave. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { logOf } from "./following.ts";
import { documentOf, errorOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const model = "up-1";

describe("one call", () => {
  it("returns the text under its three names, with usage and cost", async () => {
    const run = await world.openRun({ budget: { usd: 1 } });
    const reply = replyOf(await run.send("/query", { json: { prompt: "ping pong", model } }));
    expect(reply).toEqual({
      id: expect.stringMatching(/./),
      text: "ping pong",
      result: "ping pong",
      response: "ping pong",
      model: "up-1",
      usage: { prompt_tokens: 6, completion_tokens: 3, total_tokens: 9, cost: 0.000012 },
      attempts: 1,
      latency_ms: expect.any(Number),
      queued_ms: expect.any(Number),
      parallel_group_id: null,
      finish_reason: "stop",
    });
    expect((await documentOf(run)).budget.usd).toMatchObject({ spent: 0.000012, reserved: 0 });
  });

  it("accepts plain text as the prompt, and returns the bare text on request", async () => {
    const run = await world.openRun({ default_model: model });
    const text = { method: "POST", headers: { "content-type": "text/plain; charset=utf-8" }, body: "naïve 漢字 🦉\n" };
    expect(replyOf(await run.send("/query", text)).text).toBe("naïve 漢字 🦉\n");
    const bare = await run.send("/query", { ...text, headers: { ...text.headers, accept: "text/plain" } });
    expect([bare.status, bare.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
    expect(bare.text).toBe("naïve 漢字 🦉\n");
    const json = await run.send("/query", { json: { prompt: "as JSON" }, headers: { accept: "text/plain" } });
    expect(json.text).toBe("as JSON");
  });

  it("fails with a JSON error even if text was requested", async () => {
    const run = await world.openRun({ default_model: model });
    const answer = await run.send("/query", { json: { prompt: "{{status/400}}" }, headers: { accept: "text/plain" } });
    expect([answer.status, errorOf(answer).code]).toEqual([502, "upstream_error"]);
  });

  it("accepts JSON without a content type, as short scripts send it", async () => {
    const run = await world.openRun({ default_model: model });
    const body = new TextEncoder().encode('{"prompt":"bare"}');
    expect(replyOf(await run.send("/query", { method: "POST", body })).text).toBe("bare");
  });

  it("forwards messages, the system prompt, the cap and params", async () => {
    const run = await world.openRun();
    const messages = [{ role: "user", content: "abcdefgh" }];
    const body = { messages, model, system: "be brief", max_tokens: 1, params: { seed: 7 } };
    expect(replyOf(await run.send("/query", { json: body }))).toMatchObject({ text: "abcd", finish_reason: "length" });
  });

  it("without a model uses the run's default model, or else the gateway's", async () => {
    const own = await world.openRun({ default_model: "up-own" });
    expect(replyOf(await own.send("/query", { json: { prompt: "p" } })).model).toBe("up-own");
    const plain = await world.openRun();
    expect(replyOf(await plain.send("/query", { json: { prompt: "p" } })).model).toBe("echo");
  });

  it("does not wait for the coalescing window: ten in a row end at once under a window of 10 s", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 10_000 });
    for (let at = 0; at < 10; at += 1) {
      const { queued_ms } = replyOf(await run.send("/query", { json: { prompt: `${at}` } }));
      expect(queued_ms).toBeLessThan(10_000);
    }
  });
});

describe("concurrent calls", () => {
  const send = async (run: RunAccess, prompts: string[]) =>
    (await Promise.all(prompts.map((prompt) => run.send("/query", { json: { prompt } })))).map(replyOf);

  it("of one coalescing window are one parallel group, announced once, with all of them", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 10_000 });
    const replies = await send(
      run,
      ["a", "b", "c"].map((name) => `{{barrier/3/within/30000}} ${name}`),
    );
    const groups = new Set(replies.map((reply) => reply.parallel_group_id));
    expect(groups.size).toBe(1);
    expect([...groups][0]).toMatch(/^pg-\d{13}-[0-9a-z]{1,6}$/);
    expect((await documentOf(run)).stats).toEqual({
      total_queries: 3,
      parallel_batches: 1,
      sequential_queries: 0,
      total_parallel_queries: 3,
      pending_queries: 0,
    });
    await run.send(`/runs/${run.id}/flush`, { method: "POST" });
    const started = (await logOf(run)).filter(({ event_type: type }) => type === "group_started");
    expect(started).toMatchObject([{ parallel_group_id: replies[0]?.parallel_group_id, count: 3 }]);
  });

  it("of two coalescing windows are no group, and count as sequential", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 20 });
    for (const prompt of ["a", "b"]) {
      expect((await send(run, [prompt]))[0]?.parallel_group_id).toBeNull();
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect((await documentOf(run)).stats).toMatchObject({ parallel_batches: 0, sequential_queries: 2 });
  });

  it("are in flight together: each of five is answered only while all of them wait", async () => {
    const run = await world.openRun({ default_model: model });
    const prompts = ["1", "2", "3", "4", "5"].map((name) => `{{barrier/5/within/30000}} ${name}`);
    expect((await send(run, prompts)).map(({ text }) => text)).toEqual(prompts);
  });

  it("fail independently of each other", async () => {
    const run = await world.openRun({ default_model: model });
    const prompts = ["a", "{{status/400}}", "c"];
    const answers = await Promise.all(prompts.map((prompt) => run.send("/query", { json: { prompt } })));
    expect(answers.map(({ status }) => status)).toEqual([200, 502, 200]);
  });

  it("never exceed the run's max_parallel", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 4 });
    await send(
      run,
      Array.from({ length: 24 }, (_, index) => `{{barrier/4/within/30000}} ${index}`),
    );
    expect(world.upstream.counters.peakInFlight).toBe(4);
  });

  it("are neither lost nor duplicated: 500 posts to one run", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 64 });
    const prompts = Array.from({ length: 500 }, (_, index) => `post ${index}`);
    expect((await send(run, prompts)).map(({ text }) => text)).toEqual(prompts);
    expect(world.upstream.counters.requests).toBe(500);
    expect([...world.upstream.counters.sends.keys()].toSorted()).toEqual(prompts.toSorted());
    const document = await documentOf(run);
    expect(document).toMatchObject({ stats: { total_queries: 500 }, metrics: { attempts: 500, retries: 0 } });
    expect(document.budget.calls).toMatchObject({ spent: 500, reserved: 0 });
  });

  it("share the run's max_parallel with batches", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 6 });
    const prompts = Array.from({ length: 18 }, (_, index) => `{{barrier/6/within/30000}} ${index}`);
    await Promise.all([
      run.send("/batch", { json: { prompts } }),
      send(
        run,
        prompts.map((prompt) => `${prompt} alone`),
      ),
    ]);
    expect(world.upstream.counters).toMatchObject({ requests: 36, peakInFlight: 6 });
  });
});

describe("a client that disconnects", () => {
  it("while the upstream works gets its upstream connection closed and its reservation settled", async () => {
    const run = await world.openRun({ default_model: model, budget: { usd: 1 } });
    const client = await clientOf(run, "{{fault/hang}}");
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const { reserved } = (await documentOf(run)).budget.usd;
    expect(reserved).toBeGreaterThan(0);
    client.leave();
    await expect.poll(() => world.upstream.counters).toMatchObject({ requests: 1, inFlight: 0, abandoned: 1 });
    await expect.poll(async () => (await documentOf(run)).budget.usd.reserved).toBe(0);
    // Whether the provider bills the call is unknown, so it stays charged at what was reserved.
    const { budget, stats, metrics } = await documentOf(run);
    expect(budget.usd.spent).toBe(reserved);
    expect(budget.calls).toMatchObject({ spent: 1, reserved: 0 });
    expect([stats.pending_queries, metrics.attempts]).toEqual([0, 1]);
  });

  it("while its call is queued causes no upstream request", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 1 });
    const first = run.send("/query", { json: { prompt: "{{latch/permit}} first" } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const client = await clientOf(run, "second");
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(2);
    client.leave();
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(1);
    world.upstream.open("permit");
    replyOf(await first);
    expect(replyOf(await run.send("/query", { json: { prompt: "third" } })).text).toBe("third");
    expect(world.upstream.counters.sends.get("second")).toBeUndefined();
    expect(await documentOf(run)).toMatchObject({ stats: { pending_queries: 0 }, budget: { calls: { reserved: 0 } } });
  });

  it("between two attempts causes no retry", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: world.modelAside() });
    const client = await clientOf(run, "{{status/429/retry-after/4}}");
    await expect.poll(async () => (await documentOf(run)).metrics.attempts).toBe(1);
    client.leave();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(world.upstream.counters.requests).toBe(1);
    expect(await documentOf(run)).toMatchObject({ stats: { pending_queries: 0 }, budget: { usd: { reserved: 0 } } });
  });
});

/** A client that can leave: workerd notices a connection that is reset, but not one that is merely closed on one side. */
async function clientOf(run: RunAccess, prompt: string): Promise<{ leave: () => void }> {
  const { hostname, port, host } = new URL(world.gateway.url);
  const body = JSON.stringify({ prompt });
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(
    `POST /query HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${run.token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return { leave: () => void socket.resetAndDestroy() };
}
