import { describe, expect, it } from "vitest";
import type { Stats } from "../support/upstream-worker.ts";

const HOST = "http://upstream-self-test.test";

describe("the upstream of the tests", () => {
  it("echoes the prompt, with usage that matches the text", async () => {
    const { status, body } = await postForJson("", { prompt: "five words, and some more" });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      choices: [{ message: { content: "five words, and some more" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
    });
  });

  it("cuts the completion at the cap with finish_reason length", async () => {
    const { body } = await postForJson("", { prompt: "abcdefghijkl", max_tokens: 2 });
    expect(body).toMatchObject({
      choices: [{ message: { content: "abcdefgh" }, finish_reason: "length" }],
      usage: { completion_tokens: 2 },
    });
  });

  it("is controlled by the path, the model's name and the prompt, in increasing precedence", async () => {
    expect((await postForJson("status/500/", {})).status).toBe(500);
    expect((await postForJson("status/500/", { model: "status/429" })).status).toBe(429);
    expect((await postForJson("status/500/", { model: "status/429", prompt: "a {{status/503}}" })).status).toBe(503);
  });

  it("fails the first sends of each prompt only", async () => {
    const send = async (prompt: string) => (await postForJson("status/503/first/2/", { prompt })).status;
    expect([await send("p"), await send("p"), await send("q"), await send("p")]).toEqual([503, 503, 503, 200]);
  });

  it("fails until the test has opened a latch", async () => {
    const send = async () => (await postForJson("status/401/until/repaired/", {})).status;
    expect([await send(), await send()]).toEqual([401, 401]);
    await fetch(`${HOST}/open?latch=repaired`, { method: "POST" });
    expect(await send()).toBe(200);
  });

  it("sends the Retry-After that the path names", async () => {
    expect((await postForJson("status/429/retry-after/7/", {})).headers.get("retry-after")).toBe("7");
  });

  it("passes a barrier when enough calls wait at once, and answers 504 when not", async () => {
    const together = await Promise.all(Array.from({ length: 32 }, () => postForJson("barrier/32/", {})));
    expect(together.map(({ status }) => status)).toEqual(Array.from({ length: 32 }, () => 200));
    const alone = await Promise.all(Array.from({ length: 31 }, () => postForJson("barrier/32/within/100/", {})));
    expect(new Set(alone.map(({ status }) => status))).toEqual(new Set([504]));
  });

  it("answers at a latch once the test has opened it, and at once from then on", async () => {
    const waiting = Promise.all([postForJson("latch/first/", {}), postForJson("key/other/latch/first/", {})]);
    await expect.poll(async () => (await statsOf("other")).inFlight).toBe(1);
    await fetch(`${HOST}/open?latch=first`, { method: "POST" });
    expect((await waiting).map(({ status }) => status)).toEqual([200, 200]);
    expect((await postForJson("latch/first/", {})).status).toBe(200);
  });

  it("counts requests, peak, sends of each prompt and API keys apart for each key", async () => {
    await Promise.all(["a", "b", "a"].map((prompt) => postForJson("key/counted/delay/30/", { prompt })));
    expect(await statsOf("counted")).toMatchObject({
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
    const closed = async (): Promise<number> => (await statsOf("closed")).closed;
    await postForJson("key/closed/delay/20/", {});
    expect(await closed()).toBe(0);
    const caller = new AbortController();
    const left = post("key/closed/latch/never/", {}, caller.signal).catch(() => null);
    await expect.poll(async () => (await statsOf("closed")).inFlight).toBe(1);
    expect(await closed()).toBe(0);
    caller.abort();
    expect(await left).toBeNull();
    await expect.poll(closed).toBe(1);
  });

  it("leaves the usage out on fault/no-usage", async () => {
    expect((await postForJson("fault/no-usage/", {})).body).not.toHaveProperty("usage");
  });
});

type Completion = { prompt?: string; model?: string; max_tokens?: number };

async function statsOf(key: string): Promise<Stats> {
  return (await fetch(`${HOST}/stats?key=${key}`)).json();
}

function post(
  words: string,
  { prompt = "hello", model = "test-small", max_tokens }: Completion,
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(`${HOST}/${words}v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer the-key", "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens, messages: [{ role: "user", content: prompt }] }),
    signal,
  });
}

async function postForJson(words: string, request: Completion) {
  const answer = await post(words, request);
  const body: unknown = await answer.json();
  return { status: answer.status, headers: answer.headers, body };
}
