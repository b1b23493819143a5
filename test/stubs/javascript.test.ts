/** What the JavaScript stub has beyond the script for all stubs: items, aborting, hanging up, settings in code. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import type * as Stub from "../../stubs/typescript/fanout.d.mts";
import { ROOT } from "./language.ts";

const stub = (await import(pathToFileURL(join(ROOT, "stubs/javascript/fanout.mjs")).href)) as typeof Stub;

type Asked = { path: string; key: string | undefined; token: string | undefined; body: unknown };
type Answer = (response: ServerResponse, asked: Asked) => void;

/** A gateway that answers as the test says. It tells what it was asked, and how many connections were hung up. */
async function gateway(answer: Answer) {
  const seen = { asked: [] as Asked[], hungUp: 0 };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { url = "", method, headers } = request;
    const body = method === "POST" ? await json(request) : null;
    const asked = { path: url, key: headers["idempotency-key"]?.toString(), token: headers.authorization, body };
    seen.asked.push(asked);
    response.once("close", () => (seen.hungUp += response.writableFinished ? 0 : 1));
    answer(response, asked);
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  stub.configure({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    token: "t",
    timeoutS: 0.3,
  });
  return seen;
}

const slot = (index: number): string => `${JSON.stringify({ type: "slot", index, result: `${index}`, error: null })}\n`;
const completed = `${JSON.stringify({ type: "group_completed", status: "completed" })}\n`;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(() => stub.configure({ url: "", token: "", timeoutS: 0 }));

it("takes its settings from code where there are no variables", async () => {
  const seen = await gateway((response) => response.end('{"text":"a"}'));
  await expect(stub.llmQuery("p")).resolves.toBe("a");
  expect(seen.asked).toEqual([
    { path: "/base/query", key: expect.any(String), token: "Bearer t", body: { prompt: "p" } },
  ]);
});

it.each(["gateway.example", "ftp://gateway.example", "http://", "http://user:word@gateway.example", "http://h?q=1"])(
  "asks nothing of %s, which is no address of a gateway",
  async (url) => {
    stub.configure({ url, token: "t" });
    await expect(stub.llmQuery("p")).rejects.toMatchObject({ name: "FanoutError", code: "bad_url", status: null });
  },
);

it("asks an array as a batch, and items and messages as they are", async () => {
  const seen = await gateway((response) => response.end('{"results":["a","b"]}'));
  const messages = [{ role: "user", content: "b" }];
  await expect(stub.llmQuery(["a", "b"], { concurrency: 2 })).resolves.toEqual(["a", "b"]);
  await stub.llmQueryBatch(["a", messages], { idempotencyKey: "mine" });
  await stub.llmQueryBatch([{ prompt: "a", model: "m" }, { messages }]);
  expect(seen.asked.map(({ body }) => body)).toEqual([
    { prompts: ["a", "b"], concurrency: 2 },
    { items: [{ prompt: "a" }, { messages }] },
    { items: [{ prompt: "a", model: "m" }, { messages }] },
  ]);
  expect(seen.asked[1]?.key).toBe("mine");
});

it("refuses a text where a list belongs: each letter would be paid for", async () => {
  const seen = await gateway((response) => response.end());
  await expect(stub.llmQueryBatch("text" as never)).rejects.toThrow(TypeError);
  await expect(stub.llmStream("text" as never).next()).rejects.toThrow(TypeError);
  expect(seen.asked).toEqual([]);
});

it("ends an aborted call at once, with the reason of its signal", async () => {
  const seen = await gateway(() => undefined);
  const controller = new AbortController();
  const asking = stub.llmQuery("p", { signal: controller.signal });
  await vi.waitFor(() => expect(seen.asked).toHaveLength(1));
  controller.abort(new Error("enough"));
  await expect(asking).rejects.toThrow("enough");
  await vi.waitFor(() => expect(seen.hungUp).toBe(1));
  await expect(stub.llmQueryBatch(["p"], { signal: controller.signal })).rejects.toThrow("enough");
  expect(seen.asked).toHaveLength(1);
});

it("hangs up where a loop over a stream is left", async () => {
  const seen = await gateway((response) => void response.write(slot(1) + slot(0)));
  for await (const { index } of stub.llmStream(["a", "b", "c"])) if (index === 1) break;
  await vi.waitFor(() => expect(seen.hungUp).toBe(1));
  expect(seen.asked).toHaveLength(1);
});

it("does not take a slow reader for a silent gateway, nor white space for silence", async () => {
  await gateway((response) => {
    response.write(slot(0));
    const beats = setInterval(() => response.write("\n"), 100);
    setTimeout(() => (clearInterval(beats), response.end(slot(1) + completed)), 1_000);
  });
  const stream = stub.llmStream(["a", "b"]);
  await expect(stream.next()).resolves.toMatchObject({ value: { index: 0 } });
  await sleep(600);
  await expect(stream.next()).resolves.toMatchObject({ value: { index: 1 } });
  await expect(stream.next()).resolves.toMatchObject({ done: true, value: { type: "group_completed" } });
});

it("bears one silence in all where the runtime's own fetch gives it up, and a new one where a connection is lost", async () => {
  await gateway(() => undefined);
  const own = Object.assign(new TypeError("fetch failed"), { cause: { code: "UND_ERR_HEADERS_TIMEOUT" } });
  const lost = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
  let failure = own;
  const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(async (_url, init) => {
    await sleep(200);
    throw init?.signal?.aborted ? init.signal.reason : failure;
  });
  onTestFinished(() => fetched.mockRestore());
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "timeout", status: null, retryable: true });
  expect(fetched).toHaveBeenCalledTimes(2);
  failure = lost;
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "unreachable", cause: lost });
  expect(fetched).toHaveBeenCalledTimes(7);
});

it("gives each slot whole, however the stream is cut into pieces", async () => {
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

it("asks again for a stream that broke off or ended too soon, and gives each slot once", async () => {
  const answers: Answer[] = [
    (response) => void (response.write(slot(0)), setTimeout(() => response.destroy(), 50)),
    (response) => response.end(`${slot(0)}${slot(1)}{"type":"slo`),
    (response) => response.end(slot(0) + slot(1) + slot(2) + completed),
  ];
  const seen = await gateway((response, asked) => answers.shift()?.(response, asked));
  const given = [];
  for await (const { index } of stub.llmStream(["a", "b", "c"])) given.push(index);
  expect(given).toEqual([0, 1, 2]);
  expect([seen.asked.length, new Set(seen.asked.map(({ key }) => key)).size]).toEqual([3, 1]);
});

it("tells a failure that came after the headers, and a tool's error, which is only a text", async () => {
  const error = { message: "m", code: "budget_exhausted", retryable: false };
  const answers = ["  \n" + JSON.stringify({ error }), `${JSON.stringify({ type: "error", error })}\n`];
  await gateway((response, { path }) => {
    if (path !== "/base/tool_call") return response.end(answers.shift());
    return response.writeHead(408, { "retry-after-ms": "250" }).end('{"error":"too slow"}');
  });
  const told = { message: "m", code: "budget_exhausted", status: null, retryable: false };
  await expect(stub.llmQueryBatch(["p"])).rejects.toMatchObject(told);
  await expect(stub.llmStream(["p"]).next()).rejects.toMatchObject(told);
  const late = { message: "too slow", code: "tool_error", status: 408, retryable: true, retryAfterMs: 250 };
  await expect(stub.toolCall("search", { q: "x" })).rejects.toMatchObject(late);
});

it("follows no redirect that a browser hides, and does not ask again", async () => {
  await gateway(() => undefined);
  // What a page gets to see of it: status 0, no body.
  const fetched = vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.error());
  onTestFinished(() => fetched.mockRestore());
  await expect(stub.llmQuery("p")).rejects.toMatchObject({ code: "bad_answer", status: null, retryable: false });
  await expect(stub.llmStream(["p"]).next()).rejects.toMatchObject({ code: "bad_answer", status: null });
  expect(fetched.mock.calls.map(([, init]) => init?.redirect)).toEqual(["manual", "manual"]);
});

it("asks once what might do something twice", async () => {
  const seen = await gateway((response) => response.destroy());
  const lost = { code: "unreachable", retryable: true };
  await expect(stub.toolCall("search", {})).rejects.toMatchObject(lost);
  await expect(stub.llmLog("x")).rejects.toMatchObject(lost);
  await expect(stub.llmUsage({ reset: true })).rejects.toMatchObject(lost);
  expect(seen.asked.map(({ path, key }) => [path, key])).toEqual([
    ["/base/tool_call", undefined],
    ["/base/log", undefined],
    ["/base/usage?reset=1", undefined],
  ]);
});

it("leaves a result that is no text as its JSON and as itself", async () => {
  const seen = await gateway((response) => response.writeHead(201).end('{"object":"log","appended":1,"seq":1}'));
  await expect(stub.FINAL({ a: [1] })).resolves.toBeUndefined();
  expect(seen.asked[0]?.body).toEqual({ event_type: "final_result", output: '{"a":[1]}', data: { a: [1] } });
});
