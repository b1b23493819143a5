/** LangChain's OpenAI integration. */
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
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

const chat = (model: string, more: object = {}) =>
  new ChatOpenAI({ model, apiKey: run.token, configuration: { baseURL: clients.baseUrl }, ...more });

it("LangChain invokes, with usage", async () => {
  const message = await chat("up/echo").invoke("hello there");
  expect(message.content).toBe("hello there");
  expect(message).toMatchObject({ usage_metadata: { output_tokens: tokensIn("hello there") } });
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("LangChain streams, with usage", async () => {
  const chunks = await all(await chat("up/echo").stream("in many pieces"));
  expect(chunks.map(({ content }) => content).join("")).toBe("in many pieces");
  const usage = { output_tokens: tokensIn("in many pieces") };
  expect(chunks).toContainEqual(expect.objectContaining({ usage_metadata: expect.objectContaining(usage) }));
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("LangChain decides by the status alone: without its own retries, only the gateway's attempts are made", async () => {
  const error = await thrownBy(chat("up/busy", { maxRetries: 0 }).invoke("x"));
  expect(error).toMatchObject({ status: 503 });
  expect(clients.provider.exchanges).toHaveLength(3);
});

it("LangChain calls in parallel", async () => {
  const messages = await chat("up/echo").batch(["one", "two", "three"]);
  expect(messages.map(({ content }) => content)).toEqual(["one", "two", "three"]);
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("LangChain binds tools", async () => {
  const weather = { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
  const message = await chat("up/echo")
    .bindTools([{ type: "function", function: weather }])
    .invoke("weather?");
  expect(message.tool_calls).toMatchObject([{ name: "weather", args: { city: "Zürich" } }]);
});

it("LangChain embeds, whatever form the provider answers in", async () => {
  for (const model of ["up/floats", "up/base64"]) {
    const embeddings = new OpenAIEmbeddings({ model, apiKey: run.token, configuration: { baseURL: clients.baseUrl } });
    expect(await embeddings.embedDocuments(["one", "two"])).toEqual([EMBEDDING, EMBEDDING]);
    expect(await embeddings.embedQuery("one")).toEqual(EMBEDDING);
  }
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it.each(["up/raw-eof", "up/raw-error"])("LangChain throws at a stream that fails (%s)", async (model) => {
  const stream = await chat(model, { maxRetries: 0 }).stream("x");
  expect(await thrownBy(all(stream))).toBeInstanceOf(Error);
  expect(await run.attempts(1)).toMatchObject([{ estimated: true }]);
});

it("LangChain does not retry what a budget refuses", async () => {
  run = await clients.openRun({ budget: { calls: 0 } });
  const error = await thrownBy(chat("up/echo").invoke("x"));
  expect(String(error)).toContain("Global call budget exceeded: 0 spent, limit is 0");
  expect(clients.provider.exchanges).toEqual([]);
});

it("LangChain waits for the retry-after of a rate limit", async () => {
  const message = await chat("once/limited-once").invoke("wait for me");
  expect(message.content).toBe("wait for me");
  expect(clients.provider.exchanges).toHaveLength(2);
});
