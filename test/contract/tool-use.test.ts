/** Tools that a model uses while it answers: the gateway calls them between its turns, inside the call's own slot and budget. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { TOOL_QUEUE_MS_MAX } from "../../src/limits.ts";
import { answerAsModel, costUsdOf } from "../support/tool-model.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { answerOf, documentOf, errorOf, type RunAccess } from "./world.ts";

let upstream: ByteUpstream;
let tools: ToolServer;
let gateway: Gateway;

beforeAll(async () => {
  [upstream, tools] = await Promise.all([startByteUpstream(), startToolServer()]);
  upstream.serve(answerAsModel);
  const prices = { "*": { input: 1, output: 1 } };
  const at = (kind: string, path: string) => ({
    kind,
    base_url: `${upstream.origin}${path}`,
    api_key: "secret:KEY",
    prices,
  });
  const UPSTREAMS = { openai: at("openai", "/v1"), anthropic: at("anthropic", "") };
  gateway = await startGateway({ vars: { UPSTREAMS, KEY: "sk-provider-5f0c9d1e7ab24c60", TOOL_HOSTS: tools.host } });
});
beforeEach(() => {
  tools.forget();
  upstream.forget();
});
afterAll(async () => {
  tools.release();
  await gateway.stop();
  await upstream.stop();
  await tools.stop();
});

const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };

/** A run with the tool `length` at a path of the tool server. */
async function runWith(path = "/length", fields: object = {}, run: object = {}): Promise<RunAccess> {
  const length = { name: "length", url: `http://${tools.host}${path}`, parameters: PARAMETERS, ...fields };
  const bare = { name: "bare", url: `http://${tools.host}/echo` };
  const { id, token } = await gateway.openRun({ budget: { usd: 100 }, tools: [length, bare], ...run });
  return { id, token, send: async (to, request) => answerOf(await gateway.fetch(to, { token, ...request })) };
}

const shown = z.looseObject({
  finish_reason: z.string().nullable(),
  turns: z.int().optional(),
  tool_calls: z.record(z.string(), z.int()).optional(),
  message: z.looseObject({ tool_calls: z.array(z.unknown()).optional() }).optional(),
  transcript: z.array(z.looseObject({ role: z.string() })).optional(),
  usage: z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), cost: z.number() }),
  attempts: z.int(),
});
const reply = shown.extend({ text: z.string() });
const batch = z.looseObject({ results: z.array(z.string()), items: z.array(shown) });
const graph = z.looseObject({
  outputs: z.record(z.string(), z.unknown()),
  tasks: z.record(z.string(), z.looseObject({ turns: z.int(), tool_calls: z.record(z.string(), z.int()) })),
});

/** Pays for about half of what 200 conversations cost. */
const LIMIT_USD = 0.15;
const batchWithFailures = z.looseObject({
  items: z.array(z.looseObject({ status: z.string(), finish_reason: z.string().nullable() })),
});
/** Eight words: five turns, with two calls of tools in each but the last. */
const wordsOfSlot = (slot: number): string[] => Array.from({ length: 8 }, (_, at) => `${slot}${"x".repeat(at)}`);

const QUESTION = "How long are one, three, eleven?";
const ask = (run: RunAccess, json: object) =>
  run.send("/query", { json: { prompt: QUESTION, model: "openai/m", tools: ["length"], max_tokens: 50, ...json } });
const wordsOf = () =>
  tools.requests.map(
    ({ body }) => z.object({ input: z.object({ word: z.unknown() }) }).parse(JSON.parse(body)).input.word,
  );

describe.each(["openai/m", "anthropic/m"])("a call of %s with tools", (model) => {
  it("answers by what its tools have said, on /query, and shows what it did", async () => {
    const run = await runWith();
    const answer = reply.parse((await ask(run, { model, include: ["transcript"] })).json);
    expect(answer).toMatchObject({
      text: "14 letters",
      finish_reason: "stop",
      turns: 3,
      tool_calls: { length: 3 },
    });
    expect(answer.transcript?.map(({ role }) => role)).toEqual([
      "assistant",
      "tool",
      "tool",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(wordsOf().toSorted()).toEqual(["eleven", "one", "three"]);
    expect(upstream.calls).toHaveLength(3);
    const { budget } = await documentOf(run);
    expect([budget.calls?.spent, budget.usd?.reserved]).toEqual([3, 0]);
    expect(budget.usd?.spent).toBeCloseTo(answer.usage.cost, 12);
  });

  it("does so in each item of a batch, and in tasks of a graph and what depends on them", async () => {
    const run = await runWith();
    const prompts = Array.from({ length: 6 }, (_, at) => `How long are ${"x".repeat(at + 1)}, yy, zzz?`);
    const json = { prompts, model, tools: ["length"], max_tokens: 50 };
    const answered = batch.parse((await run.send("/batch", { json })).json);
    expect(answered.results).toEqual(prompts.map((_, at) => `${at + 6} letters`));
    expect(answered.items.map(({ turns }) => turns)).toEqual(prompts.map(() => 3));
    const tasks = [
      { id: "a", prompt: QUESTION, tools: ["length"] },
      { id: "b", prompt: "How long are {{a.output}}?", tools: ["length"] },
    ];
    const { outputs, tasks: of } = graph.parse(
      (await run.send("/dag", { json: { tasks, model, max_tokens: 50 } })).json,
    );
    expect(outputs["b"]).toBe("10 letters");
    expect(of).toMatchObject({
      a: { turns: 3, tool_calls: { length: 3 } },
      b: { turns: 2, tool_calls: { length: 1 } },
    });
  });

  it("makes no call of a tool that its model does not ask for", async () => {
    const run = await runWith();
    const answer = reply.parse((await ask(run, { model, prompt: "Hello" })).json);
    expect(answer).toMatchObject({ text: "I know: Hello", turns: 1, tool_calls: {} });
    expect(tools.requests).toHaveLength(0);
  });

  it("ends with the calls unmade after its last turn, and when one is of a tool of the client's", async () => {
    const run = await runWith();
    const long = reply.parse((await ask(run, { model, prompt: "Ask for ever", max_turns: 3 })).json);
    expect(long).toMatchObject({ finish_reason: "max_turns", turns: 3, tool_calls: { length: 2 } });
    expect(long.message?.tool_calls).toHaveLength(1);
    const weather = { type: "function", function: { name: "weather", parameters: PARAMETERS } };
    tools.forget();
    const own = reply.parse((await ask(run, { model, prompt: "Ask the client", params: { tools: [weather] } })).json);
    expect(own).toMatchObject({ finish_reason: "tool_calls", turns: 1, tool_calls: {} });
    expect(own.message?.tool_calls).toHaveLength(2);
    expect(tools.requests).toHaveLength(0);
  });

  it("tells its model of a tool that fails, and of arguments that it may not send", async () => {
    const failing = await runWith("/500");
    const told = reply.parse((await ask(failing, { model, prompt: "How long are one?", max_turns: 2 })).json);
    expect(told.text).toMatch(/^I could not: Error: tool "length" answered 500: the index is gone/);
    tools.forget();
    const run = await runWith();
    const bad = reply.parse((await ask(run, { model, prompt: "Ask badly" })).json);
    const [type, form] = bad.text.split(" | ");
    expect(type).toMatch(/^Error: the input of the tool "length" does not fit its parameters/);
    // Anthropic's protocol has no arguments that are not JSON: there its tool is called.
    expect(form).toBe(model === "openai/m" ? 'Error: the arguments of "length" are not a JSON object' : "7");
    expect(wordsOf()).toEqual(model === "openai/m" ? [] : ["no JSON"]);
  });
});

describe("tools of calls", () => {
  it("are checked by name before anything is reserved", async () => {
    const run = await runWith();
    const unknown = errorOf(await ask(run, { tools: ["search"] }));
    expect([unknown.code, unknown.message]).toEqual([
      "not_found",
      'tool "search" not found; this run has length, bare',
    ]);
    const answer = await ask(run, { tools: ["length", "bare"] });
    expect([answer.status, errorOf(answer).code]).toEqual([422, "tool_without_parameters"]);
    const item = await run.send("/batch", {
      json: { items: [{ prompt: "a" }, { prompt: "b", tools: ["bare"] }], model: "openai/m" },
    });
    expect([item.status, errorOf(item).param]).toEqual([422, "items[1].tools"]);
    const twice = await ask(run, { params: { tools: [{ type: "function", function: { name: "length" } }] } });
    expect([twice.status, errorOf(twice).param]).toEqual([400, "tools"]);
    const turns = await run.send("/query", { json: { prompt: "a", model: "openai/m", max_turns: 2 } });
    expect([turns.status, errorOf(turns).param]).toEqual([400, "max_turns"]);
    expect(upstream.calls).toHaveLength(0);
    expect((await documentOf(run)).budget.usd?.reserved).toBe(0);
  });

  it("are called again and again until the budget ends, which the call then says", async () => {
    const run = await runWith("/length", {}, { budget: { calls: 4 } });
    const answer = reply.parse(
      (await ask(run, { prompt: "Ask for ever", max_turns: 20, include: ["transcript"] })).json,
    );
    expect(answer).toMatchObject({ finish_reason: "tool_budget", turns: 4, tool_calls: { length: 4 } });
    expect(answer.message?.tool_calls).toHaveLength(1);
    expect(answer.transcript).toHaveLength(8);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 4, reserved: 0 });
  });

  it(
    "are called under one budget, however many calls use them: it is never exceeded",
    { tags: ["slow"], timeout: 300_000 },
    async () => {
      const run = await runWith("/length", {}, { budget: { usd: LIMIT_USD }, max_parallel: 50 });
      const prompts = Array.from({ length: 200 }, (_, at) => `How long are ${wordsOfSlot(at).join(", ")}?`);
      const json = { prompts, model: "openai/m", tools: ["length"], max_tokens: 100 };
      const { items } = batchWithFailures.parse((await run.send("/batch", { json })).json);
      const { budget } = await documentOf(run);
      const billed = upstream.calls.reduce((sum, { body }) => sum + costUsdOf(body.toString("utf8")), 0);
      expect(budget.usd?.spent).toBeCloseTo(billed, 9);
      expect(budget.usd?.spent).toBeLessThanOrEqual(LIMIT_USD);
      expect(budget.usd?.reserved).toBe(0);
      const ends = new Map<string, number>();
      for (const { status, finish_reason: reason } of items) {
        const name = status === "completed" ? String(reason) : status;
        ends.set(name, (ends.get(name) ?? 0) + 1);
      }
      // It ends in the middle: some have answered, and of some the budget has ended the conversation.
      expect([...ends.keys()].toSorted()).toEqual(expect.arrayContaining(["stop", "tool_budget"]));
    },
  );

  it("check only the last answer against the schema", async () => {
    const run = await runWith();
    const schema = { type: "object", properties: { letters: { type: "integer" } }, required: ["letters"] };
    const answer = reply.parse((await ask(run, { prompt: `${QUESTION} as JSON`, schema, schema_retries: 0 })).json);
    expect(answer).toMatchObject({ turns: 3, json: { letters: 14 } });
    const wrong = errorOf(await ask(run, { schema, schema_retries: 1 }));
    expect([wrong.code, upstream.calls.length]).toEqual(["schema_violation", 3 + 4]);
  });

  it("serve each sample", async () => {
    const run = await runWith();
    const answer = reply.parse((await ask(run, { samples: { min: 2, max: 2, agree: 1 } })).json);
    expect(answer).toMatchObject({ text: "14 letters", turns: 6, tool_calls: { length: 6 }, decided: true });
  });

  it("wait for a permit as long as other calls of the run hold them", { tags: ["slow"] }, async () => {
    const run = await runWith("/held", {}, { max_parallel: 1 });
    const other = run.send("/tool_call", { json: { tool_name: "length", input: { word: "a" } } });
    await expect.poll(() => tools.inFlight()).toBe(1);
    const call = ask(run, { prompt: "How long are one?", max_turns: 2 });
    // A call of a tool waits for its permit for so long at most; that of a model does not end by it.
    await vi.waitUntil(() => upstream.calls.length === 1, { timeout: 30_000 });
    await new Promise((resolve) => setTimeout(resolve, TOOL_QUEUE_MS_MAX + 500));
    tools.release();
    expect((await other).status).toBe(200);
    expect(reply.parse((await call).json)).toMatchObject({ text: "I could not: released", tool_calls: { length: 1 } });
  });
});
