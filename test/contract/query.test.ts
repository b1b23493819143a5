/** `POST /query`: one call, many at once, and clients that leave. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, errorOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const model = "up-1";

describe("one call", () => {
  it("is answered with the text under the three names in use, and what it took", async () => {
    const run = await world.openRun({ budget: { usd: 1 } });
    const reply = replyOf(await run.ask("/query", { json: { prompt: "ping pong", model } }));
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

  it("takes plain text as the prompt, and answers with the bare text if asked to", async () => {
    const run = await world.openRun({ default_model: model });
    const text = { method: "POST", headers: { "content-type": "text/plain; charset=utf-8" }, body: "naïve 漢字 🦉\n" };
    expect(replyOf(await run.ask("/query", text)).text).toBe("naïve 漢字 🦉\n");
    const bare = await run.ask("/query", { ...text, headers: { ...text.headers, accept: "text/plain" } });
    expect([bare.status, bare.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
    expect(bare.text).toBe("naïve 漢字 🦉\n");
    const json = await run.ask("/query", { json: { prompt: "as JSON" }, headers: { accept: "text/plain" } });
    expect(json.text).toBe("as JSON");
  });

  it("fails with a JSON error even where text was asked for", async () => {
    const run = await world.openRun({ default_model: model });
    const answer = await run.ask("/query", { json: { prompt: "{{status/400}}" }, headers: { accept: "text/plain" } });
    expect([answer.status, errorOf(answer).code]).toEqual([502, "upstream_error"]);
  });

  it("takes JSON without a content type, as short scripts send it", async () => {
    const run = await world.openRun({ default_model: model });
    const body = new TextEncoder().encode('{"prompt":"bare"}');
    expect(replyOf(await run.ask("/query", { method: "POST", body })).text).toBe("bare");
  });

  it("passes messages, the system text, the cap and params on", async () => {
    const run = await world.openRun();
    const messages = [{ role: "user", content: "abcdefgh" }];
    const body = { messages, model, system: "be brief", max_tokens: 1, params: { seed: 7 } };
    expect(replyOf(await run.ask("/query", { json: body }))).toMatchObject({ text: "abcd", finish_reason: "length" });
  });

  it("goes to the run's default model where it names none, else to the gateway's", async () => {
    const own = await world.openRun({ default_model: "up-own" });
    expect(replyOf(await own.ask("/query", { json: { prompt: "p" } })).model).toBe("up-own");
    const plain = await world.openRun();
    expect(replyOf(await plain.ask("/query", { json: { prompt: "p" } })).model).toBe("echo");
  });

  it("waits for no window: ten in a row through a window of 10 s end at once", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 10_000 });
    const started = performance.now();
    for (let at = 0; at < 10; at += 1) replyOf(await run.ask("/query", { json: { prompt: `${at}` } }));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("calls at once", () => {
  const ask = async (run: RunAccess, prompts: string[]) =>
    (await Promise.all(prompts.map((prompt) => run.ask("/query", { json: { prompt } })))).map(replyOf);

  it("of one window are one parallel group, announced at the second", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 2_000 });
    const replies = await ask(run, ["{{delay/300}} a", "{{delay/300}} b", "{{delay/300}} c"]);
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
  });

  it("of two windows are no group, and counted as sequential", async () => {
    const run = await world.openRun({ default_model: model, window_ms: 20 });
    for (const prompt of ["a", "b"]) {
      expect((await ask(run, [prompt]))[0]?.parallel_group_id).toBeNull();
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect((await documentOf(run)).stats).toMatchObject({ parallel_batches: 0, sequential_queries: 2 });
  });

  it("end together: five equal ones take hardly longer than one", async () => {
    const run = await world.openRun({ default_model: model });
    await ask(run, ["warm up"]);
    const timed = async (prompts: string[]) => {
      const started = performance.now();
      await ask(run, prompts);
      return performance.now() - started;
    };
    const one = await timed(["{{delay/600}} one"]);
    const five = await timed(["1", "2", "3", "4", "5"].map((name) => `{{delay/600}} ${name}`));
    expect(one).toBeGreaterThan(590);
    expect(five).toBeLessThan(1.5 * one);
  });

  it("fail each by itself", async () => {
    const run = await world.openRun({ default_model: model });
    const prompts = ["a", "{{status/400}}", "c"];
    const answers = await Promise.all(prompts.map((prompt) => run.ask("/query", { json: { prompt } })));
    expect(answers.map(({ status }) => status)).toEqual([200, 502, 200]);
  });

  it("never pass the run's width", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 4 });
    await ask(
      run,
      Array.from({ length: 24 }, (_, index) => `{{delay/30}} ${index}`),
    );
    expect(world.upstream.counters.peakInFlight).toBe(4);
  });

  it("are none lost and none doubled: 500 posts to one run", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 64 });
    const prompts = Array.from({ length: 500 }, (_, index) => `post ${index}`);
    expect((await ask(run, prompts)).map(({ text }) => text)).toEqual(prompts);
    expect(world.upstream.counters.requests).toBe(500);
    expect([...world.upstream.counters.sends.keys()].toSorted()).toEqual(prompts.toSorted());
    const document = await documentOf(run);
    expect(document).toMatchObject({ stats: { total_queries: 500 }, metrics: { attempts: 500, retries: 0 } });
    expect(document.budget.calls).toMatchObject({ spent: 500, reserved: 0 });
  });

  it("share the run's width with batches", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 6 });
    const prompts = Array.from({ length: 18 }, (_, index) => `{{delay/40}} ${index}`);
    await Promise.all([
      run.ask("/batch", { json: { prompts } }),
      ask(
        run,
        prompts.map((prompt) => `${prompt} alone`),
      ),
    ]);
    expect(world.upstream.counters).toMatchObject({ requests: 36, peakInFlight: 6 });
  });
});

describe("a client that leaves", () => {
  it("while the upstream works has its upstream connection closed and its reservation settled", async () => {
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

  it("while its call waits in line is never asked for", async () => {
    const run = await world.openRun({ default_model: model, max_parallel: 1 });
    const first = run.ask("/query", { json: { prompt: "{{delay/500}} first" } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const client = await clientOf(run, "second");
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(2);
    client.leave();
    replyOf(await first);
    expect(replyOf(await run.ask("/query", { json: { prompt: "third" } })).text).toBe("third");
    expect(world.upstream.counters.sends.get("second")).toBeUndefined();
    expect(await documentOf(run)).toMatchObject({ stats: { pending_queries: 0 }, budget: { calls: { reserved: 0 } } });
  });

  it("between two attempts is not tried again", async () => {
    const run = await world.openRun({ default_model: model });
    const client = await clientOf(run, "{{status/429/retry-after/1}}");
    await expect.poll(async () => (await documentOf(run)).metrics.attempts).toBe(1);
    client.leave();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
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
