/** The requests to a provider's Message Batches, and what their answers mean. */
import { describe, expect, it } from "vitest";
import { lineOf } from "../../../../src/executors/provider-batch/lines.ts";
import { attemptOfMessageId, messageIdOf, messagePrefix } from "../../../../src/executors/provider-batch/message-id.ts";
import { providerAt } from "../../../../src/executors/provider-batch/provider.ts";
import { PROVIDER_CLOCK_MS } from "../../../../src/limits.ts";
import { makeLease, makeUpstream } from "../../providers/make.ts";

const TAG = `run_${"0123456789abcdef".repeat(4)}/70000/3/2`;
const PREFIX = messagePrefix(TAG);
const CREATED_MS = 1_763_712_000_000;
const LOST = { createdAtMs: CREATED_MS, count: 2, known: new Set(["msgbatch_known"]) };
const upstream = makeUpstream({ kind: "anthropic", baseUrl: "https://acme.test", apiKey: "sk-acme" });

type Reply = { status?: number; body?: unknown; text?: string } | "lost";

/** A provider that gives these replies in order, and the requests that it got. */
function at(...replies: Reply[]) {
  const requests: { method: string; url: string; body: unknown; headers: Headers }[] = [];
  const fetch = (url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = "GET", body, headers } = init;
    requests.push({ method, url: String(url), body, headers: new Headers(headers) });
    const reply = replies.shift();
    if (reply === undefined || reply === "lost") return Promise.reject(new TypeError("connection lost"));
    const { status = 200, body: sent = {}, text = JSON.stringify(sent) } = reply;
    return Promise.resolve(new Response(text, { status }));
  };
  const provider = providerAt(upstream, { fetch, now: () => 0, timeout: () => new AbortController().signal });
  return { provider, requests };
}

const counts = (fields: Record<string, number> = {}) => ({
  processing: 0,
  succeeded: 0,
  errored: 0,
  canceled: 0,
  expired: 0,
  ...fields,
});
const listed = (id: string, fields: Record<string, unknown> = {}) => ({
  id,
  processing_status: "ended",
  created_at: new Date(CREATED_MS).toISOString(),
  request_counts: counts({ succeeded: 2 }),
  ...fields,
});
const page = (data: unknown[], last: string | null = null) => ({
  body: { data, has_more: last !== null, last_id: last },
});
const result = (customId: string, of: object = { type: "canceled" }) =>
  JSON.stringify({ custom_id: customId, result: of });

async function linesFrom(text: string): Promise<unknown[]> {
  const got = await at({ text }).provider.lines("msgbatch_1", TAG);
  if (!got.ok) return expect.fail("no lines");
  const lines: unknown[] = [];
  for await (const line of got.value) lines.push(JSON.parse(line));
  return lines;
}

describe("the id of a request", () => {
  it("has at most 64 letters, digits and hyphens, and names its batch and its attempt", () => {
    const id = messageIdOf("9007199254740991.1", PREFIX);
    expect(id).toMatch(/^[a-zA-Z0-9-]{1,64}$/);
    expect(attemptOfMessageId(id, PREFIX)).toBe("9007199254740991.1");
    for (const other of ["/70000/3/1", "/70000/30/2", "/7000/3/2"]) {
      expect(attemptOfMessageId(id, messagePrefix(TAG.replace("/70000/3/2", other)))).toBeNull();
    }
    expect(attemptOfMessageId(`${PREFIX}1x`, PREFIX)).toBeNull();
  });

  it("is beside the params of the call, which name no endpoint", () => {
    const lease = makeLease({ attemptId: "65536.1", model: "claude-x", capTokens: 9 });
    const job = { lease, callJson: '{"prompt":"hi"}' };
    const line = lineOf(job, { defaultsJson: "{}", upstream, tag: TAG }) ?? expect.fail("no line");
    expect(JSON.parse(line)).toEqual({
      custom_id: `${PREFIX}65536`,
      params: { model: "claude-x", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
    });
  });
});

describe("a message batch", () => {
  it("is created of its requests, under the key and the version", async () => {
    const { provider, requests } = at({ body: { id: "msgbatch_1" } });
    expect(await provider.createOf?.(['{"custom_id":"a"}', '{"custom_id":"b"}'])).toEqual({
      ok: true,
      value: "msgbatch_1",
    });
    const [{ method, url, body, headers } = expect.fail("no request")] = requests;
    expect([method, url]).toEqual(["POST", "https://acme.test/v1/messages/batches"]);
    expect(JSON.parse(String(body))).toEqual({ requests: [{ custom_id: "a" }, { custom_id: "b" }] });
    expect([headers.get("x-api-key"), headers.get("anthropic-version")]).toEqual(["sk-acme", "2023-06-01"]);
  });

  it.each([
    [{ status: 413 }, "refused"],
    [{ status: 429 }, "later"],
    [{ status: 529 }, "unknown"],
    ["lost" as const, "unknown"],
    [{ body: { type: "message_batch" } }, "unknown"],
  ])("whose creation is answered with %j", async (reply, why) => {
    expect(await at(reply).provider.createOf?.(["{}"])).toMatchObject({ ok: false, why });
  });

  it.each([
    [{ processing_status: "in_progress" }, { state: "working" }],
    [{ processing_status: "canceling" }, { state: "working" }],
    [
      { processing_status: "ended", request_counts: counts({ succeeded: 3, errored: 1, canceled: 2, expired: 4 }) },
      { state: "ended", outputFileId: "msgbatch_1", errorFileId: null, completed: 10 },
    ],
  ])("that is shown as %j", async (body, look) => {
    expect(await at({ body }).provider.look("msgbatch_1")).toEqual({ ok: true, value: look });
  });

  it("that the provider no longer has is gone", async () => {
    expect(await at({ status: 404 }).provider.look("msgbatch_1")).toEqual({ ok: true, value: { state: "gone" } });
  });

  it("is cancelled, also if it has ended meanwhile", async () => {
    expect(await at({}).provider.cancel("msgbatch_1")).toMatchObject({ ok: true });
    expect(await at({ status: 400 }).provider.cancel("msgbatch_1")).toMatchObject({ ok: true });
    expect(await at({ status: 500 }).provider.cancel("msgbatch_1")).toMatchObject({ ok: false });
  });
});

describe("a message batch whose creation had no reply", () => {
  it("is the one with its requests among its results, also on a later page", async () => {
    const { provider, requests } = at(
      page([listed("msgbatch_other")], "msgbatch_other"),
      { text: `${result("another-1")}\n` },
      page([listed("msgbatch_mine")]),
      { text: `${result(`${PREFIX}65536`)}\n` },
    );
    expect(await provider.find(TAG, LOST)).toEqual({ ok: true, value: "msgbatch_mine" });
    expect(requests[2]?.url).toBe("https://acme.test/v1/messages/batches?limit=100&after_id=msgbatch_other");
  });

  it("may be one that has not ended, until its results show whose it is", async () => {
    const running = listed("msgbatch_2", {
      processing_status: "in_progress",
      request_counts: counts({ processing: 2 }),
    });
    expect(await at(page([running])).provider.find(TAG, LOST)).toEqual({ ok: true, value: { pending: true } });
  });

  it.each([
    ["is another batch of its group", listed("msgbatch_known")],
    ["has another number of requests", listed("msgbatch_2", { request_counts: counts({ succeeded: 3 }) })],
    ["is older", listed("msgbatch_2", { created_at: new Date(CREATED_MS - PROVIDER_CLOCK_MS - 1).toISOString() })],
  ])("is none that %s", async (_, batch) => {
    expect(await at(page([batch])).provider.find(TAG, LOST)).toEqual({ ok: true, value: null });
  });

  it("is looked for again if a page or results fail", async () => {
    expect(await at({ status: 500 }).provider.find(TAG, LOST)).toMatchObject({ ok: false });
    expect(await at(page([listed("msgbatch_2")]), { status: 500 }).provider.find(TAG, LOST)).toMatchObject({
      ok: false,
    });
    expect(await at({ body: {} }).provider.find(TAG, LOST)).toMatchObject({ ok: false, why: "later" });
  });
});

describe("a result", () => {
  const error = (type: string) => ({ type: "errored", error: { type: "error", error: { type, message: "no" } } });

  it("that succeeded keeps the digits of its message", async () => {
    const message = '{"id":"msg_1","usage":{"input_tokens":12345678901234567890}}';
    const text = `{"custom_id":"${PREFIX}65536","result":{"type":"succeeded","message":${message}}}`;
    const got = await at({ text }).provider.lines("msgbatch_1", TAG);
    const lines: string[] = [];
    if (got.ok) for await (const line of got.value) lines.push(line);
    expect(lines).toEqual([`{"custom_id":"65536.1","response":{"status_code":200,"body":${message}},"error":null}`]);
  });

  it.each([
    ["invalid_request_error", 400],
    ["authentication_error", 401],
    ["rate_limit_error", 429],
    ["overloaded_error", 529],
    ["api_error", 500],
    ["some_new_error", 500],
  ])("with the error %s is an answer with the status %i", async (type, status) => {
    const [line] = await linesFrom(result(`${PREFIX}1`, error(type)));
    expect(line).toEqual({
      custom_id: "1.1",
      response: { status_code: status, body: error(type).error },
      error: null,
    });
  });

  it.each([
    ["canceled", "batch_cancelled"],
    ["expired", "batch_expired"],
    ["some_new_type", "unknown"],
  ])("of the type %s has the code %s", async (type, code) => {
    expect(await linesFrom(result(`${PREFIX}1`, { type }))).toMatchObject([{ response: null, error: { code } }]);
  });

  it("of another batch is left out, and so is what is no result", async () => {
    expect(await linesFrom(`no JSON\n${result("other-1")}\n[]\n{"result":{}}\n`)).toEqual([]);
  });
});
