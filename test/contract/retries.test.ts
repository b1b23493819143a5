/** What the gateway does when the provider fails, seen from both sides: the client's answer and the provider's count. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  answerOf,
  documentOf,
  errorOf,
  groupOf,
  PROVIDER_KEY,
  replyOf,
  startOwnGateway,
  startWorld,
  type RunAccess,
  type World,
} from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 16 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const sends = () => world.upstream.counters.requests;
const send = (prompt: string, body: Record<string, unknown> = {}) => run.send("/query", { json: { prompt, ...body } });
/** The same at a key of its own, which the provider may limit or refuse. */
const sendAside = (prompt: string) => send(prompt, { model: world.modelAside() });

describe("a call is retried", () => {
  it.each([
    ["429", "{{status/429/first/1}}"],
    ["500", "{{status/500/first/1}}"],
    ["503", "{{status/503/first/1}}"],
    ["408", "{{status/408/first/1}}"],
    ["a connection reset in the middle of the answer", "{{fault/reset/first/1}}"],
    ["truncated JSON", "{{fault/truncated/first/1}}"],
    ["an empty answer", "{{fault/empty/first/1}}"],
    ["an HTML page with status 200", "{{fault/html/first/1}}"],
    ["text that is no JSON", "{{fault/not-json/first/1}}"],
    ["an answer without choices", "{{fault/no-choices/first/1}}"],
  ])("after %s, and its answer has the number of attempts", async (_, prompt) => {
    expect(replyOf(await sendAside(prompt))).toMatchObject({ text: prompt, attempts: 2 });
    expect(sends()).toBe(2);
  });

  it("after two failures, and counted in the run's document", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const answer = await own.send("/query", { json: { prompt: "{{status/500/first/2}}" } });
    expect(replyOf(answer).attempts).toBe(3);
    expect((await documentOf(own)).metrics).toMatchObject({ attempts: 3, retries: 2 });
  });

  it("no sooner than the provider's Retry-After allows", { tags: ["slow"] }, async () => {
    const started = performance.now();
    expect(replyOf(await sendAside("{{status/429/retry-after/1/first/1}}")).attempts).toBe(2);
    expect(performance.now() - started).toBeGreaterThan(1_000);
  });

  it("in its own slot of a batch, while the other slots continue", { tags: ["slow"] }, async () => {
    const prompts = ["a", "{{status/503/first/1}} b", "{{fault/reset/first/2}} c", "d"];
    const group = groupOf(await run.send("/batch", { json: { prompts } }));
    expect(group.results).toEqual(prompts);
    expect(group.items.map(({ attempts }) => attempts)).toEqual([1, 2, 3, 1]);
    expect(sends()).toBe(7);
  });

  it("as one call: a coalescing window counts it once", async () => {
    const own = await world.openRun({ default_model: "up-1", window_ms: 5_000 });
    await own.send("/query", { json: { prompt: "{{status/500/first/1}}" } });
    expect((await documentOf(own)).stats).toMatchObject({ total_queries: 1, parallel_batches: 0 });
  });
});

describe("a call that keeps failing", () => {
  it("with 429 ends as 429 after three attempts, with retry-after", { tags: ["slow"] }, async () => {
    const answer = await sendAside("{{status/429/retry-after/1}}");
    expect([answer.status, errorOf(answer).code]).toEqual([429, "upstream_rate_limited"]);
    expect(errorOf(answer)).toMatchObject({ type: "rate_limit_error", retryable: true });
    expect([answer.headers.get("retry-after"), answer.headers.get("retry-after-ms")]).toEqual(["1", "1000"]);
    expect(errorOf(answer)).toMatchObject({ attempts: 3, charged_usd: 0 });
    const spent = ["x-should-retry", "x-fanout-attempts", "x-fanout-charged-usd"].map((name) =>
      answer.headers.get(name),
    );
    expect(spent).toEqual(["false", "3", "0"]);
    expect(sends()).toBe(3);
  });

  it("with 500 ends as 502 that names the provider's status", { tags: ["slow"] }, async () => {
    const answer = await send("{{status/500}}");
    expect([answer.status, errorOf(answer)]).toEqual([
      502,
      expect.objectContaining({ code: "upstream_error", status: 500, upstream: "up", retryable: true }),
    ]);
    expect(errorOf(answer).message).toContain("the upstream was told to answer 500");
    expect(sends()).toBe(3);
  });

  it.each([
    ["truncated", "upstream_truncated", 3],
    ["reset", "upstream_truncated", 3],
    ["html", "upstream_error", 3],
    ["error-200", "upstream_error", 1],
    ["huge", "upstream_error", 1],
  ])("with %s ends as 502 %s", { tags: ["slow"] }, async (fault, code, attempts) => {
    const answer = await send(`{{fault/${fault}}}`);
    expect([answer.status, errorOf(answer).code]).toEqual([502, code]);
    expect(sends()).toBe(attempts);
  });

  it("shows the attempts in its slot of a batch", { tags: ["slow"] }, async () => {
    const group = groupOf(await run.send("/batch", { json: { prompts: ["{{status/500}}", "{{status/404}}"] } }));
    expect(group.errors).toMatchObject([
      { code: "upstream_error", attempts: 3, charged_usd: 0, retryable: true },
      { code: "upstream_error", attempts: 1, charged_usd: 0, retryable: false },
    ]);
  });

  it("reports its charge in a single reply, in a slot of a batch and in a replay", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const call = { prompt: "{{status/504}}", max_tokens: 100 };
    const spentUsd = async () => (await documentOf(own)).budget.usd.spent;
    const alone = await own.send("/query", { json: call });
    const chargedUsd = await spentUsd();
    expect(chargedUsd).toBeGreaterThan(0.0006);
    expect(errorOf(alone)).toMatchObject({ attempts: 3, charged_usd: expect.closeTo(chargedUsd, 12) });
    expect(Number(alone.headers.get("x-fanout-charged-usd"))).toBeCloseTo(chargedUsd, 12);
    const group = groupOf(await own.send("/batch", { json: { items: [call] } }));
    expect(group.errors).toMatchObject([{ attempts: 3, charged_usd: expect.closeTo(chargedUsd, 12) }]);
    const named = { json: call, headers: { "idempotency-key": "k" } };
    for (const answer of [await own.send("/query", named), await own.send("/query", named)]) {
      expect(errorOf(answer)).toMatchObject({ attempts: 3, charged_usd: expect.closeTo(chargedUsd, 12) });
      expect(answer.headers.get("x-should-retry")).toBe("false");
    }
    expect(await spentUsd()).toBeCloseTo(3 * chargedUsd, 12);
  });

  it("does not stop a client from retrying what was never sent", async () => {
    const own = await world.openRun({ default_model: "up-1", max_parallel: 1 });
    const slow = own.send("/query", { json: { prompt: "{{latch/slow}} slow" } });
    await expect.poll(async () => (await documentOf(own)).budget.calls.reserved).toBe(1);
    const late = await own.send("/query", { json: { prompt: "late", deadline_ms: 100 } });
    expect(errorOf(late)).toMatchObject({ code: "deadline_exceeded", retryable: true });
    expect(errorOf(late)).not.toHaveProperty("attempts");
    expect([late.headers.get("x-should-retry"), late.headers.get("x-fanout-attempts")]).toEqual([null, null]);
    world.upstream.open("slow");
    replyOf(await slow);
  });
});

describe("a call is not retried", () => {
  it.each([400, 401, 403, 404, 422])("after %i, which a retry would only repeat", async (status) => {
    const answer = await sendAside(`{{status/${status}}}`);
    expect([answer.status, errorOf(answer).status, errorOf(answer).retryable]).toEqual([502, status, false]);
    expect(errorOf(answer)).toMatchObject({ upstream_code: `status_${status}`, attempts: 1 });
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(sends()).toBe(1);
  });

  it("if the provider's Retry-After exceeds the limit; the client gets that Retry-After", async () => {
    const own = await world.openRun({ default_model: world.modelAside() });
    const answer = await own.send("/query", { json: { prompt: "{{status/429/retry-after/91}}" } });
    expect([answer.status, answer.headers.get("retry-after"), sends()]).toEqual([429, "91", 1]);
  });

  it("after a Retry-After above the limit, which does not delay other calls of the run", async () => {
    const own = await world.openRun({ default_model: world.modelAside() });
    await own.send("/query", { json: { prompt: "{{status/429/retry-after/3600}}" } });
    const signal = AbortSignal.timeout(60_000);
    expect(replyOf(await own.send("/query", { json: { prompt: "next" }, signal })).text).toBe("next");
  });

  it("if the configuration allows one attempt", async () => {
    const once = {
      kind: "openai",
      base_url: world.upstream.baseUrl,
      prices: { "*": { input: 0, output: 0 } },
      max_attempts: 1,
    };
    const gateway = await startOwnGateway({ vars: { UPSTREAMS: { once }, DEFAULT_MODEL: "once/x" } });
    const { token } = await gateway.openRun();
    const answer = await answerOf(await gateway.fetch("/query", { token, json: { prompt: "{{status/500}}" } }));
    expect([answer.status, sends()]).toEqual([502, 1]);
  });
});

describe("a call that takes too long", () => {
  it("ends as 504 after its timeout_ms per attempt, and its connection is closed", { tags: ["slow"] }, async () => {
    const started = performance.now();
    const answer = await send("{{fault/hang}}", { timeout_ms: 800 });
    expect([answer.status, errorOf(answer)]).toEqual([
      504,
      expect.objectContaining({ code: "upstream_timeout", timeout_ms: 800, upstream: "up", retryable: true }),
    ]);
    expect(performance.now() - started).toBeGreaterThan(3 * 800);
    await expect.poll(() => world.upstream.counters).toMatchObject({ requests: 3, inFlight: 0, abandoned: 3 });
  });

  it("is charged at its reservation, because its cost is unknown", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: "up-1", budget: { calls: 10, usd: 1 } });
    const items = [{ prompt: "{{fault/hang/first/1}}", timeout_ms: 1_500, max_tokens: 100 }];
    const group = groupOf(await own.send("/batch", { json: { items } }));
    expect(group.items).toMatchObject([{ attempts: 2, estimated: true }]);
    const { calls, usd } = (await documentOf(own)).budget;
    expect(calls).toEqual({ limit: 10, spent: 2, reserved: 0, remaining: 8 });
    expect(usd.spent).toBeGreaterThan(0.0002);
  });
});

describe("a failure that is not billed", () => {
  it("costs nothing but one call per answered attempt", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: world.modelAside(), budget: { usd: 1, calls: 100 } });
    for (const prompt of ["{{status/400}}", "{{status/429/retry-after/0}}", "{{status/500}}"]) {
      await own.send("/query", { json: { prompt } });
    }
    expect((await documentOf(own)).budget).toMatchObject({
      usd: { spent: 0, reserved: 0, remaining: 1 },
      calls: { spent: 1 + 3 + 3, reserved: 0 },
    });
  });

  it("counts towards a limit of calls, which stops the next attempt", { tags: ["slow"] }, async () => {
    const own = await world.openRun({ default_model: "up-1", budget: { calls: 2 } });
    const answer = await own.send("/query", { json: { prompt: "{{status/500}}" } });
    expect([answer.status, errorOf(answer)]).toEqual([
      402,
      expect.objectContaining({ code: "budget_exhausted", dimension: "calls", limit: 2, spent: 2 }),
    ]);
    expect(sends()).toBe(2);
  });
});

describe("a failure that a provider may bill", () => {
  it.each([408, 504, 520, 522, 523, 524])(
    "with %i is retried, and each attempt stays charged",
    { tags: ["slow"] },
    async (status) => {
      const own = await world.openRun({ default_model: "up-1", budget: { usd: 1, calls: 100 } });
      // An answer shows the run what this model's template adds, so that every later attempt reserves the same.
      await own.send("/query", { json: { prompt: "Hello." } });
      const before = (await documentOf(own)).budget.usd.spent;
      const [once, thrice] = [{ on_lost: "fail" }, {}];
      await own.send("/query", { json: { prompt: `{{status/${status}}}`, max_tokens: 100, ...once } });
      expect(sends()).toBe(2);
      const reservation = (await documentOf(own)).budget.usd.spent - before;
      expect(reservation).toBeGreaterThan(0.0002);
      await own.send("/query", { json: { prompt: `{{status/${status}}}`, max_tokens: 100, ...thrice } });
      expect(sends()).toBe(5);
      const { usd, calls } = (await documentOf(own)).budget;
      expect(usd.spent).toBeCloseTo(before + 4 * reservation, 9);
      expect([usd.reserved, calls.spent]).toEqual([0, 5]);
    },
  );
});

describe("a provider that is unreachable", () => {
  it("is retried and then reported as 502", { tags: ["slow"] }, async () => {
    const gone = { kind: "openai", base_url: "http://127.0.0.1:1/v1", prices: { "*": { input: 1, output: 1 } } };
    const gateway = await startOwnGateway({ vars: { UPSTREAMS: { gone }, DEFAULT_MODEL: "gone/x" } });
    const { token } = await gateway.openRun();
    const answer = await answerOf(await gateway.fetch("/query", { token, json: { prompt: "p" } }));
    expect([answer.status, errorOf(answer)]).toEqual([
      502,
      expect.objectContaining({ code: "upstream_error", status: null, upstream: "gone", retryable: true }),
    ]);
  });
});

describe("the provider's key", () => {
  it("reaches the provider, and is in no reply, even if the provider quotes it", { tags: ["slow"] }, async () => {
    const seen: string[] = [];
    const indiscreet = createServer((request, response) => {
      const key = (request.headers.authorization ?? "").replace("Bearer ", "");
      seen.push(key);
      let body = "";
      request.on("data", (piece) => (body += piece));
      request.on("end", () => {
        const text = `you sent Bearer ${key} and ${key}, also as ${encodeURIComponent(key)}`;
        const refuses = body.includes("refuse");
        response.writeHead(refuses ? 401 : 200, { "content-type": "application/json", "x-key": key });
        const choices = [{ message: { role: "assistant", content: text }, finish_reason: key }];
        response.end(JSON.stringify(refuses ? { error: { message: text, code: key } } : { model: key, choices }));
      });
    });
    await new Promise<void>((resolve) => indiscreet.listen(0, "127.0.0.1", resolve));
    const { port } = indiscreet.address() as AddressInfo;
    const base_url = `http://127.0.0.1:${port}/v1`;
    const loud = { kind: "openai", base_url, api_key: "secret:PROVIDER_KEY", prices: { "*": { input: 0, output: 0 } } };
    const gateway = await startOwnGateway({ vars: { UPSTREAMS: { loud }, DEFAULT_MODEL: "loud/x", PROVIDER_KEY } });
    const { token } = await gateway.openRun();
    // Reading an answer fails if the key is in it.
    const read = async (path: string, json: unknown, accept = "application/json") =>
      answerOf(await gateway.fetch(path, { token, json, headers: { accept } }));
    expect(replyOf(await read("/query", { prompt: "quote" })).text).toContain("you sent Bearer [redacted]");
    await read("/batch", { prompts: ["quote"] });
    const refused = errorOf(await read("/query", { prompt: "refuse" }));
    expect(refused).toMatchObject({
      code: "upstream_error",
      status: 401,
      message: expect.stringContaining("[redacted]"),
    });
    // A key that is refused makes slots wait: they end with the provider's words at their deadline.
    const waiting = { prompts: ["quote", "refuse"], deadline_ms: 500 };
    await read("/batch", waiting);
    await read("/batch", waiting, "application/x-ndjson");
    expect(new Set(seen)).toEqual(new Set([PROVIDER_KEY]));
    expect(gateway.output()).not.toContain(PROVIDER_KEY);
    indiscreet.closeAllConnections();
    indiscreet.close();
  });
});
