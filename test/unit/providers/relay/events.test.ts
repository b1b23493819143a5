import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KEY, makeUpstream } from "../make.ts";
import {
  answeredOf,
  Attempt,
  both,
  bytesOf,
  CHAT_EVENTS,
  EVENTS,
  failedOf,
  heard,
  makeJob,
  readerOf,
  Source,
  successOf,
} from "./make.ts";

const job = makeJob({ stream: true, usageChunk: "injected" });
/** Of a client that gets all events as they come. */
const watched = makeJob({ stream: true, usageChunk: "requested", passes: true });
/** The same of an upstream that is trusted: the runtime moves them. */
const passing = { ...watched, moves: true };
const [first, last, usageChunk, done] = CHAT_EVENTS;
const COST = ": fanout cost=0.00002\n\n";
const asked = { ...job, usageChunk: "requested" } as const;
const PATHS = [
  ["that JavaScript reads", job],
  ["that passes and is searched", watched],
  ["that the runtime moves", passing],
] as const;
const USAGE = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
const truncated = `data: {"error":{"message":"acme broke off its answer","type":"upstream_error","param":null,"code":"upstream_truncated"}}\n\n`;

const streamed = (...events: string[]) => Attempt.answered(Source.of(...events), EVENTS);

/** A stream that the upstream breaks after these events. */
const broken = (...events: string[]) => {
  const source = new Source((at) => events[at] ?? (source.break(), ""));
  return Attempt.answered(source, EVENTS);
};

/** A stream that waits: what it sends is pushed, and the client reads. */
async function waiting(fields = job) {
  const source = new Source();
  const attempt = Attempt.answered(source, EVENTS);
  const answered = answeredOf(await attempt.run(fields));
  return { source, attempt, answered };
}

const read = async (reader: ReadableStreamDefaultReader<Uint8Array>) =>
  new TextDecoder().decode((await reader.read()).value);

describe("a stream", () => {
  it("goes on as it came, without the usage chunk that its client did not ask for", async () => {
    const { text, broke, outcome, id } = await both(await streamed(...CHAT_EVENTS).run(job));
    expect([text, broke, id]).toEqual([first + last + done, false, null]);
    expect(successOf(outcome)).toMatchObject({ model: "gpt-x-2026", finishReason: "stop", usage: USAGE });
  });

  it("goes on with the usage chunk that its client asked for, and the cost in it", async () => {
    const { text, outcome } = await both(await streamed(...CHAT_EVENTS).run(asked));
    expect(text).toBe(first + last + usageChunk.replace("}}\n", ',"cost":0.00002}}\n') + done);
    expect(successOf(outcome).usage).toEqual(USAGE);
  });

  it("keeps the cost that its upstream names", async () => {
    const named = usageChunk.replace("}}\n", ',"cost":2.50e-4}}\n');
    const { text, outcome } = await both(await streamed(first, last, named, done).run(asked));
    expect(text).toBe(first + last + named + done);
    expect(successOf(outcome).usage).toEqual({ ...USAGE, costNanoUsd: 250_000 });
  });

  it("that passes goes on as it came, with its cost behind it", async () => {
    const { text, broke, outcome } = await both(await streamed(...CHAT_EVENTS).run(passing));
    expect([text, broke]).toEqual([CHAT_EVENTS.join("") + COST, false]);
    expect(successOf(outcome)).toMatchObject({ model: "gpt-x-2026", finishReason: "stop", usage: USAGE });
  });

  it("that passes has the cost that its upstream names, and none where no price is known", async () => {
    const named = usageChunk.replace("}}\n", ',"cost":2.50e-4}}\n');
    const costUsdOf = () => 0.00025;
    const { text } = await both(await streamed(first, last, named, done).run({ ...passing, costUsdOf }));
    expect(text).toBe(`${first + last + named + done}: fanout cost=0.00025\n\n`);
    const unpriced = await both(await streamed(...CHAT_EVENTS).run({ ...passing, costUsdOf: () => null }));
    expect(unpriced.text).toBe(CHAT_EVENTS.join(""));
  });

  it("that passes with a usage event that its client did not request keeps it", async () => {
    const { text } = await both(await streamed(...CHAT_EVENTS).run({ ...passing, usageChunk: "injected" }));
    expect(text).toBe(CHAT_EVENTS.join("") + COST);
  });

  it("that passes has its cost on a line of its own, even if its last event has no blank line", async () => {
    const { text } = await both(await streamed(first + last, usageChunk + done.trimEnd()).run(passing));
    expect(text).toBe(CHAT_EVENTS.join("") + COST);
  });

  it.each(PATHS)("%s is the same wherever its chunks are cut", async (_, path) => {
    const whole = CHAT_EVENTS.join("");
    const clients = path.passes ? whole + COST : first + last + done;
    const bytes = bytesOf(whole);
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length - 1), { maxLength: 12 }), async (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const slices = edges.slice(1).map((to, at) => bytes.slice(edges[at], to));
        const pieces = slices.filter(({ length }) => length > 0);
        const source = new Source((at) => pieces[at] ?? null);
        const { text, outcome } = await both(await Attempt.answered(source, EVENTS).run(path));
        expect(text).toBe(clients);
        expect(successOf(outcome)).toMatchObject({ model: "gpt-x-2026", finishReason: "stop", usage: USAGE });
      }),
      { numRuns: 100 },
    );
  });
});

describe.each(PATHS)("a stream %s", (_, job) => {
  it("gives its client each event before the next one comes", async () => {
    const { source, attempt, answered } = await waiting();
    const reader = readerOf(answered);
    source.push(first);
    expect(await read(reader)).toBe(first);
    source.push(last);
    expect(await read(reader)).toBe(last);
    expect(attempt.timer?.stopped).toBe(false);
    source.push(done);
    source.close();
    expect(await read(reader)).toBe(done);
    expect((await reader.read()).done).toBe(true);
    expect(successOf((await answered.ended).outcome).usage).toBeNull();
    expect(attempt.timer?.stopped).toBe(true);
  });

  it("is read no further ahead of its client than one chunk", async () => {
    const source = new Source((at) => (at < 100 ? first : at === 100 ? done : null));
    const answered = answeredOf(await Attempt.answered(source, EVENTS).run(job));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(source.pulled).toBeLessThanOrEqual(2);
    const reader = readerOf(answered);
    for (let taken = 1; taken <= 50; taken++) {
      await reader.read();
      await new Promise((resolve) => setTimeout(resolve));
      expect(source.pulled).toBeLessThanOrEqual(taken + 2);
    }
    await reader.cancel();
    expect((await answered.ended).outcome).toMatchObject({ reason: { reason: "cancelled" } });
  });

  it("without usage is a success whose usage is not known", async () => {
    const { text, outcome } = await both(await streamed(first, last, done).run(job));
    expect(text).toBe(first + last + done);
    expect(successOf(outcome).usage).toBeNull();
  });

  it("that ended in order stays a success, whatever becomes of its connection", async () => {
    expect((await both(await broken(...CHAT_EVENTS).run(job))).outcome).toMatchObject({
      kind: "success",
      usage: USAGE,
    });
  });
});

describe.each(PATHS)("a stream %s and that breaks", (_, job) => {
  it("ends with an error event, closes in order, and stays charged", async () => {
    const { text, broke, outcome } = await both(await broken(first).run(job));
    expect([text, broke]).toEqual([first + truncated, false]);
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it("inside an event ends with an error event of its own", async () => {
    const half = 'data: {"choices":[';
    const { text } = await both(await broken(first, half).run(job));
    // What has passed cannot be taken back.
    expect(text).toBe(first + (job.moves ? `${half}\n\n` : "") + truncated);
  });

  it("counts the bytes of what arrived only where they bound what is charged", async () => {
    const delta = `data: {"choices":[{"index":0,"delta":{"content":"0123456789"}}]}\n\n`;
    const upstream = makeUpstream({ abortCost: "seen" });
    const seen = async (fields: Partial<typeof job>) =>
      (await both(await broken(first, delta, delta).run({ ...job, ...fields }))).outcome;
    const { tokensPerByte } = upstream.bounds;
    expect(await seen({ upstream })).toMatchObject({
      seen: { completionTokens: Math.ceil(("hé".length + 1 + 20) * tokensPerByte) },
    });
    expect(await seen({})).not.toHaveProperty("seen");
  });

  it("before its first event tells the same", async () => {
    expect(await both(await broken().run(job))).toMatchObject({ text: truncated, broke: false });
  });

  it("by ending too early is no clean end for its client", async () => {
    const { text, outcome } = await both(await streamed(first).run(job));
    expect(text).toBe(first + truncated);
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it("because its upstream reports an error ends with that error alone, redacted, and stays charged", async () => {
    const error = (key: string) => `data: {"error":{"message":"bad ${key}","code":"server_error"}}\n\n`;
    const events = job.passes ? [error(KEY), first] : [first, error(KEY)];
    const { text, outcome } = await both(await streamed(...events).run(job));
    expect(text).toBe(events.join("").replace(KEY, "[redacted]"));
    expect(outcome).toMatchObject({
      class: "unknown",
      reason: { reason: "upstream_error", upstreamCode: "server_error" },
    });
    expect(JSON.stringify(outcome)).not.toContain(KEY);
  });

  it("by its time limit says so", async () => {
    const { source, attempt, answered } = await waiting();
    source.push(first);
    const client = heard(answered);
    await new Promise((resolve) => setTimeout(resolve));
    attempt.timeOut();
    const { text, broke } = await client;
    expect([text.slice(0, first.length), broke]).toEqual([first, false]);
    expect(text.slice(first.length)).toContain('"code":"upstream_timeout"');
    expect((await answered.ended).outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_timeout" } });
  });
});

describe.each(PATHS)("a client that leaves a stream %s", (_, job) => {
  it("in the middle stops it at the upstream; it stays charged", async () => {
    const { source, attempt, answered } = await waiting();
    const reader = readerOf(answered);
    source.push(first);
    await reader.read();
    await reader.cancel();
    expect((await answered.ended).outcome).toMatchObject({ class: "unknown", reason: { reason: "cancelled" } });
    expect(attempt.controller.signal.aborted).toBe(true);
    expect(attempt.timer?.stopped).toBe(true);
  });

  it("is noticed by the request's own signal while the upstream is silent", async () => {
    const { attempt, answered } = await waiting();
    attempt.controller.abort();
    expect((await answered.ended).outcome).toMatchObject({ class: "unknown", reason: { reason: "cancelled" } });
  });

  it("after the last byte leaves a success with its usage", async () => {
    const { source, answered } = await waiting({ ...job, usageChunk: "requested" });
    const reader = readerOf(answered);
    source.push(CHAT_EVENTS.join(""));
    for (let text = ""; !text.endsWith(done);) text += await read(reader);
    await reader.cancel();
    expect((await answered.ended).outcome).toMatchObject({ kind: "success", usage: USAGE });
  });

  it("is not waited for when its time is over and it reads no further", async () => {
    const source = new Source(() => first);
    const attempt = Attempt.answered(source, EVENTS);
    const answered = answeredOf(await attempt.run(job));
    await new Promise((resolve) => setTimeout(resolve));
    attempt.timeOut();
    expect((await answered.ended).outcome).toMatchObject({ reason: { reason: "upstream_timeout" } });
    const { text, broke } = await heard(answered);
    expect(broke).toBe(false);
    expect(text.replaceAll(first, "")).toContain('"code":"upstream_timeout"');
  });

  it("while bytes wait for it stops them, too", async () => {
    const source = new Source(() => first);
    const attempt = Attempt.answered(source, EVENTS);
    const answered = answeredOf(await attempt.run(job));
    await new Promise((resolve) => setTimeout(resolve));
    if (answered.body instanceof ReadableStream) await answered.body.cancel();
    expect((await answered.ended).outcome).toMatchObject({ reason: { reason: "cancelled" } });
    expect(attempt.controller.signal.aborted).toBe(true);
  });
});

describe("streams of other protocols", () => {
  const created = `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_0a-b","model":"gpt-x"}}\n\n`;
  const completed = `event: response.completed\ndata: {"type":"response.completed","sequence_number":1,"response":{"id":"resp_0a-b","status":"completed","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}}\n\n`;
  const responses = { ...job, endpoint: "responses", usageChunk: "absent" } as const;

  it("tell a response's own name, also where it comes in two pieces", async () => {
    const whole = created + completed;
    for (const at of [1, 60, whole.indexOf("resp_0a-b") + 5, whole.indexOf("resp_0a-b") + 9]) {
      const { text, id, outcome } = await both(await streamed(whole.slice(0, at), whole.slice(at)).run(responses));
      expect(id).toBe("resp_0a-b");
      expect(text).toBe(whole.replace('"total_tokens":7', '"total_tokens":7,"cost":0.000011'));
      expect(successOf(outcome).usage).toMatchObject({ promptTokens: 3, completionTokens: 4 });
    }
  });

  it("that break end with an event in their protocol's form", async () => {
    const ends = await both(await broken(created).run(responses));
    expect(ends.text.slice(created.length)).toMatch(
      /^event: error\ndata: \{"type":"error",.*"sequence_number":1\}\n\n$/,
    );
    const messages = await both(await broken().run({ ...responses, endpoint: "messages" }));
    expect(messages.text).toMatch(/^event: error\ndata: \{"type":"error","error":\{"type":"api_error",.*\}\}\n\n$/);
  });
});

describe("what was asked and what comes", () => {
  it("may differ: a stream asked for and JSON answered is read as JSON", async () => {
    const text = '{"error":{"message":"busy","code":503}}';
    const attempt = new Attempt(() => new Response(text, { headers: { "content-type": "application/json" } }));
    expect(failedOf(await attempt.run(job)).outcome).toMatchObject({ class: "transient" });
  });

  it("may differ: a stream that nobody asked for passes, and stays charged", async () => {
    const { text, outcome } = await both(await streamed(...CHAT_EVENTS).run(makeJob()));
    expect(text).toBe(CHAT_EVENTS.join(""));
    expect(outcome).toMatchObject({ kind: "failure", class: "unknown" });
  });

  it.each(["messages", "responses", "chat", "completions"] as const)(
    "of %s: the upstream's key is in no event",
    async (endpoint) => {
      const event = (key: string) => `data: {"id":"${key}"}\n\n`;
      for (const passes of [false, true]) {
        const { text } = await both(await streamed(event(KEY)).run({ ...job, endpoint, passes, usageChunk: "absent" }));
        expect(text.startsWith(event("[redacted]"))).toBe(true);
        expect(text).not.toContain(KEY);
      }
    },
  );
});
