import { describe, expect, it } from "vitest";
import type { Stats } from "../support/upstream-worker.ts";

const HOST = "http://upstream-self-test.test";

describe("the upstream of the tests", () => {
  it("echoes the prompt, with usage that is true to the text", async () => {
    const { status, body } = await ask("", { prompt: "five words, and some more" });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      choices: [{ message: { content: "five words, and some more" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
    });
  });

  it("cuts the completion at the cap and says so", async () => {
    const { body } = await ask("", { prompt: "abcdefghijkl", max_tokens: 2 });
    expect(body).toMatchObject({
      choices: [{ message: { content: "abcdefgh" }, finish_reason: "length" }],
      usage: { completion_tokens: 2 },
    });
  });

  it("is steered by the path, by the model's name and by the prompt, the later one first", async () => {
    expect((await ask("status/500/", {})).status).toBe(500);
    expect((await ask("status/500/", { model: "status/429" })).status).toBe(429);
    expect((await ask("status/500/", { model: "status/429", prompt: "a {{status/503}}" })).status).toBe(503);
  });

  it("fails the first sends of each prompt only", async () => {
    const send = async (prompt: string) => (await ask("status/503/first/2/", { prompt })).status;
    expect([await send("p"), await send("p"), await send("q"), await send("p")]).toEqual([503, 503, 503, 200]);
  });

  it("sends a Retry-After that it is told to", async () => {
    expect((await ask("status/429/retry-after/7/", {})).headers.get("retry-after")).toBe("7");
  });

  it("passes a barrier when enough calls wait at once, and answers 504 when not", async () => {
    const together = await Promise.all(Array.from({ length: 32 }, () => ask("barrier/32/", {})));
    expect(together.map(({ status }) => status)).toEqual(Array.from({ length: 32 }, () => 200));
    const alone = await Promise.all(Array.from({ length: 31 }, () => ask("barrier/32/within/100/", {})));
    expect(new Set(alone.map(({ status }) => status))).toEqual(new Set([504]));
  });

  it("counts requests, peak, sends of each prompt and API keys apart for each key", async () => {
    await Promise.all(["a", "b", "a"].map((prompt) => ask("key/counted/delay/30/", { prompt })));
    const stats = await fetch(`${HOST}/stats?key=counted`).then((answer) => answer.json<Stats>());
    expect(stats).toMatchObject({
      requests: 3,
      inFlight: 0,
      peakInFlight: 3,
      sends: { a: 2, b: 1 },
      apiKeys: ["the-key"],
    });
  });

  it("breaks the connection in the middle of a body on fault/reset", async () => {
    const answer = await post("fault/reset/", {});
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });

  it("counts the connections that are closed before their answer, and no other", async () => {
    const closed = async (): Promise<number> => {
      const response = await fetch(`${HOST}/stats?key=closed`);
      return (await response.json<Stats>()).closed;
    };
    await ask("key/closed/delay/20/", {});
    expect(await closed()).toBe(0);
    const caller = new AbortController();
    const left = post("key/closed/delay/3000/", {}, caller.signal).catch(() => null);
    await scheduler.wait(100);
    expect(await closed()).toBe(0);
    caller.abort();
    expect(await left).toBeNull();
    await expect.poll(closed).toBe(1);
  });

  it("leaves the usage out on fault/no-usage", async () => {
    expect((await ask("fault/no-usage/", {})).body).not.toHaveProperty("usage");
  });
});

type Asked = { prompt?: string; model?: string; max_tokens?: number };

function post(
  words: string,
  { prompt = "hello", model = "test-small", max_tokens }: Asked,
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(`${HOST}/${words}v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer the-key", "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens, messages: [{ role: "user", content: prompt }] }),
    signal,
  });
}

async function ask(words: string, asked: Asked) {
  const answer = await post(words, asked);
  const body: unknown = await answer.json();
  return { status: answer.status, headers: answer.headers, body };
}
