import { describe, expect, it } from "vitest";
import { simulatedAnswer } from "../../../../src/providers/simulated/provider.ts";

type Asked = { messages?: unknown; attempt?: number; request?: Record<string, unknown> };

/** Asks a model and records the sleeps it took instead of taking them. */
async function ask(model: string, prompt: string, { messages, attempt = 1, request = {} }: Asked = {}) {
  const sleptMs: number[] = [];
  const body = JSON.stringify({ model, messages: messages ?? [{ role: "user", content: prompt }], ...request });
  const response = await simulatedAnswer("chat", body, {
    now: () => 1_000_000,
    timer: (ms, elapsed) => {
      sleptMs.push(ms);
      queueMicrotask(elapsed);
      return () => {};
    },
    signal: new AbortController().signal,
    attempt,
  });
  const text = await response.text();
  expect(response.headers.get("content-length")).toBe(String(new TextEncoder().encode(text).length));
  return { status: response.status, headers: response.headers, json: JSON.parse(text), sleptMs };
}

const textOf = async (model: string, prompt: string) => (await ask(model, prompt)).json.choices[0].message.content;

describe("simulated models", () => {
  it("echo repeats the last user message and reports usage", async () => {
    const messages = [
      { role: "system", content: "abcd" },
      { role: "user", content: "first" },
      { role: "assistant", content: "no" },
      { role: "user", content: [{ type: "text", text: "héllo" }] },
    ];
    const { status, json, sleptMs } = await ask("echo", "", { messages });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      object: "chat.completion",
      created: 1_000,
      model: "echo",
      choices: [{ message: { role: "assistant", content: "héllo" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
    expect(sleptMs).toEqual([]);
  });

  it.each([
    ["max_tokens", "abcdefgh", 2, "abcdefgh", "stop"],
    ["max_tokens", "abcdefghi", 2, "abcdefgh", "length"],
    ["max_completion_tokens", "abcdefghi", 1, "abcd", "length"],
    ["max_tokens", "abc€x", 1, "abc", "length"],
  ])("cuts an answer to %s at a whole character: %s", async (field, prompt, cap, text, finish_reason) => {
    const { json } = await ask("echo", prompt, { request: { [field]: cap } });
    expect(json.choices[0]).toMatchObject({ message: { content: text }, finish_reason });
    expect(json.usage.completion_tokens).toBeLessThanOrEqual(cap);
  });

  it("reverse reverses characters and keeps surrogate pairs", async () => {
    expect(await textOf("reverse", "ab😀")).toBe("😀ba");
  });

  it("json answers with JSON", async () => {
    expect(JSON.parse(await textOf("json", 'two "words"'))).toEqual({ echo: 'two "words"', words: 2 });
  });

  it("waits for the latency in the model's parameters", async () => {
    expect((await ask("slow", "a")).sleptMs).toEqual([500]);
    expect((await ask("slow?ms=20", "a")).sleptMs).toEqual([20]);
    expect((await ask("echo?ms=50", "a")).sleptMs).toEqual([50]);
  });

  it("random derives its latency from the prompt, within the bounds", async () => {
    const drawnMs = new Set<number | undefined>();
    for (let index = 0; index < 40; index++) {
      const [firstMs] = (await ask("random?min=5&max=8", `p${index}`)).sleptMs;
      expect((await ask("random?min=5&max=8", `p${index}`)).sleptMs).toEqual([firstMs]);
      drawnMs.add(firstMs);
    }
    expect([...drawnMs].toSorted()).toEqual([5, 6, 7, 8]);
  });

  it("fail answers with the status and Retry-After in its parameters", async () => {
    const { status, json, headers } = await ask("fail?status=429&retry_after_ms=40", "a");
    expect(status).toBe(429);
    expect(json.error).toMatchObject({ type: "rate_limit_error", message: expect.any(String) });
    expect(headers.get("retry-after-ms")).toBe("40");
    expect((await ask("fail", "a")).status).toBe(500);
  });

  it("fails the same share of the same prompts each time", async () => {
    const statuses = async () => {
      const asked = Array.from({ length: 1_000 }, (_, index) => ask("echo?status=503&rate=0.3", `prompt ${index}`));
      return (await Promise.all(asked)).map(({ status }) => status);
    };
    const first = await statuses();
    const failures = first.filter((status) => status === 503).length;
    expect(failures).toBeGreaterThan(250);
    expect(failures).toBeLessThan(350);
    expect(await statuses()).toEqual(first);
  });

  it("fails only the first attempts with times", async () => {
    const statuses = [1, 2, 3].map(async (attempt) => (await ask("fail?times=2", "a", { attempt })).status);
    expect(await Promise.all(statuses)).toEqual([500, 500, 200]);
  });

  it("names counts words on word boundaries, whatever their case", async () => {
    const prompt =
      "Count these.\nWords: Ann, Bob, Mary Ann, Cy\nText:\nAnn met ann. Annabel, bob's Bobby: 3\nMary Ann (Bob)";
    expect(await textOf("names", prompt)).toBe("Ann: 3\nBob: 2\nMary Ann: 1\nCy: 0");
    expect(await textOf("names", "Words: a b\nText: b a a")).toBe("a: 2\nb: 1");
  });

  it("names adds up counts and sorts them by count, then name", async () => {
    const prompt = "Add up:\n\nAnn: 2\nBob: 1\n\nBob: 4\n Cy : 2\nnot a count: x\nAnn: 0";
    expect(await textOf("names", prompt)).toBe("Bob: 5\nAnn: 2\nCy: 2");
    expect(await textOf("names", "nothing to add")).toBe("");
  });

  it.each([
    ["gpt-x", 404],
    ["", 404],
    ["echo?speed=1", 400],
    ["slow?ms=-1", 400],
    ["slow?ms=1.5", 400],
    ["slow?ms=3600001", 400],
    ["fail?status=200", 400],
    ["fail?status=600", 400],
    ["fail?rate=1.1", 400],
    ["fail?rate=x", 400],
    ["echo?chunk_ms=-1", 400],
    ["echo?chunks=0", 400],
    ["echo?break_after=x", 400],
  ])("refuses %s with %d", async (model, status) => {
    const refused = await ask(model, "a");
    expect(refused.status).toBe(status);
    expect(refused.json.error.message).not.toBe("");
  });

  it("ends, and stops its timer, when it is aborted", async () => {
    let stopped = false;
    const over = new AbortController();
    const pending = simulatedAnswer("chat", JSON.stringify({ model: "slow", messages: [] }), {
      now: Date.now,
      timer: () => () => void (stopped = true),
      signal: over.signal,
      attempt: 1,
    });
    over.abort(new Error("gone"));
    await expect(pending).rejects.toThrow("gone");
    expect(stopped).toBe(true);
  });
});
