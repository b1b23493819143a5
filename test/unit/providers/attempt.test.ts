import { describe, expect, it } from "vitest";
import { RESPONSE_BYTES_MAX } from "../../../src/limits.ts";
import { attempt } from "../../../src/providers/attempt.ts";
import { senderOf } from "../../../src/providers/exchange.ts";
import { completion, KEY, makeAnthropic, makeDeps, makeLease, makeUpstream, message } from "./make.ts";

const job = { upstream: makeUpstream(), lease: makeLease(), body: { prompt: "hi" } };

/** Answers as if from the network, with no announced length, and tells whether the body was cancelled. */
function streamed(chunks: (Uint8Array | string)[], init: ResponseInit = {}) {
  const state = { cancelled: false, pulled: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[state.pulled++];
        if (chunk === undefined) controller.close();
        else controller.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk);
      },
      cancel() {
        state.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { state, response: new Response(body, init) };
}

const answering = (response: Response) => makeDeps(async () => response);

describe("attempt", () => {
  it("sends one POST that follows no redirect, and returns the answer with its latency", async () => {
    const requests: { input: unknown; init: RequestInit | undefined }[] = [];
    let nowMs = 1_000;
    const fetchLike: typeof fetch = async (input, init) => {
      requests.push({ input, init });
      nowMs += 250;
      return new Response(completion("hello"));
    };
    const outcome = await attempt(job, makeDeps(fetchLike, { now: () => nowMs }));
    expect(outcome).toMatchObject({ kind: "success", text: "hello", latencyMs: 250 });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      input: "https://acme.test/v1/chat/completions",
      init: { method: "POST", redirect: "manual", headers: { authorization: `Bearer ${KEY}` } },
    });
  });

  it("speaks Anthropic's protocol to an upstream of that kind", async () => {
    const requests: unknown[] = [];
    const fetchLike: typeof fetch = async (input, init) => {
      requests.push([input, init]);
      return new Response(message([{ type: "text", text: "hello" }]));
    };
    const outcome = await attempt({ ...job, upstream: makeAnthropic() }, makeDeps(fetchLike));
    expect(outcome).toMatchObject({ kind: "success", text: "hello", finishReason: "stop" });
    expect(requests).toMatchObject([
      ["https://acme.test/v1/messages", { method: "POST", redirect: "manual", headers: { "x-api-key": KEY } }],
    ]);
  });

  it("that is stopped before its request left is free, and sends nothing afterwards", async () => {
    const controller = new AbortController();
    const sent: unknown[] = [];
    const sender = senderOf(async (url) => {
      sent.push(url);
      return new Response(completion("hello"));
    });
    // As for a call whose context is read first.
    const prepared: typeof fetch = async (input, init) => {
      controller.abort();
      return await sender.fetch(String(input), init ?? {});
    };
    const outcome = await attempt(job, makeDeps(prepared, { controller, hasSent: sender.hasSent }));
    expect(outcome).toMatchObject({
      kind: "failure",
      class: "rejected",
      reason: { reason: "cancelled" },
      answered: false,
    });
    expect([sent, sender.hasSent()]).toEqual([[], false]);
  });

  it("that is stopped after its request left may be billed", async () => {
    const controller = new AbortController();
    const sender = senderOf(async () => {
      controller.abort();
      throw new DOMException("This operation was aborted", "AbortError");
    });
    const fetchLike: typeof fetch = (input, init) => sender.fetch(String(input), init ?? {});
    const outcome = await attempt(job, makeDeps(fetchLike, { controller, hasSent: sender.hasSent }));
    expect(outcome).toMatchObject({ kind: "failure", class: "unknown", reason: { reason: "cancelled" } });
  });

  it("sends nothing of a call that an upstream's protocol has no place for, and rejects it free of charge", async () => {
    const fetchLike: typeof fetch = async () => {
      throw new Error("sent");
    };
    const body = { messages: [{ role: "tool", content: "a" }] };
    expect(await attempt({ ...job, upstream: makeAnthropic(), body }, makeDeps(fetchLike))).toMatchObject({
      class: "rejected",
      reason: { reason: "invalid_request", param: "messages[0].tool_call_id" },
    });
  });

  it("calls fetch as a function of its own, which workerd requires", async () => {
    const receivers: unknown[] = [];
    async function fetchLike(this: unknown): Promise<Response> {
      receivers.push(this);
      return new Response(completion("a"));
    }
    await attempt(job, makeDeps(fetchLike));
    expect(receivers).toEqual([undefined]);
  });

  it("reads an answer of the largest size, and cancels one that is a byte longer", async () => {
    const frame = completion("").length;
    const largest = completion("x".repeat(RESPONSE_BYTES_MAX - frame));
    const fits = streamed([largest.slice(0, 70_000), largest.slice(70_000)]);
    expect(await attempt(job, answering(fits.response))).toMatchObject({ kind: "success" });
    const longer = streamed([largest, " ", "never read"]);
    expect(await attempt(job, answering(longer.response))).toMatchObject({ class: "unknown" });
    expect(longer.state).toEqual({ cancelled: true, pulled: 2 });
  });

  it("does not start to read an answer that announces too much", async () => {
    const headers = { "content-length": String(RESPONSE_BYTES_MAX + 1) };
    const { response, state } = streamed(["x"], { headers });
    expect(await attempt(job, answering(response))).toMatchObject({ class: "unknown", reason: { status: 200 } });
    expect(state).toEqual({ cancelled: true, pulled: 0 });
  });

  it("counts a compressed answer as it unfolds, whatever length it announces", async () => {
    const headers = { "content-length": "100", "content-encoding": "gzip" };
    const { response, state } = streamed(["x".repeat(RESPONSE_BYTES_MAX), "x", "x"], { headers });
    expect(await attempt(job, answering(response))).toMatchObject({ class: "unknown" });
    expect(state.cancelled).toBe(true);
  });

  it("puts characters together that the network split, and refuses bytes that are not UTF-8", async () => {
    const bytes = new TextEncoder().encode(completion("é€😀"));
    const single = Array.from(bytes, (byte) => new Uint8Array([byte]));
    expect(await attempt(job, answering(streamed(single).response))).toMatchObject({ text: "é€😀" });
    const broken = bytes.slice();
    broken[bytes.indexOf(0xc3)] = 0xff;
    for (const headers of [{}, { "content-length": String(broken.length) }]) {
      const outcome = await attempt(job, answering(new Response(broken, { headers })));
      expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_error" } });
    }
  });

  it("times out a fetch that heeds no signal, counting from its dispatch", async () => {
    const lease = makeLease({ timeoutMs: 20 });
    const outcome = await attempt(
      { ...job, lease },
      makeDeps(() => new Promise(() => {})),
    );
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_timeout", timeoutMs: 20 } });
  });

  it("frees the body of an answer that comes after its time", async () => {
    const late = streamed(["x"]);
    const arrival = Promise.withResolvers<Response>();
    const lease = makeLease({ timeoutMs: 10 });
    await attempt(
      { ...job, lease },
      makeDeps(() => arrival.promise),
    );
    arrival.resolve(late.response);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(late.state.cancelled).toBe(true);
  });

  it("ends at once when the caller leaves, and aborts the request", async () => {
    const caller = new AbortController();
    let aborted = false;
    const fetchLike: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => {
          aborted = true;
          reject(new DOMException("This operation was aborted", "AbortError"));
        });
      });
    const pending = attempt(job, makeDeps(fetchLike, { controller: caller }));
    caller.abort();
    expect(await pending).toMatchObject({ class: "unknown", reason: { reason: "cancelled" } });
    expect(aborted).toBe(true);
  });

  it("sends nothing for a caller that has already left, and costs nothing", async () => {
    let calls = 0;
    const fetchLike: typeof fetch = async () => {
      calls++;
      return new Response("");
    };
    const caller = new AbortController();
    caller.abort();
    const outcome = await attempt(job, makeDeps(fetchLike, { controller: caller }));
    expect(outcome).toMatchObject({ class: "rejected", reason: { reason: "cancelled" } });
    expect(calls).toBe(0);
  });

  it("runs one timer, for the time of its lease, and stops it when it ends", async () => {
    const events: string[] = [];
    const timer = (ms: number): (() => void) => {
      events.push(`start ${ms}`);
      return () => void events.push("stop");
    };
    const fetchLike: typeof fetch = async () => {
      events.push("fetch");
      return new Response(completion("a"));
    };
    await attempt(job, makeDeps(fetchLike, { timer }));
    expect(events).toEqual(["start 60000", "fetch", "stop"]);
  });

  it("leaves the signal of a request that ended by itself alone, since an abort costs time", async () => {
    const signals: (AbortSignal | null | undefined)[] = [];
    const fetchLike: typeof fetch = async (_, init) => {
      signals.push(init?.signal);
      return new Response(completion("a"));
    };
    await attempt(job, makeDeps(fetchLike));
    expect(signals[0]?.aborted).toBe(false);
  });

  it.each(["ECONNREFUSED", "ENOTFOUND", "UND_ERR_CONNECT_TIMEOUT"])("knows that %s cost nothing", async (code) => {
    const error = new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code }) });
    const outcome = await attempt(
      job,
      makeDeps(() => Promise.reject(error)),
    );
    expect(outcome).toMatchObject({ class: "transient", reason: { status: null, retryable: true } });
  });

  it.each([
    new Error("Network connection lost."),
    new Error("internal error; reference = abc"),
    new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) }),
    new TypeError(`Headers.append: "Bearer ${KEY}" is an invalid header value.`),
    "thrown text",
  ])("does not know what a lost connection cost, and shows nothing thrown: %s", async (error) => {
    const outcome = await attempt(
      job,
      makeDeps(() => Promise.reject(error)),
    );
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_error", status: null } });
    expect(JSON.stringify(outcome)).not.toContain(KEY);
  });

  it("keeps the class of a status whose body breaks off", async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("lost")) });
    const outcome = await attempt(job, answering(new Response(body, { status: 500 })));
    expect(outcome).toMatchObject({ class: "transient", reason: { status: 500 } });
  });
});
