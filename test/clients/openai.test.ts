/**
 * OpenAI's own client for Node, unmodified: only `baseURL` and `apiKey` are set. The file runs with two versions of it
 * (projects `clients` and `clients-openai-6`).
 */
import OpenAI, { PermissionDeniedError } from "openai";
import { VERSION } from "openai/version";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EMBEDDING, tokensIn } from "../support/provider-exchange.ts";
import { RAW_TEXT } from "../support/provider-raw.ts";
import { all, costReader, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let openai: OpenAI;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
  openai = new OpenAI({ baseURL: clients.baseUrl, apiKey: run.token });
});
afterAll(() => clients.stop());

const userMessage = (content: string) => [{ role: "user" as const, content }];
/** `cost` is a field that the client's types do not name. */
const costOf = (usage: object | null | undefined): unknown => (usage == null || !("cost" in usage) ? null : usage.cost);

it("the OpenAI client has the version that this project supports", () => {
  expect(VERSION.split(".")[0]).toBe(process.env["OPENAI_MAJOR"]);
});

describe("chat.completions", () => {
  it("returns usage and cost, which equals the run's charge and the provider's bill", async () => {
    const completion = await openai.chat.completions.create({ model: "up/echo", messages: userMessage("hello there") });
    expect(completion.choices[0]).toMatchObject({ message: { content: "hello there" }, finish_reason: "stop" });
    expect(completion.model).toBe("echo");
    const cost = costOf(completion.usage);
    expect(cost).toBe(clients.provider.billedNanoUsd() / 1e9);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("reaches the provider with an unchanged body except for model and cap, and without the run token", async () => {
    const seed = 9_007_199_254_740_991;
    const body = {
      model: "up/vendor/model",
      messages: userMessage("hi"),
      temperature: 0.5,
      seed,
      max_tokens: 40,
      user: "ü",
    };
    await openai.chat.completions.create(body);
    const [asked] = clients.provider.exchanges;
    expect(asked?.body.toString()).toBe(JSON.stringify({ ...body, model: "vendor/model" }));
    expect(JSON.stringify(asked?.headers)).not.toContain(run.token);
    expect(Object.keys(asked?.headers ?? {}).filter((name) => name.startsWith("x-stainless"))).toEqual([]);
  });

  it("streams, without usage that was not requested, and charges what the provider bills", async () => {
    const stream = await openai.chat.completions.create({
      model: "up/echo",
      messages: userMessage("a long story"),
      stream: true,
    });
    const chunks = await all(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("a long story");
    expect(chunks.every(({ choices, usage }) => choices.length === 1 && usage == null)).toBe(true);
    expect(clients.provider.exchanges).toMatchObject([{ json: { stream_options: { include_usage: true } } }]);
    expect(clients.provider.billedNanoUsd()).toBeGreaterThan(0);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  const withUsage = { stream: true, stream_options: { include_usage: true } } as const;

  it("streams usage on request, with the cost in a comment that the client ignores", async () => {
    const { fetch, costNanoUsd } = costReader();
    const stream = await openai
      .withOptions({ fetch })
      .chat.completions.create({ model: "up/echo", messages: userMessage("story"), ...withUsage });
    const last = (await all(stream)).at(-1);
    expect(last).toMatchObject({ choices: [], usage: { completion_tokens: tokensIn("story") } });
    expect(await costNanoUsd()).toBe(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("streams usage with cost on request, if the upstream's streams are edited", async () => {
    const stream = await openai.chat.completions.create({
      model: "edited/echo",
      messages: userMessage("story"),
      ...withUsage,
    });
    const last = (await all(stream)).at(-1);
    expect(last).toMatchObject({ choices: [], usage: { completion_tokens: tokensIn("story") } });
    expect(costOf(last?.usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
  });

  it("streams characters whole that arrive in several chunks", async () => {
    const stream = await openai.chat.completions.create({
      model: "up/raw-split",
      messages: userMessage("x"),
      stream: true,
    });
    const chunks = await all(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(RAW_TEXT);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("returns a request id and the remaining budget", async () => {
    const asked = openai.chat.completions.create({ model: "up/echo", messages: userMessage("hi") });
    const { data, request_id, response } = await asked.withResponse();
    expect(request_id).toMatch(/^[A-Za-z0-9_-]{8,64}$/);
    expect(data).toHaveProperty("_request_id", request_id);
    expect(response.headers.get("x-upstream-request-id")).toMatch(/^req-/);
    expect(response.headers.get("x-fanout-run")).toBe(run.id);
    expect(Number(response.headers.get("x-fanout-budget-remaining-usd"))).toBeLessThan(1);
  });

  it("forwards the provider's rate limit headers", async () => {
    const asked = openai.chat.completions.create({ model: "up/raw-limits", messages: userMessage("hi") });
    const { headers } = await asked.asResponse();
    expect(headers.get("x-ratelimit-remaining-tokens")).toBe("149984");
    expect(headers.get("x-ratelimit-reset-tokens")).toBe("6m0s");
  });

  it("resolves a plain model name by the upstreams' patterns, and a missing one by the run's default", async () => {
    const other = await clients.openRun({ default_model: "up/vendor/model" });
    const client = new OpenAI({ baseURL: clients.baseUrl, apiKey: other.token });
    expect((await client.chat.completions.create({ model: "echo", messages: userMessage("hi") })).model).toBe("echo");
    const answer = await client.post("/chat/completions", { body: { messages: userMessage("hi") } });
    expect(answer).toMatchObject({ model: "vendor/model" });
  });
});

describe("an answer of an unusual form", () => {
  const create = (model: string, more: object = {}) =>
    openai.chat.completions.create({ model, messages: userMessage("x"), ...more, stream: false });

  it("that is compressed is decompressed, streamed or not", async () => {
    expect((await create("up/raw-gzip")).choices[0]?.message.content).toBe("fixed");
    const chunks = await all(
      await openai.chat.completions.create({ model: "up/raw-gzip", messages: userMessage("x"), stream: true }),
    );
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(RAW_TEXT);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("that is not the requested stream is relayed unchanged, and charged", async () => {
    const asked = openai.chat.completions.create({
      model: "up/raw-unstreamed",
      messages: userMessage("x"),
      stream: true,
    });
    expect(await (await asked.asResponse()).json()).toMatchObject({ choices: [{ message: { content: "fixed" } }] });
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("with usage that the client declined is relayed without it, and charged", async () => {
    const options = { stream: true, stream_options: { include_usage: false } } as const;
    const chunks = await all(
      await openai.chat.completions.create({ model: "up/echo", messages: userMessage("x"), ...options }),
    );
    expect(chunks.every(({ choices, usage }) => choices.length === 1 && usage == null)).toBe(true);
    expect(clients.provider.exchanges).toMatchObject([{ json: { stream_options: { include_usage: true } } }]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("to a request of megabytes is relayed like any other", async () => {
    const free = await clients.openRun();
    const client = new OpenAI({ baseURL: clients.baseUrl, apiKey: free.token });
    const url = `data:image/png;base64,${"A".repeat(4_000_000)}`;
    const content = [
      { type: "text" as const, text: "what is it?" },
      { type: "image_url" as const, image_url: { url } },
    ];
    const messages = [{ role: "user" as const, content }];
    const answer = await client.chat.completions.create({ model: "up/echo", messages });
    expect(answer.choices[0]?.message.content).toBe("what is it?");
    expect(clients.provider.exchanges[0]?.body.toString()).toBe(JSON.stringify({ model: "echo", messages }));
  });
});

describe("a run", () => {
  it("that is cancelled ends its streams and their connections to the provider", async () => {
    const messages = userMessage("word ".repeat(200));
    const stream = await openai.chat.completions.create({ model: "up/slow", messages, stream: true });
    const reading = thrownBy(all(stream));
    await run.fetch(`/runs/${run.id}`, { method: "DELETE" });
    expect(await reading).toMatchObject({ code: "cancelled" });
    await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
  });

  it("with max_parallel 1 starts the next call when the stream before it has ended", async () => {
    const narrow = await clients.openRun({ max_parallel: 1 });
    const client = new OpenAI({ baseURL: clients.baseUrl, apiKey: narrow.token });
    const stream = await client.chat.completions.create({
      model: "up/slow",
      messages: userMessage("a b c d e"),
      stream: true,
    });
    const next = client.chat.completions.create({ model: "up/echo", messages: userMessage("next") });
    const reading = all(stream).then(() => clients.provider.exchanges.length);
    expect((await next).choices[0]?.message.content).toBe("next");
    // The second was not sent before the first had been read to its end.
    expect(await reading).toBe(1);
  });
});

describe("tools and structured outputs", () => {
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const tools = [{ type: "function" as const, function: { name: "weather", parameters } }];

  it("calls a tool, streamed or not, and accepts its result", async () => {
    const completion = await openai.chat.completions.create({
      model: "up/echo",
      messages: userMessage("weather?"),
      tools,
    });
    const call = completion.choices[0]?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: "function", function: { name: "weather", arguments: '{"city":"Zürich"}' } });
    const stream = openai.chat.completions.stream({ model: "up/echo", messages: userMessage("weather?"), tools });
    const streamed = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls?.[0];
    expect(streamed).toMatchObject({ function: { name: "weather", arguments: '{"city":"Zürich"}' } });
    const calls = { role: "assistant" as const, content: null, tool_calls: call === undefined ? [] : [call] };
    const result = { role: "tool" as const, tool_call_id: call?.id ?? "", content: "sun" };
    const messages = [...userMessage("weather?"), calls, result];
    const answer = await openai.chat.completions.create({ model: "up/echo", messages, tools });
    expect(answer.choices[0]?.message.content).toBe("sun");
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("parses an answer of a schema", async () => {
    const schema = { type: "object", properties: { answer: { type: "number" } } };
    const response_format = { type: "json_schema" as const, json_schema: { name: "a", strict: true, schema } };
    const parsed = await openai.chat.completions.parse({
      model: "up/echo",
      messages: userMessage("?"),
      response_format,
    });
    expect(parsed.choices[0]?.message.parsed).toEqual({ answer: 42 });
    expect(clients.provider.exchanges).toMatchObject([{ json: { response_format } }]);
  });
});

describe("completions", () => {
  it("returns a cost, streamed or not", async () => {
    const whole = await openai.completions.create({ model: "up/echo", prompt: "once upon", max_tokens: 20 });
    expect(whole.choices[0]?.text).toBe("once upon");
    expect(costOf(whole.usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
    const stream = await openai.completions.create({
      model: "up/echo",
      prompt: "a time",
      max_tokens: 20,
      stream: true,
    });
    const chunks = await all(stream);
    expect(chunks.map(({ choices }) => choices[0]?.text).join("")).toBe("a time");
    expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });
});

describe("embeddings", () => {
  it.each(["up/floats", "up/base64", "up/vendor/floats"])("are vectors, whatever form %s answers in", async (model) => {
    const { data, usage } = await openai.embeddings.create({ model, input: ["some text", "more of it"] });
    expect(data.map(({ embedding }) => [...embedding])).toEqual([EMBEDDING, EMBEDDING]);
    expect(costOf(usage)).toBe(clients.provider.billedNanoUsd() / 1e9);
    expect(clients.provider.exchanges).toMatchObject([{ json: { encoding_format: "base64" } }]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("accept token numbers as input", async () => {
    const input = [
      [9_906, 1_917],
      [3_923, 374, 420],
    ];
    const { data } = await openai.embeddings.create({ model: "up/floats", input });
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
    expect(clients.provider.exchanges).toMatchObject([{ json: { input } }]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("stay numbers if numbers are requested", async () => {
    const asked = openai.embeddings.create({ model: "up/floats", input: "x", encoding_format: "float" });
    expect((await asked).data[0]?.embedding).toEqual(EMBEDDING);
  });
});

describe("models", () => {
  it("are listed as upstream/model, and found by that name, slashes included", async () => {
    const ids = (await all(openai.models.list())).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["up/vendor/model", "up/echo"]));
    const model = await openai.models.retrieve("up/vendor/model");
    expect(model).toMatchObject({ id: "up/vendor/model", object: "model", owned_by: "up" });
  });

  it("are limited to those that the run may use", async () => {
    const narrow = await clients.openRun({ models: ["up/vendor/*"] });
    const client = new OpenAI({ baseURL: clients.baseUrl, apiKey: narrow.token });
    expect((await all(client.models.list())).map(({ id }) => id)).toEqual(["up/vendor/model"]);
    expect(await thrownBy(client.models.retrieve("up/echo"))).toBeInstanceOf(PermissionDeniedError);
    expect(await thrownBy(client.models.retrieve("nobody-2"))).toBeInstanceOf(PermissionDeniedError);
  });
});

describe("a client that aborts", () => {
  it("in the middle of a stream is disconnected at the provider before the stream's end, and nothing stays reserved", async () => {
    const messages = userMessage("word ".repeat(100));
    const stream = await openai.chat.completions.create({ model: "up/slow", messages, stream: true });
    for await (const { choices } of stream) if ((choices[0]?.delta.content ?? "") !== "") break;
    await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
    expect(await run.spentNanoUsd()).toBeGreaterThanOrEqual(clients.provider.billedNanoUsd());
    expect(await run.attempts(1)).toMatchObject([{ outcome: "unknown", estimated: true }]);
  });

  // Plain workerd notices an orderly close by the client only at its next write.
  it("while the provider is silent is settled at the upstream's timeout", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const asked = openai.chat.completions.create(
      { model: "impatient/raw-stalled", messages: userMessage("x") },
      { signal },
    );
    await expect.poll(() => clients.provider.exchanges.length).toBe(1);
    controller.abort();
    // The headers have come, and of an abort after them version 6 tells in the platform's own words.
    expect(String(await thrownBy(asked))).toMatch(/abort/i);
    await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
    expect(await run.attempts(1)).toMatchObject([{ estimated: true }]);
    expect(await run.spentNanoUsd()).toBeGreaterThan(0);
  });
});
