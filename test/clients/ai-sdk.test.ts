/** Vercel's AI SDK with both of its providers for servers of OpenAI's kind. */
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embedMany, generateText, jsonSchema, Output, streamText, tool, type LanguageModel } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EMBEDDING, tokensIn } from "../support/provider-exchange.ts";
import { all, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
});
afterAll(() => clients.stop());

const compatible = ({ token } = run, includeUsage = true) =>
  createOpenAICompatible({ name: "fanout", baseURL: clients.baseUrl, apiKey: token, includeUsage });
const openai = ({ token } = run) => createOpenAI({ baseURL: clients.baseUrl, apiKey: token });

/** Each way to a model. That of OpenAI's provider which is not named is the Responses API. */
const WAYS: [string, (model: string) => LanguageModel][] = [
  ["openai-compatible", (model) => compatible()(model)],
  ["openai, chat", (model) => openai().chat(model)],
  ["openai, responses", (model) => openai()(model)],
];

describe.each(WAYS)("%s", (_, model) => {
  it("generates a text, with its usage", async () => {
    const { text, usage, finishReason } = await generateText({ model: model("up/echo"), prompt: "hello there" });
    expect([text, finishReason, usage.outputTokens]).toEqual(["hello there", "stop", tokensIn("hello there")]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("streams a text, with its usage", async () => {
    const result = streamText({ model: model("up/echo"), prompt: "in many pieces" });
    const pieces = await all(result.textStream);
    expect([pieces.join(""), await result.finishReason]).toEqual(["in many pieces", "stop"]);
    expect(pieces.length).toBeGreaterThan(1);
    expect((await result.usage).outputTokens).toBe(tokensIn("in many pieces"));
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("reports a stream that was cut short", async () => {
    const errors: unknown[] = [];
    const onError = ({ error }: { error: unknown }) => void errors.push(error);
    const result = streamText({ model: model("up/raw-eof"), prompt: "x", onError, maxRetries: 0 });
    const parts = await all(result.fullStream);
    expect(parts.some(({ type }) => type === "error")).toBe(true);
    expect(JSON.stringify(errors) + String(errors)).toMatch(/upstream_truncated|broke off/);
    expect(parts.findLast((part) => part.type === "finish")?.finishReason ?? "error").toBe("error");
    expect(await run.attempts(1)).toMatchObject([{ estimated: true }]);
  });

  it("decides by the status alone: without its own retries, only the gateway's attempts are made", async () => {
    const error = await thrownBy(generateText({ model: model("up/busy"), prompt: "x", maxRetries: 0 }));
    expect(error).toMatchObject({ statusCode: 503, isRetryable: true });
    expect(error).toMatchObject({ responseHeaders: { "x-should-retry": "false", "x-fanout-attempts": "3" } });
    expect(clients.provider.exchanges).toHaveLength(3);
  });

  it("throws a refusal of the gateway, once", async () => {
    await run.fetch(`/runs/${run.id}/close`, { method: "POST" });
    const error = await thrownBy(generateText({ model: model("up/echo"), prompt: "x" }));
    expect(error).toBeInstanceOf(APICallError);
    expect(error).toMatchObject({ statusCode: 401, isRetryable: false });
    expect(clients.provider.exchanges).toEqual([]);
  });
});

it("calls tools and continues with their results", async () => {
  const inputSchema = jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } });
  const asked: string[] = [];
  const weather = tool({
    inputSchema,
    execute: async ({ city }) => {
      asked.push(city);
      return "sun";
    },
  });
  const { toolCalls } = await generateText({ model: compatible()("up/echo"), prompt: "?", tools: { weather } });
  expect(toolCalls).toMatchObject([{ toolName: "weather", input: { city: "Zürich" } }]);
  expect(asked).toEqual(["Zürich"]);
});

it("parses an object of a schema", async () => {
  const schema = jsonSchema<{ answer: number }>({ type: "object", properties: { answer: { type: "number" } } });
  const output = Output.object({ schema });
  const result = await generateText({ model: openai().chat("up/echo"), prompt: "?", output });
  expect(result.output).toEqual({ answer: 42 });
});

it("embeds, requesting numbers", async () => {
  const model = compatible().embeddingModel("up/floats");
  const { embeddings, usage } = await embedMany({ model, values: ["one", "two"] });
  expect(embeddings).toEqual([EMBEDDING, EMBEDDING]);
  expect(usage.tokens).toBe(tokensIn("onetwo"));
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("sees no usage in a stream without include_usage, and is charged all the same", async () => {
  const result = streamText({ model: compatible(run, false)("up/echo"), prompt: "no usage" });
  expect((await all(result.textStream)).join("")).toBe("no usage");
  expect((await result.usage).outputTokens).toBeUndefined();
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});
