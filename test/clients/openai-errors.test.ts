/** What OpenAI's own client throws, how often it tries again, and what of it costs money. */
import OpenAI, {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { all, PROVIDER_KEY, startClients, thrownBy, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
let openai: OpenAI;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
  openai = clientOf(run);
});
afterAll(() => clients.stop());

/** Posts that the client has sent, by its own count. */
let sends = 0;

function clientOf({ token }: { token: string }, maxRetries = 2): OpenAI {
  sends = 0;
  const counting: typeof fetch = (...request) => {
    sends += 1;
    return fetch(...request);
  };
  return new OpenAI({ baseURL: clients.baseUrl, apiKey: token, maxRetries, fetch: counting });
}

const chat = (client: OpenAI, model: string, content = "x") =>
  client.chat.completions.create({ model, messages: [{ role: "user", content }] });
const chatStream = async (client: OpenAI, model: string) =>
  all(await client.chat.completions.create({ model, messages: [{ role: "user", content: "a b c" }], stream: true }));

/** The fields of a thrown error of any class. */
function told(error: unknown) {
  if (!(error instanceof APIError)) return expect.fail(`not an APIError: ${String(error)}`);
  expect(JSON.stringify([error.message, error.error, [...(error.headers ?? [])]])).not.toContain(PROVIDER_KEY);
  const { status, code, type, param, message } = error;
  return { status, code, type, param, message };
}

describe("an error of the provider", () => {
  it("that the request caused keeps its status and message, is sent once and costs nothing", async () => {
    const error = await thrownBy(chat(openai, "up/picky"));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(told(error)).toMatchObject({
      ...{ status: 400, code: "too_hot", type: "invalid_request_error", param: "temperature" },
      message: expect.stringContaining("temperature: too hot"),
    });
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
    expect(await run.spentNanoUsd()).toBe(0);
  });

  it.each([
    ["raw-404", NotFoundError, 404],
    ["raw-422", APIError, 422],
    ["raw-402", APIError, 402],
  ])("%s is passed on", async (model, type, status) => {
    // 402 stops the calls of a key: of one that no other test uses.
    const upstream = status === 402 ? "raw-402" : "up";
    const error = await thrownBy(chat(openai, `${upstream}/${model}`));
    expect(error).toBeInstanceOf(type);
    expect(told(error)).toMatchObject({ status, code: "model_crashed" });
    expect(sends).toBe(1);
  });

  it.each(["raw-401", "raw-403"])(
    "%s that mentions the gateway's key becomes 502, and is not retried",
    async (model) => {
      const error = await thrownBy(chat(openai, `${model}/${model}`));
      expect(error).toBeInstanceOf(InternalServerError);
      expect(told(error)).toMatchObject({ status: 502, code: "upstream_error", type: "upstream_error" });
      expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
    },
  );

  it("about a wrong key contains no key", async () => {
    const error = await thrownBy(chat(openai, "locked/echo"));
    expect(told(error)).toMatchObject({ status: 502, message: expect.stringContaining("[redacted]") });
    expect(told(error).message).not.toContain("aa11bb22cc33dd44");
  });

  it.each(["limited-once", "busy-once"])("%s is retried by the gateway, unnoticed by the client", async (model) => {
    const completion = await chat(openai, `up/${model}`, `${model} once`);
    expect(completion.choices[0]?.message.content).toBe(`${model} once`);
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 2]);
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
    expect(await run.attempts(2)).toMatchObject([{ estimated: false }, { estimated: false, outcome: "success" }]);
  });

  it("before the first byte of a stream is retried, or thrown as in a call without streaming", async () => {
    const chunks = await chatStream(openai, "up/busy-once");
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("a b c");
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 2]);
    const error = await thrownBy(chatStream(openai, "up/picky"));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(told(error)).toMatchObject({ status: 400, code: "too_hot", param: "temperature" });
    expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
  });

  it("that persists uses up the gateway's attempts, then the client's, and is thrown as 503", async () => {
    const error = await thrownBy(chat(clientOf(run, 0), "up/busy"));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(told(error)).toMatchObject({ status: 503, code: "busy", message: expect.stringContaining("busy") });
    if (!(error instanceof InternalServerError)) return;
    expect([error.headers.get("retry-after"), error.headers.get("retry-after-ms")]).toEqual(["10", "10000"]);
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 3]);
    expect(await run.spentNanoUsd()).toBe(0);
  });

  it("with a Retry-After above the limit is thrown as 429 with that retry-after", async () => {
    const error = await thrownBy(chat(clientOf(run, 0), "up/limited"));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(told(error)).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "rate_limit_error" });
    if (!(error instanceof RateLimitError)) return;
    expect([error.headers.get("retry-after"), error.headers.get("retry-after-ms")]).toEqual(["120", "120000"]);
    expect(error.requestID).toMatch(/^[A-Za-z0-9_-]{8,64}$/);
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
  });

  it("of a rate limit is not retried by the client if the gateway makes one attempt", async () => {
    const error = await thrownBy(chat(openai, "once/limited-once", "by the client"));
    expect(error).toBeInstanceOf(RateLimitError);
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
  });

  it("that is an HTML page or empty is an error of its status", async () => {
    const page = await thrownBy(chat(clientOf(run, 0), "once/raw-html"));
    expect(page).toBeInstanceOf(InternalServerError);
    expect(told(page)).toMatchObject({ status: 502, message: expect.stringContaining("an HTML or XML page") });
    const nothing = await thrownBy(chat(clientOf(run, 0), "once/raw-mute"));
    expect(told(nothing)).toMatchObject({ status: 500, code: "upstream_error" });
    expect(await run.spentNanoUsd()).toBe(0);
  });

  it("by a timeout is a timeout error, charged as an estimate", async () => {
    const error = await thrownBy(chat(clientOf(run, 0), "impatient/raw-hang"));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(told(error)).toMatchObject({
      status: 504,
      code: "upstream_timeout",
      message: expect.stringContaining("1500 ms"),
    });
    await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
    expect(await run.attempts(1)).toMatchObject([{ outcome: "unknown", estimated: true }]);
  });

  it("by cancelling the run is a conflict, which this client would retry by default", async () => {
    const asked = thrownBy(chat(openai, "up/raw-hang"));
    await expect.poll(() => clients.provider.exchanges.length).toBe(1);
    await run.fetch(`/runs/${run.id}`, { method: "DELETE" });
    const error = await asked;
    expect(error).toBeInstanceOf(ConflictError);
    expect(told(error)).toMatchObject({ status: 409, code: "cancelled" });
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
    await expect.poll(() => clients.provider.exchanges[0]?.leftAtMs ?? null).not.toBeNull();
  });

  it("inside a 200 is still thrown, and costs nothing", async () => {
    const error = await thrownBy(chat(clientOf(run, 0), "broke/raw-error-200"));
    expect(error).toBeInstanceOf(APIError);
    expect(told(error).message).toContain("no credits left");
    await run.attempts(1);
  });

  it("in the form of a truncated answer is charged as an estimate, and the whole call is retried", async () => {
    const error = await thrownBy(chat(clientOf(run, 0), "up/raw-half"));
    expect(error).toBeInstanceOf(APIError);
    const attempts = await run.attempts(3);
    expect(attempts).toMatchObject([{ estimated: true }, { estimated: true }, { estimated: true }]);
    expect(await run.spentNanoUsd()).toBeGreaterThan(0);
  });
});

describe("a stream that fails", () => {
  it.each([
    ["up/raw-error", "model_crashed", "fell over"],
    ["up/raw-eof", "upstream_truncated", "broke off"],
    ["up/raw-reset", "upstream_truncated", "broke off"],
    ["up/cut-short", "upstream_truncated", "broke off"],
    ["up/cut-late", "upstream_truncated", "broke off"],
    ["impatient/raw-stalled", "upstream_timeout", "1500 ms"],
  ])("%s throws, is charged as an estimate and is sent once", async (model, code, words) => {
    const error = await thrownBy(chatStream(openai, model));
    expect(error).toBeInstanceOf(APIError);
    expect(told(error)).toMatchObject({ code, message: expect.stringContaining(words) });
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 1]);
    expect(await run.attempts(1)).toMatchObject([{ outcome: "unknown", estimated: true }]);
    expect(await run.spentNanoUsd()).toBeGreaterThanOrEqual(clients.provider.billedNanoUsd());
    expect(await run.spentNanoUsd()).toBeGreaterThan(0);
  });

  it("delivers what arrived before the failure", async () => {
    const messages = [{ role: "user" as const, content: "x" }];
    const stream = await openai.chat.completions.create({ model: "up/raw-eof", messages, stream: true });
    let text = "";
    const reading = (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    })();
    await thrownBy(reading);
    expect(text).toBe("Zürich");
  });

  it.each([
    ["raw-error", /fell over/],
    ["raw-eof", /broke off/],
  ])("%s of the Responses API throws too", async (model, words) => {
    const stream = openai.responses.stream({ model: `up/${model}`, input: "x" });
    await thrownBy(stream.finalResponse());
    const raw = await openai.responses.create({ model: `up/${model}`, input: "x", stream: true });
    // Version 6 hands the error event out, version 7 throws it.
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const event of raw) seen.push(event);
    })();
    if (process.env["OPENAI_MAJOR"] === "6") {
      await reading;
      expect(seen.at(-1)).toMatchObject({ type: "error", message: expect.stringMatching(words) });
    } else {
      expect(told(await thrownBy(reading)).message).toMatch(words);
    }
    expect(await run.attempts(2)).toMatchObject([{ estimated: true }, { estimated: true }]);
  });
});

describe("a refusal of the gateway", () => {
  it("without a valid token is an authentication error", async () => {
    const error = await thrownBy(chat(clientOf({ token: `${run.token}x` }), "up/echo"));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(told(error)).toMatchObject({ status: 401, code: "invalid_api_key", type: "authentication_error" });
    expect(sends).toBe(1);
  });

  it.each(["close", "cancel"])("of a run that has ended (%s) is an authentication error", async (how) => {
    await (how === "close"
      ? run.fetch(`/runs/${run.id}/close`, { method: "POST" })
      : run.fetch(`/runs/${run.id}`, { method: "DELETE" }));
    const error = await thrownBy(chat(openai, "up/echo"));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(told(error)).toMatchObject({ status: 401, code: "invalid_api_key" });
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 0]);
  });

  it("names the model that the run may not use, or that no upstream serves", async () => {
    const narrow = clientOf(await clients.openRun({ models: ["up/vendor/*"] }));
    const forbidden = await thrownBy(chat(narrow, "up/echo"));
    expect(forbidden).toBeInstanceOf(PermissionDeniedError);
    expect(told(forbidden)).toMatchObject({
      status: 403,
      code: "model_not_allowed",
      message: expect.stringContaining("up/echo"),
    });
    expect((await chat(narrow, "up/vendor/model")).model).toBe("vendor/model");
  });

  it("of an unknown route is a 404, and is not retried", async () => {
    const error = await thrownBy(openai.images.generate({ prompt: "a cat" }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(told(error)).toMatchObject({
      code: "not_found",
      message: expect.stringContaining("/v1/images/generations"),
    });
    expect(sends).toBe(1);
  });

  it("of an invalid body names the field", async () => {
    const error = await thrownBy(openai.post("/chat/completions", { body: { model: "up/echo", messages: "hi" } }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(told(error)).toMatchObject({ status: 400, param: "messages", code: "invalid_request" });
    expect(sends).toBe(1);
  });

  it.each([
    [{ usd: 0.00001 }, /^402 Budget exceeded: \$0\.00 spent, limit is \$0\.00001/],
    [{ calls: 0 }, /^402 Global call budget exceeded: 0 spent, limit is 0/],
    [{ prompt_tokens: 5 }, /^402 Prompt token budget exceeded: 0 spent, limit is 5/],
    [{ completion_tokens: 5 }, /^402 Completion token budget exceeded: 0 spent, limit is 5/],
  ])("of a budget %j has the message that agents match, and is sent once", async (budget, words) => {
    const client = clientOf(await clients.openRun({ budget }));
    const error = await thrownBy(chat(client, "up/echo", "a prompt"));
    expect(told(error)).toMatchObject({
      ...{ status: 402, code: "budget_exhausted", type: "insufficient_quota" },
      message: expect.stringMatching(words),
    });
    expect([sends, clients.provider.exchanges.length]).toEqual([1, 0]);
  });

  it("of a parameter that the budget cannot bound names it; without that limit it passes", async () => {
    const free = clientOf(await clients.openRun({ budget: { calls: 100 } }));
    const base = { model: "up/echo", messages: [{ role: "user" as const, content: "x" }] };
    const requests: [string, OpenAI.ChatCompletionCreateParamsNonStreaming][] = [
      ["web_search_options", { ...base, web_search_options: {} }],
      ["service_tier", { ...base, service_tier: "priority" }],
      ["prediction", { ...base, prediction: { type: "content", content: "y" } }],
      ["modalities", { ...base, modalities: ["text", "audio"], audio: { voice: "alloy", format: "mp3" } }],
    ];
    for (const [param, request] of requests) {
      const error = await thrownBy(openai.chat.completions.create(request));
      expect(told(error)).toMatchObject({ status: 400, param, code: "invalid_request" });
    }
    expect(clients.provider.exchanges).toEqual([]);
    for (const [, request] of requests) await free.chat.completions.create(request);
    expect(clients.provider.exchanges).toHaveLength(requests.length);
  });
});

describe("a cap", () => {
  it("is clamped to what the budget pays for, and reaches the provider clamped", async () => {
    // 59 bytes of body and a message's 8 tokens at $1, then at most 33 tokens at $2 per million.
    const poor = await clients.openRun({ budget: { completion_tokens: 33 } });
    const client = clientOf(poor);
    const messages = [{ role: "user" as const, content: "x".repeat(400) }];
    const request = { model: "up/echo", messages, max_completion_tokens: 500 };
    const completion = await client.chat.completions.create(request);
    // In the field that this upstream reads.
    expect(clients.provider.exchanges[0]?.json).toEqual({ model: "echo", messages, max_tokens: 33 });
    expect(completion.usage?.completion_tokens).toBe(33);
    await poor.spentNanoUsd();
    const { completion_tokens } = await poor.budget();
    expect(completion_tokens).toEqual({ limit: 33, spent: 33, reserved: 0 });
  });

  it("is added if the client names none and a limit requires one", async () => {
    await chat(openai, "up/echo");
    expect(clients.provider.exchanges).toMatchObject([{ json: { max_tokens: 4_096 } }]);
  });
});

it("an unreachable gateway is a connection error", async () => {
  const nowhere = new OpenAI({ baseURL: "http://127.0.0.1:9/v1", apiKey: run.token, maxRetries: 0 });
  expect(await thrownBy(chat(nowhere, "up/echo"))).toBeInstanceOf(APIConnectionError);
});
