import { describe, expect, it } from "vitest";
import { promptHash } from "../../../../src/providers/simulated/hash.ts";
import { simulatedAnswer } from "../../../../src/providers/simulated/provider.ts";
import { bodyOf, ENDPOINTS, instantly, post, postJson } from "./requests.ts";

const unit = (vector: number[]) => Math.hypot(...vector);

describe("simulated text completions", () => {
  it("echo each prompt and add up the usage", async () => {
    const { status, json } = await postJson("completions", { model: "echo", prompt: ["abcde", "xy"] });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      object: "text_completion",
      created: 1_000,
      model: "echo",
      choices: [
        { index: 0, text: "abcde", logprobs: null, finish_reason: "stop" },
        { index: 1, text: "xy", logprobs: null, finish_reason: "stop" },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
    });
  });

  it("give n choices of each prompt, in the prompts' order, all of them counted", async () => {
    const { json } = await postJson("completions", { model: "echo", prompt: ["a", "bcdefgh"], n: 2, max_tokens: 1 });
    expect(json.choices.map(({ text, finish_reason }: Record<string, unknown>) => [text, finish_reason])).toEqual([
      ["a", "stop"],
      ["a", "stop"],
      ["bcde", "length"],
      ["bcde", "length"],
    ]);
    expect(json.usage).toEqual({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 });
  });

  it("take token ids", async () => {
    const { json } = await postJson("completions", { model: "echo", prompt: [[1, 22], [333]] });
    expect(json.choices.map(({ text }: { text: string }) => text)).toEqual(["1 22", "333"]);
    expect(json.usage.prompt_tokens).toBe(3);
  });
});

describe("simulated responses", () => {
  it("echo a string and report usage under the names of Responses", async () => {
    const { json } = await postJson("responses", { model: "echo", input: "hello", instructions: "abc" });
    expect(json).toMatchObject({
      object: "response",
      status: "completed",
      created_at: 1_000,
      incomplete_details: null,
      instructions: "abc",
      output: [{ type: "message", role: "assistant", status: "completed", content: [{ text: "hello" }] }],
      usage: { input_tokens: 2, output_tokens: 2, total_tokens: 4 },
    });
  });

  it("echo the last user item", async () => {
    const input = [
      { role: "user", content: "first" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "no" }] },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "se" },
          { type: "input_text", text: "cond" },
        ],
      },
    ];
    const { json } = await postJson("responses", { model: "echo", input });
    expect(json.output[0].content[0].text).toBe("second");
    expect(json.usage.input_tokens).toBe(4);
  });

  it("are incomplete once cut", async () => {
    const { json } = await postJson("responses", { model: "echo", input: "abcdefgh", max_output_tokens: 1 });
    expect(json).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete", content: [{ text: "abcd" }] }],
      usage: { output_tokens: 1 },
    });
  });
});

describe("simulated messages", () => {
  it("echo the last user message, and count the system text", async () => {
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "user", content: [{ type: "text", text: "cd" }] },
    ];
    const system = [{ type: "text", text: "sys!" }];
    const { json } = await postJson("messages", { model: "echo", max_tokens: 100, system, messages });
    expect(json).toMatchObject({
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "cd" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 2, output_tokens: 1 },
    });
  });

  it("end with max_tokens once cut", async () => {
    const { json } = await postJson("messages", { ...bodyOf("messages", "echo", "abcdefgh"), max_tokens: 1 });
    expect(json).toMatchObject({ content: [{ text: "abcd" }], stop_reason: "max_tokens", usage: { output_tokens: 1 } });
  });

  it.each([
    [400, "invalid_request_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [529, "overloaded_error"],
  ])("fail with %d in Anthropic's shape", async (status, type) => {
    const failed = await postJson("messages", bodyOf("messages", `fail?status=${status}`, "a"));
    expect(failed.status).toBe(status);
    expect(failed.json).toEqual({ type: "error", error: { type, message: expect.any(String) } });
  });
});

describe("simulated embeddings", () => {
  const vectors = async (input: unknown, more: Record<string, unknown> = {}): Promise<number[][]> => {
    const { json } = await postJson("embeddings", { model: "echo", input, ...more });
    return json.data.map(({ embedding }: { embedding: number[] }) => embedding);
  };

  it("are unit vectors that depend on the text alone", async () => {
    const [first, second, third] = await vectors(["one", "two", "one"]);
    expect(first).toHaveLength(64);
    expect(unit(first ?? [])).toBeCloseTo(1, 5);
    expect(unit(second ?? [])).toBeCloseTo(1, 5);
    expect(third).toEqual(first);
    expect(await vectors("one")).toEqual([first]);
    const cosine = (first ?? []).reduce((sum, value, index) => sum + value * (second?.[index] ?? 0), 0);
    expect(Math.abs(cosine)).toBeLessThan(0.5);
  });

  it("have the requested dimensions, up to 1,024", async () => {
    expect(await vectors("a", { dimensions: 1 })).toEqual([[expect.any(Number)]]);
    const [widest] = await vectors("a", { dimensions: 1_024 });
    expect(widest).toHaveLength(1_024);
    expect(unit(widest ?? [])).toBeCloseTo(1, 5);
    for (const dimensions of [0, 1_025, 1.5, "8"]) {
      expect((await postJson("embeddings", { model: "echo", input: "a", dimensions })).status).toBe(400);
    }
  });

  it("are the same in base64 as in floats", async () => {
    const { json } = await postJson("embeddings", { model: "echo", input: "a", encoding_format: "base64" });
    const bytes = Buffer.from(json.data[0].embedding, "base64");
    const read = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
    const [floats] = await vectors("a");
    expect(read).toEqual(floats?.map(Math.fround));
  });

  it("count the prompt, or its token ids, and nothing else", async () => {
    const { json } = await postJson("embeddings", { model: "echo", input: ["abcde", [1, 2, 3]] });
    expect(json.usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
    expect(json.data.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
  });

  it("take 2,048 inputs and no more", async () => {
    const status = async (inputs: number) => {
      const input = Array.from({ length: inputs }, () => "a");
      return (await postJson("embeddings", { model: "echo", input, dimensions: 1 })).status;
    };
    expect([await status(2_048), await status(2_049)]).toEqual([200, 400]);
  });
});

describe("every simulated endpoint", () => {
  it.each(ENDPOINTS)("%s waits, fails and recovers by the model's parameters", async (endpoint) => {
    const sleptMs: number[] = [];
    await post(endpoint, bodyOf(endpoint, "slow?ms=7", "a"), instantly(sleptMs));
    expect(sleptMs).toEqual([7]);

    const model = "fail?status=503&times=1&retry_after_ms=30";
    const failed = await post(endpoint, bodyOf(endpoint, model, "a"));
    expect([failed.status, failed.headers.get("retry-after-ms")]).toEqual([503, "30"]);
    const second = await post(endpoint, bodyOf(endpoint, model, "a"), { ...instantly(), attempt: 2 });
    expect(second.status).toBe(200);
  });

  it.each(ENDPOINTS)("%s refuses an unknown model and a body without its prompt", async (endpoint) => {
    const unknown = await postJson(endpoint, bodyOf(endpoint, "gpt-x", "a"));
    expect(unknown.status).toBe(404);
    expect(unknown.json.error.message).toContain("gpt-x");
    const refused = [await postJson(endpoint, { model: "echo" }), await postJson(endpoint, [])];
    for (const text of ["", "{", "null"]) {
      const response = await simulatedAnswer(endpoint, text, instantly());
      refused.push({ status: response.status, json: JSON.parse(await response.text()) });
    }
    for (const { status, json } of refused) {
      expect(status).toBe(400);
      expect(json.error).toMatchObject({ type: "invalid_request_error", message: expect.any(String) });
    }
  });

  it("writes OpenAI errors in OpenAI's form, with the gateway's `retryable`", async () => {
    const { json } = await postJson("responses", bodyOf("responses", "gpt-x", "a"));
    expect(json.error).toEqual({
      message: expect.any(String),
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
      retryable: false,
    });
  });
});

describe("n", () => {
  it("gives that many choices, all of them counted", async () => {
    const { json } = await postJson("chat", { ...bodyOf("chat", "echo", "abcde"), n: 3 });
    expect(json.choices.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2]);
    expect(json.usage).toEqual({ prompt_tokens: 2, completion_tokens: 6, total_tokens: 8 });
  });

  it.each([
    [1, 200],
    [128, 200],
    [null, 200],
    [0, 400],
    [129, 400],
    [1.5, 400],
    ["2", 400],
  ])("of %s is answered with %d", async (n, status) => {
    for (const endpoint of ["chat", "completions"] as const) {
      expect((await postJson(endpoint, { ...bodyOf(endpoint, "echo", "a"), n })).status).toBe(status);
    }
  });

  it("is refused if the answer would be larger than the largest request body", async () => {
    const prompt = "x".repeat(1024 * 1024);
    expect((await post("chat", { ...bodyOf("chat", "echo", prompt), n: 32 })).status).toBe(200);
    expect((await post("chat", { ...bodyOf("chat", "echo", prompt), n: 33 })).status).toBe(400);
  });
});

describe("promptHash", () => {
  it("keeps its values, on which the simulated failures of saved prompts depend", () => {
    expect([promptHash(""), promptHash("a"), promptHash("prompt 1")]).toEqual([2872998923, 444641715, 3100753111]);
  });
});
