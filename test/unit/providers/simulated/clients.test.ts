import Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { simulatedAnswer } from "../../../../src/providers/simulated/provider.ts";
import { instantly } from "./requests.ts";

const ENDPOINT_AT = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completions",
  "/v1/embeddings": "embeddings",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
} as const;

/** Stands for the network: the body goes to the simulated upstream, the signal with it. */
async function fetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const path = new URL(String(url)).pathname;
  const found = Object.entries(ENDPOINT_AT).find(([at]) => at === path);
  if (found === undefined || typeof init?.body !== "string") throw new Error(`no endpoint for ${path}`);
  return simulatedAnswer(found[1], init.body, { ...instantly(), signal: init.signal ?? new AbortController().signal });
}

const PROMPT = "Tell me of foxes, please: 🦊 and others.";
const messages = [{ role: "user" as const, content: PROMPT }];
const USAGE = { prompt_tokens: 11, completion_tokens: 11, total_tokens: 22 };

/** Loaded by name: the types of the two versions cannot be called as one, though the calls below are the same. */
async function clientOf(name: string): Promise<OpenAI> {
  const { default: Client }: { default: typeof OpenAI } = await import(name);
  return new Client({ apiKey: "x", baseURL: "http://sim/v1", fetch, maxRetries: 0 });
}

describe.each(["openai", "openai-6"])("%s reads the simulated upstream's", async (name) => {
  const client = await clientOf(name);

  it("chat completion", async () => {
    const { choices, usage } = await client.chat.completions.create({ model: "echo", messages });
    expect(choices[0]).toMatchObject({ message: { content: PROMPT }, finish_reason: "stop" });
    expect(usage).toEqual(USAGE);
  });

  it("chat stream", async () => {
    const stream = client.chat.completions.stream({ model: "echo", messages, stream_options: { include_usage: true } });
    let pieces = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) pieces++;
    expect(pieces).toBeGreaterThan(3);
    const { choices, usage } = await stream.finalChatCompletion();
    expect(choices[0]).toMatchObject({ message: { role: "assistant", content: PROMPT }, finish_reason: "stop" });
    expect(usage).toEqual(USAGE);
  });

  it("text completion, at once and as a stream", async () => {
    const { choices, usage } = await client.completions.create({ model: "echo", prompt: PROMPT });
    expect(choices[0]).toMatchObject({ text: PROMPT, finish_reason: "stop" });
    expect(usage).toEqual(USAGE);

    const stream = await client.completions.create({ model: "echo", prompt: PROMPT, stream: true });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
    expect(text).toBe(PROMPT);
  });

  it("embeddings, in base64 by default and as floats", async () => {
    const input = ["one", "two"];
    const decoded = await client.embeddings.create({ model: "echo", input, dimensions: 16 });
    const floats = await client.embeddings.create({ model: "echo", input, dimensions: 16, encoding_format: "float" });
    for (const [index, { embedding }] of floats.data.entries()) {
      expect(embedding).toHaveLength(16);
      expect(Array.from(decoded.data[index]?.embedding ?? [])).toEqual(embedding.map(Math.fround));
    }
    expect(decoded.usage).toEqual({ prompt_tokens: 2, total_tokens: 2 });
  });

  it("response", async () => {
    const response = await client.responses.create({ model: "echo", input: PROMPT });
    expect(response.output_text).toBe(PROMPT);
    expect(response.status).toBe("completed");
    expect(response.usage).toMatchObject({ input_tokens: 11, output_tokens: 11, total_tokens: 22 });
  });

  it("Responses stream", async () => {
    const stream = client.responses.stream({ model: "echo", input: PROMPT });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    expect(text).toBe(PROMPT);
    const response = await stream.finalResponse();
    expect(response.output_text).toBe(PROMPT);
    expect(response.usage?.total_tokens).toBe(22);
  });

  it("error", async () => {
    const failing = client.chat.completions.create({ model: "fail?status=429", messages });
    await expect(failing).rejects.toMatchObject({ status: 429, type: "rate_limit_error" });
  });
});

describe("the Anthropic client reads the simulated upstream's", () => {
  const client = new Anthropic({ apiKey: "x", baseURL: "http://sim", fetch, maxRetries: 0 });

  it("message", async () => {
    const message = await client.messages.create({ model: "echo", max_tokens: 100, messages });
    expect(message.content).toMatchObject([{ type: "text", text: PROMPT }]);
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage).toMatchObject({ input_tokens: 11, output_tokens: 11 });
  });

  it("message stream", async () => {
    const stream = client.messages.stream({ model: "echo", max_tokens: 100, messages });
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const message = await stream.finalMessage();
    expect(text).toBe(PROMPT);
    expect(message.content).toMatchObject([{ type: "text", text: PROMPT }]);
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage).toMatchObject({ input_tokens: 11, output_tokens: 11 });
  });

  it("broken stream as broken", async () => {
    const stream = client.messages.stream({ model: "echo?break_after=2", max_tokens: 100, messages });
    await expect(stream.finalMessage()).rejects.toThrow();
  });

  it("error", async () => {
    const failing = client.messages.create({ model: "fail?status=529", max_tokens: 100, messages });
    await expect(failing).rejects.toMatchObject({ status: 529, error: { error: { type: "overloaded_error" } } });
  });
});
