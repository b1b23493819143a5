/** What is refused: with a 4xx that names the field, and with nothing stored, reserved or sent. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, errorOf, startWorld, type RunAccess, type RunDocument, type World } from "./world.ts";

let world: World;
let run: RunAccess;
let before: RunDocument;

beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ name: "refused", budget: { usd: 1 }, models: ["up/*"], default_model: "up/small" });
});
beforeEach(async () => {
  before = await documentOf(run);
  world.upstream.forget();
});
afterEach(async () => {
  expect(await documentOf(run)).toEqual(before);
  expect(world.upstream.counters.requests).toBe(0);
});
afterAll(() => world.stop());

const json = { "content-type": "application/json" };
const text = { "content-type": "text/plain" };

describe.each(["/query", "/batch"])("POST %s refuses a body that", (path) => {
  it.each([
    ["is empty", "", "is empty"],
    ["is white space", " \n ", "is empty"],
    ["is no JSON", "prompt=hello", "line 1, column 1"],
    ["breaks off", '{"prompt":\n  "hel', "line 2"],
    ["has a trailing comma", '{"prompt":"a",}', "line 1, column 15"],
    ["is an array", '["a"]', "object"],
    ["is a text", '"a"', "object"],
    ["is null", "null", "object"],
  ])("%s", { tags: ["slow"] }, async (_, body, words) => {
    const error = errorOf(await run.send(path, { method: "POST", headers: json, body }));
    expect(error).toMatchObject({
      code: "invalid_request",
      type: "invalid_request_error",
      param: null,
      retryable: false,
    });
    expect(error.message).toContain(words);
  });

  it("is not UTF-8", async () => {
    const body = new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]);
    const error = errorOf(await run.send(path, { method: "POST", headers: json, body }));
    expect(error).toMatchObject({ code: "invalid_request", message: expect.stringContaining("UTF-8") });
  });

  it.each(["application/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])(
    "is declared as %s",
    async (type) => {
      const answer = await run.send(path, {
        method: "POST",
        headers: { "content-type": type },
        body: '{"prompt":"a"}',
      });
      expect([answer.status, errorOf(answer).code]).toEqual([415, "unsupported_media_type"]);
      expect(errorOf(answer).message).toContain(type.split(";")[0]);
    },
  );
});

/** Each is refused on `/query`, and as an item of a `/batch` under the item's path. */
const WRONG_CALLS: [string, Record<string, unknown>, string][] = [
  ["without a prompt", {}, "prompt"],
  ["whose prompt is a number", { prompt: 7 }, "prompt"],
  ["whose prompt is null", { prompt: null }, "prompt"],
  ["whose prompt is an array", { prompt: ["a"] }, "prompt"],
  ["whose prompt is an object", { prompt: { text: "a" } }, "prompt"],
  ["whose prompt holds NUL", { prompt: "a\0b" }, "prompt"],
  ["whose prompt holds half a character", { prompt: "a\ud800b" }, "prompt"],
  ["with both prompt and messages", { prompt: "a", messages: [{ role: "user", content: "a" }] }, "messages"],
  ["whose messages are empty", { messages: [] }, "messages"],
  ["whose messages are a text", { messages: "a" }, "messages"],
  ["whose message is a text", { messages: ["a"] }, "messages[0]"],
  ["whose message has no role", { messages: [{ content: "a" }] }, "messages[0].role"],
  ["whose message's content is a number", { messages: [{ role: "user", content: 1 }] }, "messages[0].content"],
  ["whose message holds half a character", { messages: [{ role: "user", content: "\udc00" }] }, "messages[0].content"],
  ["whose system text is a number", { prompt: "a", system: 1 }, "system"],
  ["whose system text holds NUL", { prompt: "a", system: "\0" }, "system"],
  ["whose model is empty", { prompt: "a", model: "" }, "model"],
  ["whose model is a number", { prompt: "a", model: 4 }, "model"],
  ["whose model holds a line break", { prompt: "a", model: "up/a\nb" }, "model"],
  ["whose model is 257 characters long", { prompt: "a", model: "m".repeat(257) }, "model"],
  ["whose max_tokens is 0", { prompt: "a", max_tokens: 0 }, "max_tokens"],
  ["whose max_tokens is a fraction", { prompt: "a", max_tokens: 1.5 }, "max_tokens"],
  ["whose max_tokens is a text", { prompt: "a", max_tokens: "5" }, "max_tokens"],
  ["whose temperature is negative", { prompt: "a", temperature: -1 }, "temperature"],
  ["whose timeout_ms is 0", { prompt: "a", timeout_ms: 0 }, "timeout_ms"],
  ["whose timeout_ms is above its bound", { prompt: "a", timeout_ms: 3_600_001 }, "timeout_ms"],
  ["whose priority has no meaning", { prompt: "a", priority: "urgent" }, "priority"],
  ["whose priority is above 4", { prompt: "a", priority: 5 }, "priority"],
  ["whose params are a list", { prompt: "a", params: [] }, "params"],
  ["that asks for two answers", { prompt: "a", params: { n: 2 } }, "params.n"],
  ["that passes another model on", { prompt: "a", params: { model: "dear" } }, "params.model"],
  ["that passes another cap on", { prompt: "a", params: { max_completion_tokens: 9 } }, "params.max_completion_tokens"],
  ["that passes stream on", { prompt: "a", params: { stream: true } }, "params.stream"],
  ["that passes 65 params on", { prompt: "a", params: manyParams(65) }, "params"],
  ["with a field from a later version: tier", { prompt: "a", tier: 1 }, "tier"],
  ["with a misspelt field", { prompt: "a", max_token: 5 }, "max_token"],
  ["with a field that objects inherit", { prompt: "a", constructor: 1 }, "constructor"],
];

describe("a call is refused", () => {
  it.each(WRONG_CALLS)("%s", async (_, call, param) => {
    const query = await run.send("/query", { json: call });
    expect([query.status, errorOf(query).param]).toEqual([400, param]);
    expect(errorOf(query).message).toContain(param);
    const batch = await run.send("/batch", { json: { items: [{ prompt: "fine" }, call] } });
    expect([batch.status, errorOf(batch).param]).toEqual([400, `items[1].${param}`]);
    expect(errorOf(batch).message).toContain(`items[1].${param}`);
  });

  it("with a field named __proto__, which is valid JSON", async () => {
    const error = errorOf(
      await run.send("/query", { method: "POST", headers: json, body: '{"prompt":"a","__proto__":{}}' }),
    );
    expect(error).toMatchObject({ code: "invalid_request", param: "__proto__" });
  });

  it.each([
    ["is empty", "", 400, "empty"],
    ["holds NUL", "a\0b", 400, "NUL"],
    ["is not UTF-8", new Uint8Array([0x61, 0xff]), 400, "UTF-8"],
  ])("whose text %s", async (_, body, status, words) => {
    const answer = await run.send("/query", { method: "POST", headers: text, body });
    expect(answer.status).toBe(status);
    expect(errorOf(answer).message).toContain(words);
  });
});

describe("a batch is refused", () => {
  it.each([
    ["without prompts and items", {}, "prompts"],
    ["with both", { prompts: ["a"], items: [{ prompt: "a" }] }, "items"],
    ["whose prompts are one text", { prompts: "abc" }, "prompts"],
    ["whose prompts are null", { prompts: null }, "prompts"],
    ["whose prompts hold a number", { prompts: ["a", 1] }, "prompts[1]"],
    ["whose prompts hold null", { prompts: [null] }, "prompts[0]"],
    ["whose prompts hold an object", { prompts: ["a", "b", { prompt: "c" }] }, "prompts[2]"],
    ["whose prompts hold NUL", { prompts: ["a", "\0"] }, "prompts[1]"],
    ["whose prompts hold half a character", { prompts: ["\udfff"] }, "prompts[0]"],
    ["whose items hold a text", { items: ["a"] }, "items[0]"],
    ["whose items are an object", { items: { prompt: "a" } }, "items"],
    ["whose item's id is a number", { items: [{ id: 1, prompt: "a" }] }, "items[0].id"],
    ["whose concurrency is 0", { prompts: ["a"], concurrency: 0 }, "concurrency"],
    ["whose concurrency is above 4,096", { prompts: ["a"], concurrency: 4_097 }, "concurrency"],
    ["whose concurrency is a text", { prompts: ["a"], concurrency: "8" }, "concurrency"],
    ["whose error_style is unknown", { prompts: ["a"], error_style: "loud" }, "error_style"],
    ["whose on_error is unknown", { prompts: ["a"], on_error: "retry" }, "on_error"],
    ["whose default is wrong", { prompts: ["a"], max_tokens: -1 }, "max_tokens"],
    ["whose default params are reserved", { prompts: ["a"], params: { n: 3 } }, "params.n"],
    ["with agents, which come later", { prompts: ["a"], agents: ["x"] }, "agents"],
    ["with n, which comes later", { prompts: ["a"], n: 2 }, "n"],
    ["whose on_budget is unknown", { prompts: ["a"], on_budget: "ignore" }, "on_budget"],
    ["with a deadline of no time", { prompts: ["a"], deadline_ms: 0 }, "deadline_ms"],
    ["whose dedupe is a text", { prompts: ["a"], dedupe: "true" }, "dedupe"],
    ["whose on_lost is unknown", { prompts: ["a"], on_lost: "ignore" }, "on_lost"],
    ["whose detach is a number", { prompts: ["a"], detach: 0 }, "detach"],
    ["whose item says whether it is shared", { items: [{ prompt: "a", dedupe: true }] }, "items[0].dedupe"],
  ])("%s", async (_, body, param) => {
    const answer = await run.send("/batch", { json: body });
    expect([answer.status, errorOf(answer).param]).toEqual([400, param]);
    expect(errorOf(answer).message).toContain(param);
  });

  it.each(["prompts", "items"])("with 50,001 %s", async (field) => {
    const call = field === "prompts" ? "a" : { prompt: "a" };
    const answer = await run.send("/batch", { json: { [field]: Array.from({ length: 50_001 }, () => call) } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, field]);
    expect(errorOf(answer).message).toMatch(/50001.*at most 50000/);
  });
});

describe("the gateway refuses as too large", () => {
  const large = "x".repeat(5 * 1024 * 1024);

  it("a prompt of 5 MB on /query, as JSON and as text", async () => {
    const answers = [
      await run.send("/query", { json: { prompt: large } }),
      await run.send("/query", { method: "POST", headers: text, body: large }),
    ];
    for (const answer of answers) {
      expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([
        413,
        "payload_too_large",
        "prompt",
      ]);
      expect(errorOf(answer).message).toContain("1500000 bytes");
    }
  });

  it("a prompt of 5 MB in a batch, and names its index", async () => {
    const prompts = await run.send("/batch", { json: { prompts: ["a", large] } });
    expect([prompts.status, errorOf(prompts).param]).toEqual([413, "prompts[1]"]);
    const items = await run.send("/batch", { json: { items: [{ prompt: "a" }, { prompt: large }] } });
    expect([items.status, errorOf(items).param]).toEqual([413, "items[1].prompt"]);
  });

  it("a body above 32 MiB with content-length", async () => {
    const answer = await run.send("/batch", {
      method: "POST",
      headers: json,
      body: new Uint8Array(BODY_BYTES_MAX + 1),
    });
    expect([answer.status, errorOf(answer).code]).toEqual([413, "payload_too_large"]);
    expect(errorOf(answer).message).toContain(String(BODY_BYTES_MAX));
  });

  it("a body of 64 MiB from a client that reads only after sending all of it", async () => {
    const answer = await run.send("/query", {
      method: "POST",
      headers: json,
      body: new Uint8Array(2 * BODY_BYTES_MAX),
    });
    expect([answer.status, errorOf(answer).code]).toEqual([413, "payload_too_large"]);
  });

  it("a body above 32 MiB without content-length", async () => {
    let left = BODY_BYTES_MAX + 1;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const size = Math.min(left, 1024 * 1024);
        if (size === 0) return controller.close();
        controller.enqueue(new Uint8Array(size).fill(0x20));
        left -= size;
      },
    });
    const answer = await run.send("/batch", { method: "POST", headers: json, body, duplex: "half" });
    expect([answer.status, errorOf(answer).code]).toEqual([413, "payload_too_large"]);
  });

  it("a body of one call above 10 MiB", async () => {
    for (const headers of [json, text]) {
      const answer = await run.send("/query", {
        method: "POST",
        headers,
        body: new Uint8Array(CALL_BODY_BYTES_MAX + 1),
      });
      expect([answer.status, errorOf(answer).code]).toEqual([413, "payload_too_large"]);
      expect(errorOf(answer).message).toContain(String(CALL_BODY_BYTES_MAX));
    }
  });
});

const BODY_BYTES_MAX = 32 * 1024 * 1024;
const CALL_BODY_BYTES_MAX = 10 * 1024 * 1024;

describe("JSON that is nested too deeply is refused", () => {
  it.each([
    ["/query", '{"prompt":'],
    ["/query", '{"prompt":"a","params":{"x":'],
    ["/batch", '{"prompts":['],
    ["/llm_query_batched", '{"prompts":['],
    ["/tool_call", '{"tool_name":"t","input":'],
    ["/log", '{"event_type":"mine","data":'],
    ["/v1/chat/completions", '{"model":"small","messages":['],
  ])("on %s after %s", async (path, start) => {
    const body = start + "[".repeat(1_000_000);
    const answer = await run.send(path, { method: "POST", headers: json, body });
    expect([answer.status, answer.text]).toEqual([400, expect.stringMatching(/nesting/)]);
  });
});

describe("an authorization header of many spaces", () => {
  it("does not delay the 401", async () => {
    // As long as the runtime's own server takes a header.
    const authorization = `Bearer a${" ".repeat(120_000)}b`;
    const answer = await fetch(`${world.gateway.url}/query`, { method: "POST", headers: { authorization } });
    await answer.text();
    expect([401, 431]).toContain(answer.status);
  });
});

describe("a model is refused", () => {
  it.each([
    ["that nothing serves", "nowhere-1", 404, "model_not_found"],
    ["of an upstream that is not configured", "gone/gpt", 404, "model_not_found"],
    ["that is an upstream's name and nothing more", "up/", 404, "model_not_found"],
    ["that the run may not use", "sim/echo", 403, "model_not_allowed"],
    ["that the run may not use, asked by its plain name", "echo", 403, "model_not_allowed"],
  ])("%s", async (_, model, status, code) => {
    const query = await run.send("/query", { json: { prompt: "a", model } });
    expect([query.status, errorOf(query).code]).toEqual([status, code]);
    expect(errorOf(query)).toMatchObject({ retryable: false, message: expect.stringContaining(`"${model}"`) });
    expect(query.headers.get("x-should-retry")).toBe("false");
    const batch = await run.send("/batch", { json: { prompts: ["a", "b"], model } });
    expect([batch.status, errorOf(batch).code]).toEqual([status, code]);
  });

  it("without a price, which no budget could bound", async () => {
    const any = await world.openRun();
    const answer = await any.send("/query", { json: { prompt: "a", model: "free/x" } });
    expect([answer.status, errorOf(answer).code]).toEqual([422, "unpriced_model"]);
    expect(await documentOf(any)).toMatchObject({ metrics: { attempts: 0 } });
  });
});

describe("a run is refused", () => {
  it.each([
    ["with an unknown field", { nmae: "x" }, "nmae"],
    ["with an unknown dimension", { budget: { eur: 1 } }, "budget.eur"],
    ["whose budget is a number", { budget: 1 }, "budget"],
    ["whose budget is negative", { budget: { usd: -0.01 } }, "budget.usd"],
    ["whose budget is a text", { budget: { usd: "1" } }, "budget.usd"],
    ["whose budget is above the bound", { budget: { usd: 1_000_001 } }, "budget.usd"],
    ["with half a call", { budget: { calls: 1.5 } }, "budget.calls"],
    ["that is wider than 4,096", { max_parallel: 4_097 }, "max_parallel"],
    ["that is deeper than 16", { max_depth: 17 }, "max_depth"],
    ["that never lives", { expires_in_s: 0 }, "expires_in_s"],
    ["that lives above 30 days", { expires_in_s: 2_592_001 }, "expires_in_s"],
    ["that may use no model", { models: [] }, "models"],
    ["whose models hold a number", { models: ["a", 1] }, "models[1]"],
    ["whose name holds a line break", { name: "a\nb" }, "name"],
    ["whose name is too long", { name: "n".repeat(257) }, "name"],
    ["whose window is above 10 s", { window_ms: 10_001 }, "window_ms"],
    ["whose error_style is unknown", { error_style: "loud" }, "error_style"],
    ["whose unpriced is unknown", { unpriced: "allow" }, "unpriced"],
    ["whose metadata is a list", { metadata: [] }, "metadata"],
    ["whose metadata is too large", { metadata: { a: "x".repeat(20_000) } }, "metadata"],
  ])("%s", async (_, body, param) => {
    const before = (await world.sendAsOperator("/runs")).text;
    const answer = await world.sendAsOperator("/runs", { json: body });
    expect([answer.status, errorOf(answer).param]).toEqual([400, param]);
    expect(errorOf(answer).message).toContain(param);
    expect((await world.sendAsOperator("/runs")).text).toBe(before);
  });

  it.each([
    ["a limit of 0", "?limit=0", "limit"],
    ["a limit of 101", "?limit=101", "limit"],
    ["a limit that is no number", "?limit=many", "limit"],
    ["an unknown parameter", "?page=2", "page"],
  ])("from being listed with %s", async (_, query, param) => {
    const answer = await world.sendAsOperator(`/runs${query}`);
    expect([answer.status, errorOf(answer).param]).toEqual([400, param]);
  });
});

function manyParams(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, index]));
}
