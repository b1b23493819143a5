/** What only the JavaScript stub has: items, abort signals, closed connections, settings in code. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import type * as Stub from "../../stubs/typescript/fanout.d.mts";
import { ROOT } from "./language.ts";

const stub = (await import(pathToFileURL(join(ROOT, "stubs/javascript/fanout.mjs")).href)) as typeof Stub;

type Received = { path: string; key: string | undefined; token: string | undefined; body: unknown };
type Answer = (response: ServerResponse, received: Received) => void;

/**
 * A gateway that answers as the test specifies. It records its requests, and how many connections the client closed.
 * `timeoutS`: the silence after which the stub gives up, which only a test of that is to reach.
 */
async function gateway(answer: Answer, timeoutS = 60) {
  const seen = { received: [] as Received[], closedEarly: 0 };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { url = "", method, headers } = request;
    const body = method === "POST" ? await json(request) : null;
    const received = { path: url, key: headers["idempotency-key"]?.toString(), token: headers.authorization, body };
    seen.received.push(received);
    response.once("close", () => (seen.closedEarly += response.writableFinished ? 0 : 1));
    answer(response, received);
  };
  // A client that gives up breaks off what it was sending.
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  stub.configure({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    token: "t",
    timeoutS,
  });
  return seen;
}

const slot = (index: number): string => `${JSON.stringify({ type: "slot", index, result: `${index}`, error: null })}\n`;
const completed = `${JSON.stringify({ type: "group_completed", status: "completed" })}\n`;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(() => stub.configure({ url: "", token: "", timeoutS: 0 }));

it("uses settings from code if there are no variables", async () => {
  const seen = await gateway((response) => response.end('{"text":"a"}'));
  await expect(stub.llmQuery("p")).resolves.toBe("a");
  expect(seen.received).toEqual([
    { path: "/base/query", key: expect.any(String), token: "Bearer t", body: { prompt: "p" } },
  ]);
});

it("returns whole messages, of one call and of a batch, and sends tools where the gateway takes them", async () => {
  const message = { role: "assistant", content: null, tool_calls: [{ id: "c", function: { name: "f" } }] };
  const seen = await gateway((response, { path }) =>
    response.end(
      JSON.stringify(
        path === "/base/query" ? { text: "", message } : { results: ["", "[error] no"], items: [{ message }] },
      ),
    ),
  );
  const tools = [{ type: "function", function: { name: "f" } }];
  const messages = [{ role: "user", content: "hi" }];
  expect(await stub.llmMessage(messages, "m", { tools, params: { seed: 1 } })).toEqual(message);
  expect(await stub.llmMessage("p")).toEqual(message);
  expect(await stub.llmQueryBatch(["a", "b"], { tools })).toEqual([message, "[error] no"]);
  expect(await stub.llmQueryBatch(["a", "b"], { include: ["message"] })).toEqual([message, "[error] no"]);
  expect(seen.received.map(({ body }) => body)).toEqual([
    { messages, model: "m", include: ["message"], params: { seed: 1, tools } },
    { prompt: "p", include: ["message"] },
    { prompts: ["a", "b"], include: ["message"], params: { tools } },
    { prompts: ["a", "b"], include: ["message"] },
  ]);
});

it.each(["gateway.example", "ftp://gateway.example", "http://", "http://user:word@gateway.example", "http://h?q=1"])(
  "sends nothing to %s, which is not an address of a gateway",
  async (url) => {
    stub.configure({ url, token: "t" });
    await expect(stub.llmQuery("p")).rejects.toMatchObject({ name: "FanoutError", code: "bad_url", status: null });
  },
);

it("sends an array as a batch, and items and messages unchanged", async () => {
  const seen = await gateway((response) => response.end('{"results":["a","b"]}'));
  const messages = [{ role: "user", content: "b" }];
  await expect(stub.llmQuery(["a", "b"], { concurrency: 2 })).resolves.toEqual(["a", "b"]);
  await stub.llmQueryBatch(["a", messages], { idempotencyKey: "mine" });
  await stub.llmQueryBatch([{ prompt: "a", model: "m" }, { messages }]);
  expect(seen.received.map(({ body }) => body)).toEqual([
    { prompts: ["a", "b"], concurrency: 2 },
    { items: [{ prompt: "a" }, { messages }] },
    { items: [{ prompt: "a", model: "m" }, { messages }] },
  ]);
  expect(seen.received[1]?.key).toBe("mine");
});

it("sends a string in second place as the model, with or without options after it", async () => {
  const seen = await gateway((response) => response.end('{"text":"a","results":["a"]}'));
  await stub.llmQuery("p", "m");
  await stub.llmQuery("p", "m", { max_tokens: 5 });
  await stub.llmQuery(["p"], "m", { concurrency: 2 });
  await stub.llmQueryBatch(["p"], "m", { idempotencyKey: "mine" });
  await stub
    .llmStream(["p"], "m", { dedupe: true })
    .next()
    .catch(() => undefined);
  expect(seen.received.slice(0, 5).map(({ body }) => body)).toEqual([
    { prompt: "p", model: "m" },
    { prompt: "p", model: "m", max_tokens: 5 },
    { prompts: ["p"], model: "m", concurrency: 2 },
    { prompts: ["p"], model: "m" },
    { prompts: ["p"], model: "m", dedupe: true },
  ]);
  expect(seen.received[3]?.key).toBe("mine");
});

it("opens a child run with limits and settings, returns what its scope returns, and throws what its scope throws", async () => {
  const answer: Answer = (response) => response.end('{"id":"run_1","token":"child","status":"closed","text":"a"}');
  const seen = await gateway(answer);
  const settings = { usd: 0.05, name: "part", idempotencyKey: "mine" };
  await expect(stub.withRun(settings, async ({ id, llmQuery }) => [id, await llmQuery("p")])).resolves.toEqual([
    "run_1",
    "a",
  ]);
  const mistake = new TypeError("a mistake in the scope");
  await expect(stub.withRun({}, () => Promise.reject(mistake))).rejects.toBe(mistake);
  expect(seen.received.map(({ path, token, body }) => [path, token, body])).toEqual([
    ["/base/runs", "Bearer t", { name: "part", budget: { usd: 0.05 } }],
    ["/base/query", "Bearer child", { prompt: "p" }],
    ["/base/runs/run_1/close", "Bearer t", {}],
    ["/base/runs", "Bearer t", {}],
    ["/base/runs/run_1/close", "Bearer t", {}],
  ]);
  expect(seen.received[0]?.key).toBe("mine");
});

it("refuses a string instead of a list: each letter would be paid for", async () => {
  const seen = await gateway((response) => response.end());
  await expect(stub.llmQueryBatch("text" as never)).rejects.toThrow(TypeError);
  await expect(stub.llmQueryBatch(["a", NaN as never])).rejects.toThrow("prompts[1] is NaN, not a string");
  await expect(stub.llmStream("text" as never).next()).rejects.toThrow(TypeError);
  expect(seen.received).toEqual([]);
});

it("rejects an aborted call at once, with the reason of its signal", async () => {
  const seen = await gateway(() => undefined);
  const controller = new AbortController();
  const pending = stub.llmQuery("p", { signal: controller.signal });
  await expect.poll(() => seen.received.length).toBe(1);
  controller.abort(new Error("enough"));
  await expect(pending).rejects.toThrow("enough");
  await expect.poll(() => seen.closedEarly).toBe(1);
  await expect(stub.llmQueryBatch(["p"], { signal: controller.signal })).rejects.toThrow("enough");
  expect(seen.received).toHaveLength(1);
});

it("closes the connection if a loop over a stream is left", async () => {
  const seen = await gateway((response) => void response.write(slot(1) + slot(0)));
  for await (const { index } of stub.llmStream(["a", "b", "c"])) if (index === 1) break;
  await expect.poll(() => seen.closedEarly).toBe(1);
  expect(seen.received).toHaveLength(1);
});

it("does not count a slow reader or white space as silence", async () => {
  await gateway((response) => {
    response.write(slot(0));
    const beats = setInterval(() => response.write("\n"), 100);
    setTimeout(() => (clearInterval(beats), response.end(slot(1) + completed)), 5_000);
  }, 2);
  const stream = stub.llmStream(["a", "b"]);
  await expect(stream.next()).resolves.toMatchObject({ value: { index: 0 } });
  await sleep(3_000);
  await expect(stream.next()).resolves.toMatchObject({ value: { index: 1 } });
  await expect(stream.next()).resolves.toMatchObject({ done: true, value: { type: "group_completed" } });
});

it("continues one silence if the runtime's own fetch times out, and starts a new one if a connection is lost", async () => {
  await gateway(() => undefined, 2);
  const own = Object.assign(new TypeError("fetch failed"), { cause: { code: "UND_ERR_HEADERS_TIMEOUT" } });
  const lost = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
  let failure = own;
  let failsAfterMs = 1_200;
  const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(async (_url, init) => {
    await sleep(failsAfterMs);
    throw init?.signal?.aborted ? init.signal.reason : failure;
  });
  onTestFinished(() => fetched.mockRestore());
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "timeout", status: null, retryable: true });
  expect(fetched).toHaveBeenCalledTimes(2);
  failure = lost;
  failsAfterMs = 500;
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "unreachable", cause: lost });
  expect(fetched).toHaveBeenCalledTimes(7);
});

it("returns each slot whole, however the stream is split", async () => {
  const whole = Buffer.from(`\n${slot(0).replace('"0"', '"🦉 é"')}\n${slot(1)}${completed}`);
  await gateway((response) => {
    response.socket?.setNoDelay(true);
    void (async () => {
      for (const byte of whole) {
        response.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      response.end();
    })();
  });
  const results = [];
  for await (const { result } of stub.llmStream(["a", "b"])) results.push(result);
  expect(results).toEqual(["🦉 é", "1"]);
});

it("repeats a stream that broke off or ended too early, and returns each slot once", async () => {
  const answers: Answer[] = [
    (response) => void (response.write(slot(0)), setTimeout(() => response.destroy(), 50)),
    (response) => response.end(`${slot(0)}${slot(1)}{"type":"slo`),
    (response) => response.end(slot(0) + slot(1) + slot(2) + completed),
  ];
  const seen = await gateway((response, received) => answers.shift()?.(response, received));
  const given = [];
  for await (const { index } of stub.llmStream(["a", "b", "c"])) given.push(index);
  expect(given).toEqual([0, 1, 2]);
  expect([seen.received.length, new Set(seen.received.map(({ key }) => key)).size]).toEqual([3, 1]);
});

it("reports a failure after the headers, and a tool's error, which is only a text", async () => {
  const error = { message: "m", code: "budget_exhausted", retryable: false };
  const answers = ["  \n" + JSON.stringify({ error }), `${JSON.stringify({ type: "error", error })}\n`];
  await gateway((response, { path }) => {
    if (path !== "/base/tool_call") return response.end(answers.shift());
    return response.writeHead(408, { "retry-after-ms": "250" }).end('{"error":"too slow"}');
  });
  const expected = { message: "m", code: "budget_exhausted", status: null, retryable: false };
  await expect(stub.llmQueryBatch(["p"])).rejects.toMatchObject(expected);
  await expect(stub.llmStream(["p"]).next()).rejects.toMatchObject(expected);
  const late = { message: "too slow", code: "tool_error", status: 408, retryable: true, retryAfterMs: 250 };
  await expect(stub.toolCall("search", { q: "x" })).rejects.toMatchObject(late);
});

it("follows no redirect that a browser hides, and does not repeat the request", async () => {
  await gateway(() => undefined);
  // A page sees status 0 and no body.
  const fetched = vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.error());
  onTestFinished(() => fetched.mockRestore());
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "bad_answer", status: null, retryable: false });
  await expect(stub.llmStream(["p"]).next()).rejects.toMatchObject({ code: "bad_answer", status: null });
  expect(fetched.mock.calls.map(([, init]) => init?.redirect)).toEqual(["manual", "manual"]);
});

it("sends requests with effects once", async () => {
  const seen = await gateway((response) => response.destroy());
  const lost = { code: "unreachable", retryable: true };
  await expect(stub.toolCall("search", {})).rejects.toMatchObject(lost);
  await expect(stub.llmLog("x")).rejects.toMatchObject(lost);
  await expect(stub.llmUsage({ reset: true })).rejects.toMatchObject(lost);
  expect(seen.received.map(({ path, key }) => [path, key])).toEqual([
    ["/base/tool_call", undefined],
    ["/base/log", undefined],
    ["/base/usage?reset=1", undefined],
  ]);
});

it("records a result that is not a text as JSON text and as data", async () => {
  const seen = await gateway((response) => response.writeHead(201).end('{"object":"log","appended":1,"seq":1}'));
  await expect(stub.FINAL({ a: [1] })).resolves.toBeUndefined();
  expect(seen.received[0]?.body).toEqual({ event_type: "final_result", output: '{"a":[1]}', data: { a: [1] } });
});
