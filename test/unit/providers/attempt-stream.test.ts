/** Attempts whose answer comes as a stream and is put together here. */
import { describe, expect, it } from "vitest";
import { RESPONSE_BYTES_MAX, STREAM_BYTES_MAX, STREAM_FROM_MS } from "../../../src/limits.ts";
import { attempt } from "../../../src/providers/attempt.ts";
import type { Upstream } from "../../../src/providers/config/types.ts";
import { CallHistories, choosesStream, NO_HISTORY } from "../../../src/providers/stream-choice.ts";
import { completion, makeAnthropic, makeDeps, makeLease, makeUpstream, message } from "./make.ts";
import { CHAT_EVENTS, EVENTS, Source } from "./relay/make.ts";

const STREAMING = { aggregate: "stream" } as const;
const jobOf = (upstream: Upstream, body: Parameters<typeof attempt>[0]["body"] = { prompt: "hi" }) => ({
  upstream,
  lease: makeLease({ capTokens: 50 }),
  body,
});

type Sent = { headers: unknown; body: Record<string, unknown> };

/** Answers each request in turn, and notes what was sent. */
function answering(...answers: (() => Response)[]) {
  const sent: Sent[] = [];
  const fetchLike: typeof fetch = async (_, init) => {
    const body: Record<string, unknown> = JSON.parse(String(init?.body));
    sent.push({ headers: init?.headers, body });
    const answer = answers[sent.length - 1] ?? answers.at(-1);
    if (answer === undefined) throw new Error("no answer");
    return answer();
  };
  return { sent, fetchLike };
}

const events =
  (...texts: string[]) =>
  () =>
    new Response(Source.of(...texts).stream, EVENTS);
const json =
  (text: string, init: ResponseInit = {}) =>
  () =>
    new Response(text, init);

const CHAT_JSON = completion("hé 😀");
const MESSAGE_EVENTS = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260901","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
];

describe("a streamed attempt", () => {
  it("asks for a stream with its usage, and ends as the same answer in JSON does", async () => {
    const { sent, fetchLike } = answering(events(...CHAT_EVENTS));
    const streamed = await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(fetchLike, { now: () => 5 }));
    const whole = await attempt(
      jobOf(makeUpstream()),
      makeDeps(answering(json(CHAT_JSON)).fetchLike, { now: () => 5 }),
    );
    expect(streamed).toEqual({ ...whole, streamed: true });
    expect(sent).toMatchObject([
      {
        headers: { accept: "text/event-stream" },
        body: { stream: true, stream_options: { include_usage: true }, max_tokens: 50 },
      },
    ]);
  });

  it("has the time to its first byte, after the headers", async () => {
    let nowMs = 1_000;
    const source = new Source((at) => {
      nowMs += 100;
      return CHAT_EVENTS[at] ?? null;
    });
    const { fetchLike } = answering(() => {
      nowMs += 30;
      return new Response(source.stream, EVENTS);
    });
    const outcome = await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(fetchLike, { now: () => nowMs }));
    expect(outcome).toMatchObject({ kind: "success", streamed: true, ttfbMs: 130 });
    expect(outcome.latencyMs).toBeGreaterThanOrEqual(30 + 100 * CHAT_EVENTS.length);
  });

  it("of a message ends as the same message in JSON does, and asks for no usage of its own", async () => {
    const { sent, fetchLike } = answering(events(...MESSAGE_EVENTS));
    const streamed = await attempt(jobOf(makeAnthropic(STREAMING)), makeDeps(fetchLike, { now: () => 5 }));
    const text = message([{ type: "text", text: "hello" }]);
    const whole = await attempt(jobOf(makeAnthropic()), makeDeps(answering(json(text)).fetchLike, { now: () => 5 }));
    expect(streamed).toEqual({ ...whole, streamed: true });
    expect(sent[0]?.body).toMatchObject({ stream: true });
    expect(sent[0]?.body).not.toHaveProperty("stream_options");
  });

  it("that is answered with JSON reads it as JSON", async () => {
    const { fetchLike } = answering(json(CHAT_JSON, { headers: { "content-type": "application/json" } }));
    const outcome = await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(fetchLike));
    expect(outcome).toMatchObject({ kind: "success", text: "hé 😀", usage: { promptTokens: 10 } });
  });

  it.each([
    [{ message: "busy", code: 503 }, "transient"],
    [{ message: "no such thing" }, "unknown"],
  ])("whose stream holds nothing but the error %j is treated as JSON with that error", async (error, failureClass) => {
    const body = { error };
    const streamed = await attempt(
      jobOf(makeUpstream(STREAMING)),
      makeDeps(answering(events(`data: ${JSON.stringify(body)}\n\n`)).fetchLike, { now: () => 5 }),
    );
    const { fetchLike } = answering(json(JSON.stringify(body)));
    expect(streamed).toEqual(await attempt(jobOf(makeUpstream()), makeDeps(fetchLike, { now: () => 5 })));
    expect(streamed).toMatchObject({ class: failureClass });
  });

  it("whose stream reports an error after a part of the answer may have been billed", async () => {
    const { fetchLike } = answering(events(CHAT_EVENTS[0], 'data: {"error":{"message":"busy","code":503}}\n\n'));
    expect(await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(fetchLike))).toMatchObject({
      class: "unknown",
      reason: { reason: "upstream_error" },
    });
  });

  it("whose stream ends too early, or breaks off, is truncated", async () => {
    const broken = () => {
      const source = new Source((at) => (at === 0 ? CHAT_EVENTS[0] : (source.break(), "")));
      return new Response(source.stream, EVENTS);
    };
    for (const answer of [events(CHAT_EVENTS[0]), events(), broken]) {
      const outcome = await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(answering(answer).fetchLike));
      expect(outcome).toMatchObject({ class: "unknown", answered: true, reason: { reason: "upstream_truncated" } });
      expect(outcome).not.toHaveProperty("seen");
    }
  });

  it("whose stream or answer is too large is read no further", async () => {
    const piece = `data: {"choices":[{"index":0,"delta":{"content":"${"a".repeat(100_000)}"}}]}\n\n`;
    const source = new Source(() => piece);
    const endless = await attempt(
      jobOf(makeUpstream(STREAMING)),
      makeDeps(answering(() => new Response(source.stream, EVENTS)).fetchLike),
    );
    expect(endless).toMatchObject({ class: "unknown", reason: { retryable: false } });
    expect(source.cancelled).toBe(true);
    expect(source.pulled * piece.length).toBeLessThan(STREAM_BYTES_MAX + 3 * piece.length);
    const count = Math.ceil(RESPONSE_BYTES_MAX / 100_000);
    const large = answering(events(...Array.from({ length: count }, () => piece), ...CHAT_EVENTS.slice(1)));
    expect(await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(large.fetchLike))).toMatchObject({
      class: "unknown",
    });
  });
});

describe("a raw body", () => {
  const rawOf = (fields: Record<string, unknown>, endpoint: "chat" | "embeddings" = "chat") => ({
    raw: { endpoint, json: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], ...fields }) },
  });

  it("is answered with a whole chat completion, and keeps every field that its client wrote", async () => {
    const { sent, fetchLike } = answering(events(...CHAT_EVENTS));
    const body = rawOf({ stream: false, stream_options: null, seed: 7, max_tokens: 50 });
    const outcome = await attempt(jobOf(makeUpstream(STREAMING), body), makeDeps(fetchLike));
    if (outcome.kind !== "success") throw new Error(JSON.stringify(outcome));
    expect(JSON.parse(outcome.text)).toEqual({
      id: "chatcmpl-1",
      object: "chat.completion",
      model: "gpt-x-2026",
      choices: [{ index: 0, message: { role: "assistant", content: "hé 😀" }, logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cost: expect.any(Number) },
    });
    expect(sent[0]?.body).toMatchObject({ seed: 7, stream: true, stream_options: { include_usage: true } });
  });

  it.each([
    [{ modalities: ["text", "audio"], audio: { voice: "a" } }, "chat"],
    [{ web_search_options: {} }, "chat"],
    [{ input: "x" }, "embeddings"],
  ] as const)("that no stream's events add up to is asked for as JSON: %j", async (fields, endpoint) => {
    const { sent, fetchLike } = answering(json(CHAT_JSON));
    await attempt(jobOf(makeUpstream(STREAMING), rawOf(fields, endpoint)), makeDeps(fetchLike));
    expect(sent[0]?.body).not.toHaveProperty("stream");
  });
});

describe("what a stopped stream is known to have used", () => {
  const stopping = (upstream: Upstream, how: "timeout" | "cancelled", ...texts: string[]) => {
    const source = new Source();
    const { fetchLike } = answering(() => new Response(source.stream, EVENTS));
    const controller = new AbortController();
    controller.signal.addEventListener("abort", () => source.break(new DOMException("aborted", "AbortError")));
    const job = { ...jobOf(upstream), lease: makeLease({ timeoutMs: how === "timeout" ? 30 : 60_000 }) };
    const ended = attempt(job, makeDeps(fetchLike, { controller }));
    for (const text of texts) source.push(text);
    if (how === "cancelled") setTimeout(() => controller.abort(), 30);
    return ended;
  };
  const seeing = { ...STREAMING, abortCost: "seen" } as const;

  it.each(["timeout", "cancelled"] as const)("at a %s is the bytes of its answer so far", async (how) => {
    const outcome = await stopping(makeUpstream(seeing), how, CHAT_EVENTS[0], CHAT_EVENTS[1].slice(0, -20));
    expect(outcome).toMatchObject({ class: "unknown", seen: { promptTokens: null, completionTokens: 3 } });
  });

  it("is not looked at where its upstream bills on, nor where no stream had begun", async () => {
    expect(await stopping(makeUpstream(STREAMING), "timeout", CHAT_EVENTS[0])).not.toHaveProperty("seen");
    expect(await stopping(makeUpstream(seeing), "timeout")).not.toHaveProperty("seen");
    const bare = makeDeps(async () => await new Promise<Response>(() => undefined));
    const outcome = await attempt({ ...jobOf(makeUpstream(seeing)), lease: makeLease({ timeoutMs: 10 }) }, bare);
    expect(outcome).toMatchObject({ class: "unknown" });
    expect(outcome).not.toHaveProperty("seen");
  });

  it("of a stream that broke off is what had arrived of it", async () => {
    const { fetchLike } = answering(events(CHAT_EVENTS[0]));
    const outcome = await attempt(jobOf(makeUpstream(seeing)), makeDeps(fetchLike));
    expect(outcome).toMatchObject({ seen: { promptTokens: null, completionTokens: 3 } });
  });
});

describe('aggregate: "auto"', () => {
  it.each([
    [NO_HISTORY, false, false],
    [NO_HISTORY, true, true],
    [{ ...NO_HISTORY, latencyMs: STREAM_FROM_MS }, false, false],
    [{ ...NO_HISTORY, latencyMs: STREAM_FROM_MS + 1 }, false, true],
    [{ ...NO_HISTORY, gaveUp: true }, false, true],
    [{ latencyMs: 60_000, gaveUp: true, refusesStreams: true }, true, false],
  ])("with %j and limited headers %s streams: %s", (history, headersLimited, streams) => {
    expect(choosesStream("auto", history, { isRemote: true, headersLimited })).toBe(streams);
    expect(choosesStream("stream", history, { isRemote: true, headersLimited })).toBe(true);
    expect(choosesStream("json", history, { isRemote: true, headersLimited })).toBe(false);
    expect(choosesStream("auto", history, { isRemote: false, headersLimited })).toBe(false);
  });

  it.each([408, 504, 520, 522, 524])("streams after a proxy gave up with %i, of that model only", async (status) => {
    const histories = new CallHistories();
    const { sent, fetchLike } = answering(json("<html>", { status }), events(...CHAT_EVENTS), json(CHAT_JSON));
    const job = jobOf(makeUpstream({ aggregate: "auto" }));
    const deps = makeDeps(fetchLike, { histories });
    await attempt(job, deps);
    expect(await attempt(job, deps)).toMatchObject({ kind: "success", text: "hé 😀" });
    await attempt({ ...job, lease: makeLease({ model: "other" }) }, deps);
    expect(sent.map(({ body }) => body["stream"])).toEqual([undefined, true, undefined]);
  });

  it.each([500, 503, 429, 400])("does not after a %i", async (status) => {
    const histories = new CallHistories();
    const { sent, fetchLike } = answering(json("{}", { status }), json(CHAT_JSON));
    const job = jobOf(makeUpstream({ aggregate: "auto" }));
    for (let turn = 0; turn < 2; turn++) await attempt(job, makeDeps(fetchLike, { histories }));
    expect(sent.map(({ body }) => body["stream"])).toEqual([undefined, undefined]);
  });

  it("streams once a model's calls last long in the mean, and no more when they are short again", async () => {
    const histories = new CallHistories();
    let nowMs = 0;
    let tookMs = 0;
    const { sent, fetchLike } = answering(json(CHAT_JSON));
    const slow: typeof fetch = async (...asked) => {
      nowMs += tookMs;
      return await fetchLike(...asked);
    };
    const job = jobOf(makeUpstream({ aggregate: "auto" }));
    for (tookMs of [1_000, 60_000, 60_000, 10, 10, 10, 10, 10, 10, 10]) {
      await attempt(job, makeDeps(slow, { histories, now: () => nowMs }));
    }
    const streams = sent.map(({ body }) => body["stream"] === true);
    expect(streams.slice(0, 3)).toEqual([false, false, true]);
    expect(streams.at(-1)).toBe(false);
  });

  it("asks for JSON in the same attempt where the upstream refuses to stream, and from then on", async () => {
    const histories = new CallHistories();
    const refusal = json('{"error":{"message":"stream is not supported"}}', { status: 400 });
    const { sent, fetchLike } = answering(refusal, json(CHAT_JSON), json(CHAT_JSON));
    const deps = makeDeps(fetchLike, { histories, headersLimited: true });
    const job = jobOf(makeUpstream({ aggregate: "auto" }));
    expect(await attempt(job, deps)).toMatchObject({ kind: "success" });
    expect(await attempt(job, deps)).toMatchObject({ kind: "success" });
    expect(sent.map(({ body }) => body["stream"])).toEqual([true, undefined, undefined]);
    const strict = answering(refusal);
    const outcome = await attempt(jobOf(makeUpstream(STREAMING)), makeDeps(strict.fetchLike, { histories }));
    expect(outcome).toMatchObject({ class: "rejected" });
    expect(strict.sent).toHaveLength(1);
  });

  it("remembers a bounded number of models", () => {
    const histories = new CallHistories();
    for (let at = 0; at < 1_000; at++) histories.answered("u", `m${at}`, { status: 504, latencyMs: 1 });
    expect(histories.of("u", "m0").gaveUp).toBe(false);
    expect(histories.of("u", "m999").gaveUp).toBe(true);
  });
});
