/** A fresh checkout has the embedded upstream and no key: what clients get of it before anything is configured. */
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText } from "ai";
import OpenAI, { APIError, RateLimitError } from "openai";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { all, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let openai: OpenAI;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  run = await clients.openRun({ budget: { usd: 0.01 } });
  openai = new OpenAI({ baseURL: clients.baseUrl, apiKey: run.token, maxRetries: 0 });
});
afterAll(() => clients.stop());

const messages = [{ role: "user" as const, content: "say it again" }];

it("every client of the simulated upstream gets its own prompt back", async () => {
  const anthropic = new Anthropic({ baseURL: clients.gateway.url, apiKey: run.token });
  const request = { model: "sim/echo", max_tokens: 100, messages };
  const configuration = { baseURL: clients.baseUrl };
  const heard = await Promise.all([
    openai.chat.completions.create({ model: "sim/echo", messages }).then(({ choices }) => choices[0]?.message.content),
    openai.completions.create({ model: "sim/echo", prompt: "say it again" }).then(({ choices }) => choices[0]?.text),
    openai.responses.create({ model: "sim/echo", input: "say it again" }).then(({ output_text }) => output_text),
    openai.responses
      .stream({ model: "sim/echo", input: "say it again" })
      .finalResponse()
      .then((last) => last.output_text),
    openai.chat.completions.stream({ model: "sim/echo", messages }).finalContent(),
    anthropic.messages.create(request).then(({ content: [block] }) => (block?.type === "text" ? block.text : null)),
    anthropic.messages.stream(request).finalText(),
    generateText({ model: createOpenAI({ ...configuration, apiKey: run.token })("sim/echo"), messages }).then(
      ({ text }) => text,
    ),
    new ChatOpenAI({ model: "sim/echo", apiKey: run.token, configuration })
      .invoke("say it again")
      .then(({ content }) => content),
  ]);
  expect(heard).toEqual(heard.map(() => "say it again"));
  const attempts = await run.attempts(heard.length);
  expect(attempts.every(({ outcome, estimated }) => outcome === "success" && estimated === false)).toBe(true);
  expect(await run.spentNanoUsd()).toBeGreaterThan(0);
});

it("the simulated upstream stores no responses, and every route for them reports that", async () => {
  const { id } = await openai.responses.create({ model: "sim/echo", input: "say it again", store: true });
  const asked = [
    openai.responses.retrieve(id),
    openai.responses.delete(id),
    openai.responses.cancel(id),
    openai.responses.inputItems.list(id),
    openai.responses.retrieve("resp_never"),
  ];
  for (const answer of await Promise.allSettled(asked)) {
    expect(answer).toMatchObject({ status: "rejected", reason: { status: 404, code: "not_found" } });
  }
});

it("simulated embeddings are vectors of one length, equal in both encodings", async () => {
  const [packed, plain] = await Promise.all([
    openai.embeddings.create({ model: "sim/echo", input: ["a", "b"] }),
    openai.embeddings.create({ model: "sim/echo", input: ["a", "b"], encoding_format: "float" }),
  ]);
  const lengths = packed.data.map(({ embedding }) => embedding.length);
  expect(new Set(lengths).size).toBe(1);
  for (const [index, { embedding }] of packed.data.entries()) {
    for (const [at, number] of embedding.entries())
      expect(number).toBeCloseTo(plain.data[index]?.embedding[at] ?? 9, 6);
  }
});

it("the simulated upstream counts tokens", async () => {
  const anthropic = new Anthropic({ baseURL: clients.gateway.url, apiKey: run.token });
  expect((await anthropic.messages.countTokens({ model: "sim/echo", messages })).input_tokens).toBeGreaterThan(0);
});

it("simulated failures are thrown, and so is a stream that breaks off", async () => {
  const create = (model: string) => openai.chat.completions.create({ model, messages });
  const limited = await thrownBy(create("sim/fail?status=429&retry_after_ms=100000"));
  expect(limited).toBeInstanceOf(RateLimitError);
  const stream = await openai.chat.completions.create({ model: "sim/echo?break_after=1", messages, stream: true });
  const broken = await thrownBy(all(stream));
  expect(broken).toBeInstanceOf(APIError);
  expect(broken).toMatchObject({ code: "upstream_truncated" });
});

it("simulated models are listed and found by name", async () => {
  const ids = (await all(openai.models.list())).map(({ id }) => id);
  expect(ids).toContain("sim/echo");
  expect(await openai.models.retrieve("sim/echo")).toMatchObject({ id: "sim/echo", owned_by: "sim" });
});
