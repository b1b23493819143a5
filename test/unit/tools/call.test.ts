/** One call of a tool, with a network that is a function and a clock that stands still. */
import { describe, expect, it } from "vitest";
import { TOOL_REPLY_BYTES_MAX } from "../../../src/limits.ts";
import { makeToolCall, type ToolCallEnd } from "../../../src/tools/call.ts";
import type { Tool } from "../../../src/tools/tool.ts";

const TOOL: Tool = {
  name: "search",
  url: "https://tools.example.com/search?key=of-the-url",
  description: null,
  idempotent: false,
  timeoutMs: 1_000,
};
const IDEMPOTENT = { ...TOOL, idempotent: true };

type Sent = { url: string; init: RequestInit };

/** A call whose n-th try `answers[n]` answers; an error is thrown. `elapse` lets the time limit pass. */
function calling(tool: Tool, ...answers: (Response | Error | Promise<Response>)[]) {
  const sent: Sent[] = [];
  const controller = new AbortController();
  let elapse = (): void => undefined;
  let timers = 0;
  let nowMs = 0;
  const ended = makeToolCall(
    tool,
    { body: '{"tool_name":"search","input":{}}', runId: "run_1" },
    {
      fetch: async (url, init) => {
        sent.push({ url: String(url), init: init ?? {} });
        nowMs += 40;
        const answer = answers[sent.length - 1];
        if (answer === undefined) throw new Error("one try too many");
        if (answer instanceof Error) throw answer;
        return await answer;
      },
      now: () => nowMs,
      timer: (ms, elapsed) => {
        expect(ms).toBe(tool.timeoutMs);
        timers += 1;
        elapse = elapsed;
        return () => void (timers -= 1);
      },
      controller,
    },
  );
  return { sent, controller, ended, elapse: () => elapse(), timers: () => timers };
}

const LOST = new TypeError("Network connection lost.");

function broken(): Response {
  const body = new ReadableStream({
    pull(stream) {
      stream.enqueue(new TextEncoder().encode('{"result":'));
      stream.error(LOST);
    },
  });
  return new Response(body);
}

function messageOf({ report: { reason } }: ToolCallEnd): string {
  if (reason === null || !("message" in reason)) throw new Error("the call has no message");
  return reason.message;
}

describe("a call of a tool", () => {
  it("posts to its address, with the run's id and nothing of whoever asks, and follows no redirect", async () => {
    const { sent, ended, timers } = calling(TOOL, Response.json({ result: 7 }));
    await ended;
    expect(sent).toHaveLength(1);
    expect(sent[0]?.url).toBe(TOOL.url);
    expect(sent[0]?.init).toMatchObject({
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", "x-fanout-run": "run_1" },
      body: '{"tool_name":"search","input":{}}',
      redirect: "manual",
    });
    expect(Object.keys(sent[0]?.init.headers ?? {})).toHaveLength(3);
    expect(timers()).toBe(0);
  });

  it("gives the result, and reports status, time and size", async () => {
    const { ended } = calling(TOOL, Response.json({ result: "é" }));
    const report = { tool: "search", reason: null, status: 200, latencyMs: 40, bytes: 15, attempts: 1 };
    expect(await ended).toEqual({ value: "é", report });
  });

  it.each([301, 302, 303, 307, 308, 304])("fails at a redirect (%i), whatever it says", async (status) => {
    const answer = new Response(status === 304 ? null : '{"result":1}', {
      status,
      headers: { location: "http://127.0.0.1/" },
    });
    const end = await calling(IDEMPOTENT, answer).ended;
    expect(messageOf(end)).toBe(`tool "search" answered with a redirect (${status}), which is not followed`);
    expect(end.report).toMatchObject({ status, attempts: 1 });
  });

  it.each([400, 404, 408, 429, 500, 503])(
    "fails with what an error says (%i), and is not made again",
    async (status) => {
      const end = await calling(IDEMPOTENT, new Response("no\u0007 such\n page sk-abcdefghij", { status })).ended;
      expect(messageOf(end)).toBe(`tool "search" answered ${status}: no such page [redacted]`);
      expect(end.report).toMatchObject({
        status,
        attempts: 1,
        bytes: 28,
        reason: { reason: "upstream_error", status },
      });
    },
  );

  it("cuts what an error says", async () => {
    const end = await calling(TOOL, new Response("é".repeat(100_000), { status: 500 })).ended;
    expect(messageOf(end).length).toBeLessThan(600);
  });

  it("fails if the answer has a JSON content type and is not JSON, or is not UTF-8", async () => {
    const json = new Response("{", { headers: { "content-type": "application/json" } });
    expect(messageOf(await calling(TOOL, json).ended)).toContain(
      "with a JSON content type and a body that is not JSON",
    );
    const bytes = new Response(new Uint8Array([0xff, 0xfe]));
    expect(messageOf(await calling(TOOL, bytes).ended)).toContain("not UTF-8");
  });

  it("reads an answer of the largest size, and stops reading a larger one", async () => {
    const text = { headers: { "content-type": "text/plain" } };
    const end = await calling(TOOL, new Response("x".repeat(TOOL_REPLY_BYTES_MAX), text)).ended;
    expect(end.report).toMatchObject({ reason: null, bytes: TOOL_REPLY_BYTES_MAX });

    let pulled = 0;
    let cancelled = false;
    const endless = new ReadableStream({
      pull(stream) {
        pulled += 1;
        stream.enqueue(new Uint8Array(64 * 1024).fill(0x78));
      },
      cancel: () => void (cancelled = true),
    });
    const over = await calling(IDEMPOTENT, new Response(endless)).ended;
    expect(messageOf(over)).toContain(`more than ${TOOL_REPLY_BYTES_MAX} bytes`);
    expect([cancelled, over.report.attempts]).toEqual([true, 1]);
    expect(pulled).toBeLessThan(40);
  });

  it("does not tell what was thrown: runtimes quote addresses", async () => {
    const end = await calling(TOOL, new Error(`connect ECONNREFUSED ${TOOL.url}`)).ended;
    expect(JSON.stringify(end)).not.toContain("of-the-url");
    expect(messageOf(end)).toBe('tool "search" lost the connection before it answered');
  });
});

describe("a lost connection", () => {
  it.each([
    ["before the answer", () => LOST],
    ["within the answer", broken],
  ])("%s ends the call of a tool that is not idempotent", async (_, answer) => {
    const { sent, ended } = calling(TOOL, answer());
    expect((await ended).report).toMatchObject({ attempts: 1, status: null, reason: { retryable: false } });
    expect(sent).toHaveLength(1);
  });

  it.each([
    ["before the answer", () => LOST],
    ["within the answer", broken],
  ])("%s has an idempotent tool called once more", async (_, answer) => {
    const end = await calling(IDEMPOTENT, answer(), Response.json({ result: 1 })).ended;
    expect(end).toMatchObject({ value: 1, report: { reason: null, attempts: 2, latencyMs: 80 } });
  });

  it("twice ends the call of an idempotent tool, too", async () => {
    const { sent, ended } = calling(IDEMPOTENT, LOST, LOST);
    expect((await ended).report).toMatchObject({ attempts: 2, reason: { reason: "upstream_error", retryable: true } });
    expect(sent).toHaveLength(2);
  });
});

describe("a call that is stopped", () => {
  const never = (): Promise<Response> => new Promise(() => undefined);

  it("by its time limit ends then, though the network heeds nothing", async () => {
    const { ended, elapse, controller } = calling(IDEMPOTENT, never());
    elapse();
    expect((await ended).report).toMatchObject({
      reason: { reason: "upstream_timeout", timeoutMs: 1_000 },
      status: null,
      attempts: 1,
    });
    expect(controller.signal.aborted).toBe(true);
  });

  it("by its client or its run ends then", async () => {
    const { ended, controller } = calling(IDEMPOTENT, never());
    controller.abort();
    expect((await ended).report).toMatchObject({ reason: { reason: "cancelled" }, attempts: 1 });
  });

  it("closes an answer that comes too late", async () => {
    let cancelled = false;
    const { promise, resolve } = Promise.withResolvers<Response>();
    const { ended, elapse } = calling(TOOL, promise);
    elapse();
    await ended;
    resolve(new Response(new ReadableStream({ cancel: () => void (cancelled = true) })));
    await expect.poll(() => cancelled).toBe(true);
  });
});
