/** An upstream's answers and costs are the same, whether they are requested as JSON or as streams. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteHandler, type ByteUpstream } from "../support/byte-upstream.ts";
import { resultsOf, runBatch, startBatchPlace, type BatchPlace } from "./batch-place.ts";
import { documentOf, replyOf, type RunAccess } from "./world.ts";

const asked = z.object({
  messages: z.array(z.object({ content: z.string() })),
  stream: z.boolean().optional(),
  stream_options: z.object({ include_usage: z.boolean() }).optional(),
});
type ChatRequest = z.infer<typeof asked>;

/** The upstream's answer: the words of the prompt reversed, and a tool call if the prompt requests one. */
function answerTo({ messages }: ChatRequest) {
  const prompt = messages.at(-1)?.content ?? "";
  const words = prompt.split(" ").toReversed();
  const call = { id: "call_1", type: "function", function: { name: "find", arguments: '{"q":"é😀"}' } };
  const usage = { prompt_tokens: 7, completion_tokens: words.length, total_tokens: 7 + words.length };
  const head = { id: "chatcmpl-1", created: 1763712000, model: "m-2026" };
  return { words, calls: prompt.includes("tool") ? [call] : [], usage, head };
}

function jsonOf(request: ChatRequest): string {
  const { words, calls, usage, head } = answerTo(request);
  const message = { role: "assistant", content: words.join(" "), ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
  return JSON.stringify({ ...head, object: "chat.completion", choices, usage });
}

function eventsOf(request: ChatRequest): string[] {
  const { words, calls, usage, head } = answerTo(request);
  const event = (choices: unknown[], more = {}): string =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\r\n\r\n`;
  const delta = (fields: unknown): string => event([{ index: 0, delta: fields, logprobs: null, finish_reason: null }]);
  return [
    delta({ role: "assistant", content: "" }),
    ...words.map((word, at) => delta({ content: at === 0 ? word : ` ${word}` })),
    ...calls.map((call, index) => delta({ tool_calls: [{ index, ...call }] })),
    event([{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }]),
    ...(request.stream_options?.include_usage === true ? [event([], { usage })] : []),
    "data: [DONE]\r\n\r\n",
  ];
}

let upstream: ByteUpstream;
let place: BatchPlace;
const streams: boolean[] = [];

const answering: ByteHandler = async ({ body }, reply) => {
  const request = asked.parse(JSON.parse(body.toString()));
  streams.push(request.stream === true);
  if (request.stream !== true) return reply.whole(jsonOf(request));
  reply.begin({ headers: { "content-type": "text/event-stream" } });
  for (const text of eventsOf(request)) await reply.write(text);
  reply.end();
};

beforeAll(async () => {
  upstream = await startByteUpstream();
  const common = {
    kind: "openai",
    base_url: `${upstream.origin}/v1`,
    models: [],
    prices: { "*": { input: 1, output: 2 } },
  };
  const UPSTREAMS = {
    whole: { ...common, aggregate: "json" },
    parts: { ...common, aggregate: "stream" },
    proxied: { ...common, max_attempts: 2 },
    strict: { ...common, aggregate: "stream", max_attempts: 1 },
    seen: { ...common, aggregate: "stream", max_attempts: 1, abort_cost: "seen" },
    hedged: { ...common, aggregate: "stream", max_attempts: 2, abort_cost: "seen" },
  };
  place = await startBatchPlace(undefined, { vars: { UPSTREAMS, WAITING_FETCHES_MAX: "512" } });
});
beforeEach(() => {
  streams.length = 0;
  upstream.serve(answering);
});
afterAll(async () => {
  await place.stop();
  await upstream.stop();
});

const PROMPTS = ["one two three", "é 😀 tool", "x"];
const BUDGET = { budget: { usd: 1, prompt_tokens: 1_000_000, completion_tokens: 100_000 } };

/** What a run was answered with, and what it has spent, by upstream. */
async function both(send: (run: Awaited<ReturnType<BatchPlace["openRun"]>>, model: string) => Promise<unknown>) {
  const ends: unknown[] = [];
  for (const model of ["whole/m", "parts/m"]) {
    const run = await place.openRun(BUDGET);
    const answers = await send(run, model);
    ends.push({ answers, spent: await spentOf(run) });
  }
  return ends;
}

async function spentOf(run: RunAccess) {
  const { budget } = await documentOf(run);
  expect(budget.usd.reserved).toBe(0);
  return budget.usd.spent;
}

describe("an answer assembled from a stream equals the JSON answer, at the same cost,", () => {
  it("of POST /query", async () => {
    const [whole, parts] = await both(async (run, model) => {
      const texts: unknown[] = [];
      for (const prompt of PROMPTS) {
        const { text, finish_reason, usage } = z
          .object({ text: z.string(), finish_reason: z.string(), usage: z.unknown() })
          .parse((await run.send("/query", { method: "POST", json: { prompt, model } })).json);
        texts.push({ text, finish_reason, usage });
      }
      return texts;
    });
    expect(parts).toEqual(whole);
    expect(whole).toMatchObject({ answers: [{ text: "three two one" }, { text: "tool 😀 é" }, { text: "x" }] });
    expect(streams).toEqual([false, false, false, true, true, true]);
  });

  it("of POST /batch", async () => {
    const [whole, parts] = await both(async (run, model) => {
      const answer = await run.send("/batch", { method: "POST", json: { prompts: PROMPTS, model } });
      const { results, errors, usage } = z
        .object({ results: z.array(z.string()), errors: z.unknown(), usage: z.unknown() })
        .parse(answer.json);
      return { results, errors, usage };
    });
    expect(parts).toEqual(whole);
    expect(streams).toEqual([false, false, false, true, true, true]);
  });

  it("of a line of POST /v1/batches, including its tool calls", async () => {
    const [whole, parts] = await both(async (run, model) => {
      const lines = PROMPTS.map((content, at) => ({
        custom_id: `line-${at}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model, messages: [{ role: "user", content }], max_tokens: 50 },
      }));
      const { output } = await resultsOf(run, await runBatch(run, lines));
      return lines.map(({ custom_id: id }) => output.get(id)?.response?.body);
    });
    expect(parts).toEqual(whole);
    expect(JSON.stringify(parts)).toContain("call_1");
    expect(streams.toSorted()).toEqual([false, false, false, true, true, true]);
  });
});

describe("with aggregation of streams", () => {
  it("a call that a proxy times out as JSON succeeds on its retry, which streams", async () => {
    upstream.serve(async (call, reply) => {
      const request = asked.parse(JSON.parse(call.body.toString()));
      if (request.stream === true) return await answering(call, reply);
      streams.push(false);
      await new Promise((resolve) => setTimeout(resolve, 100));
      reply.whole("<html>a timeout occurred</html>", { status: 524, headers: { "content-type": "text/html" } });
    });
    const run = await place.openRun(BUDGET);
    const answer = await run.send("/query", { method: "POST", json: { prompt: "one two", model: "proxied/m" } });
    expect(replyOf(answer)).toMatchObject({ text: "two one", attempts: 2 });
    expect(streams).toEqual([false, true]);
    // The attempt of unknown outcome stays charged.
    expect(await spentOf(run)).toBeGreaterThan(0.004);
  });

  it.each([
    ["strict", 2 * 4_096],
    ["seen", 2 * (3 + 512)],
  ])(
    "a stream that breaks off at %s is charged at least for what had arrived",
    { tags: ["slow"] },
    async (name, completionNanoUsd) => {
      upstream.serve(async ({ body }, reply) => {
        reply.begin({ headers: { "content-type": "text/event-stream" } });
        for (const text of eventsOf(asked.parse(JSON.parse(body.toString()))).slice(0, 2)) await reply.write(text);
        // A reset takes what is still on its way along.
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        reply.reset();
      });
      const run = await place.openRun(BUDGET);
      const answer = await run.send("/query", { method: "POST", json: { prompt: "one two", model: `${name}/m` } });
      expect(answer).toMatchObject({ status: 502, json: { error: { code: "upstream_truncated" } } });
      const promptNanoUsd = (await documentOf(run)).budget.prompt_tokens.spent * 1_000;
      expect(Math.round((await spentOf(run)) * 1e9)).toBe(promptNanoUsd + completionNanoUsd * 1_000);
    },
  );

  /**
   * The upstream sends the beginning of each answer and nothing more, but for a prompt "first", which it answers once it may. `begun`
   * resolves when the gateway has read `calls` beginnings.
   */
  function beginAnswers(calls: number): { begun: Promise<void>; answerFirst: () => void } {
    const all = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    let left = calls;
    upstream.serve(async (call, reply) => {
      const request = asked.parse(JSON.parse(call.body.toString()));
      if (request.messages[0]?.content === "first") return await first.promise.then(() => answering(call, reply));
      reply.begin({ headers: { "content-type": "text/event-stream" } });
      for (const text of eventsOf(request).slice(0, 2)) await reply.write(text);
      // The gateway reads what was written.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      left -= 1;
      if (left === 0) all.resolve();
    });
    return { begun: all.promise, answerFirst: first.resolve };
  }

  /** What a run has spent beside its prompts, USD ÷ 10⁹. */
  async function answersCost(run: RunAccess): Promise<number> {
    const { budget } = await documentOf(run);
    return Math.round((await spentOf(run)) * 1e9) - budget.prompt_tokens.spent * 1_000;
  }

  const SEEN_NANO_USD = 2 * (3 + 512) * 1_000;
  const LONG = { model: "seen/m", max_tokens: 3_000 };
  const opened = z.object({ id: z.string() });

  it("costs what was seen where a batch is cancelled, whoever executes it", { tags: ["slow"] }, async () => {
    const { begun } = beginAnswers(1);
    const run = await place.openRun(BUDGET);
    const json = { prompts: ["one two"], ...LONG };
    const headers = { prefer: "respond-async" };
    const { id } = opened.parse((await run.send("/batch", { method: "POST", json, headers })).json);
    await begun;
    await run.send(`/groups/${id}`, { method: "DELETE" });
    const ended = await run.send(`/groups/${id}?wait_ms=20000`);
    expect(ended.json).toMatchObject({
      status: "cancelled",
      counts: { cancelled: 1 },
      errors: [{ code: "cancelled" }],
    });
    expect(await answersCost(run)).toBe(SEEN_NANO_USD);
  });

  it.each([
    ["its client's Worker executes", {}],
    ["a lane executes", { prefer: "respond-async" }],
  ])(
    "costs what was seen of the calls that an early stop ends in a batch that %s",
    { tags: ["slow"] },
    async (_, headers) => {
      const run = await place.openRun(BUDGET);
      const { begun, answerFirst } = beginAnswers(2);
      const json = {
        prompts: ["first", "one two", "one two"],
        ...LONG,
        stop_when: { regex: "first", in_flight: "abort" },
      };
      const sent = run.send("/batch", { method: "POST", json, headers });
      await begun;
      answerFirst();
      const { id } = opened.parse((await sent).json);
      const ended = await run.send(`/groups/${id}?wait_ms=20000`);
      expect(ended.json).toMatchObject({ status: "completed", counts: { completed: 1, cancelled: 2 } });
      expect(JSON.stringify(ended.json)).toContain("stop_when was met");
      expect(await answersCost(run)).toBe(2 * SEEN_NANO_USD + 2 * 1_000);
    },
  );

  it("costs what was seen of an attempt that its hedge overtakes", { tags: ["slow"] }, async () => {
    const overtaking = Promise.withResolvers<void>();
    let late = 0;
    upstream.serve(async ({ body }, reply) => {
      const request = asked.parse(JSON.parse(body.toString()));
      const isLate = request.messages[0]?.content === "late one";
      if (isLate) late += 1;
      const isFirst = isLate && late === 1;
      if (isLate && !isFirst) await overtaking.promise;
      reply.begin({ headers: { "content-type": "text/event-stream" } });
      // What the others cost covers the reservation of a second attempt.
      const events = eventsOf(request).map((text) =>
        text.replace(/"completion_tokens":\d+/, '"completion_tokens":500'),
      );
      for (const text of isFirst ? events.slice(0, 2) : events) await reply.write(text);
      if (!isFirst) return reply.end();
      // The gateway reads what was written.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      overtaking.resolve();
    });
    const run = await place.openRun({ ...BUDGET, max_parallel: 4 });
    const prompts = [...Array.from({ length: 19 }, (_, index) => `on time ${index}`), "late one"];
    const json = { prompts, ...LONG, model: "hedged/m", hedge: { after: 50, max_extra: 1 } };
    const { results } = z
      .object({ results: z.array(z.string()) })
      .parse((await run.send("/batch", { method: "POST", json })).json);
    expect(results.at(-1)).toBe("one late");
    const events = (await run.send(`/runs/${run.id}/log`)).text
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(events).toContainEqual(
      expect.objectContaining({
        ...{ event_type: "attempt_ended", index: 19, attempt: 1, code: "cancelled", estimated: true },
        charged: expect.objectContaining({ completion_tokens: 3 + 512 }),
      }),
    );
    expect((await documentOf(run)).budget.usd.reserved).toBe(0);
  });

  it(
    "costs what was seen of batches and single calls that the end of their run stops",
    { tags: ["slow"] },
    async () => {
      const { begun } = beginAnswers(2);
      const run = await place.openRun(BUDGET);
      const single = run.send("/query", { method: "POST", json: { prompt: "one two", ...LONG } });
      const json = { prompts: ["one two"], ...LONG };
      await run.send("/batch", { method: "POST", json, headers: { prefer: "respond-async" } });
      await begun;
      await run.send(`/runs/${run.id}`, { method: "DELETE" });
      expect(await single).toMatchObject({ json: { error: { code: "cancelled", message: "the run was cancelled" } } });
      await expect.poll(async () => (await documentOf(run)).budget.usd.reserved, { timeout: 20_000 }).toBe(0);
      expect(await answersCost(run)).toBe(2 * SEEN_NANO_USD);
    },
  );
});
