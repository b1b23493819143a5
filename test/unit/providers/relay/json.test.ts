import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KEY } from "../make.ts";
import {
  answeredOf,
  Attempt,
  both,
  bytesOf,
  chat,
  failedOf,
  heard,
  makeJob,
  readerOf,
  Source,
  successOf,
} from "./make.ts";

const JSON_TYPE = { "content-type": "application/json" };

/** An answer of announced length. */
const whole = (text: string, headers: Record<string, string> = {}) =>
  new Attempt(
    () =>
      new Response(text, {
        headers: { ...JSON_TYPE, "content-length": String(bytesOf(text).length), ...headers },
      }),
  );

/** An answer of a length that nobody announced, in these pieces. */
const chunked = (...pieces: string[]) => Attempt.answered(Source.of(...pieces), { headers: JSON_TYPE });

const half = (text: string): [string, string] => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

const BYTES = '{"prompt_tokens":10, "completion_tokens":5,"total_tokens":15}';
const PRICED = '{"prompt_tokens":10, "completion_tokens":5,"total_tokens":15,"cost":0.00002}';
const USAGE = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };

describe.each([
  ["of announced length", (text: string) => whole(text)],
  ["in chunks", (text: string) => chunked(...half(text))],
])("a JSON answer %s", (_, answering) => {
  it("keeps every byte but for the cost in its usage", async () => {
    const { text, broke, outcome, id } = await both(await answering(chat(BYTES)).run());
    expect(text).toBe(chat(PRICED));
    expect(broke).toBe(false);
    expect(id).toBe("chatcmpl-1");
    expect(successOf(outcome)).toMatchObject({ model: "gpt-x-2026", finishReason: "stop", usage: USAGE });
  });

  it("keeps a cost that the upstream names, as it was written", async () => {
    const named = '{"prompt_tokens":10,"completion_tokens":5,"cost":1.50E-4}';
    const { text, outcome } = await both(await answering(chat(named)).run());
    expect(text).toBe(chat(named));
    expect(successOf(outcome).usage).toEqual({ ...USAGE, costNanoUsd: 150_000 });
  });

  it("has its cost where the upstream names none", async () => {
    const { text } = await both(await answering(chat('{"prompt_tokens":10,"cost":null,"completion_tokens":5}')).run());
    expect(text).toBe(chat('{"prompt_tokens":10,"cost":0.00002,"completion_tokens":5}'));
  });

  it("stays as it is where no price is known", async () => {
    const { text, outcome } = await both(await answering(chat()).run(makeJob({ costUsdOf: () => null })));
    expect(text).toBe(chat());
    expect(successOf(outcome).usage).toEqual(USAGE);
  });

  it.each(["null", "{}", '{"prompt_tokens":-1,"completion_tokens":5}', '"none"', "[]"])(
    "with a usage of %s is a success whose usage is not known",
    async (usage) => {
      const { text, outcome } = await both(await answering(chat(usage)).run());
      expect(text).toBe(chat(usage));
      expect(successOf(outcome).usage).toBeNull();
    },
  );

  it("without a usage is a success whose usage is not known", async () => {
    const { text, outcome } = await both(await answering('{"choices":[]}').run());
    expect(text).toBe('{"choices":[]}');
    expect(successOf(outcome)).toMatchObject({ usage: null, model: "gpt-x" });
  });

  it("that repeats the upstream's key has it blanked, and nothing else", async () => {
    const answer = (word: string) => chat().replace("gpt-x-2026", word);
    const { text } = await both(await answering(answer(`${KEY}${KEY}, sk`)).run(makeJob({ costUsdOf: () => null })));
    expect(text).toBe(answer("[redacted][redacted], sk"));
  });

  it("has a key blanked that looks like its own beginning", async () => {
    const upstream = { ...makeJob().upstream, apiKey: "aab-aab-aac" };
    const answer = (word: string) => `{"x":"${word}"}`;
    const job = makeJob({ upstream });
    expect((await both(await answering(answer("aab-aab-aab-aac")).run(job))).text).toBe(answer("aab-[redacted]"));
  });

  it("has configured header values blanked, too", async () => {
    const upstream = { ...makeJob().upstream, headers: { "x-org": "org-secret-1", "x-mode": "fast" } };
    const { text } = await both(await answering('{"a":"org-secret-1 fast"}').run(makeJob({ upstream })));
    expect(text).toBe('{"a":"[redacted] fast"}');
  });

  it("of the Responses API tells its own name", async () => {
    const answer = '{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}';
    const { id, outcome } = await both(await answering(answer).run(makeJob({ endpoint: "responses" })));
    expect(id).toBe("resp_1");
    expect(successOf(outcome).finishReason).toBe("max_output_tokens");
  });
});

describe("an answer of announced length", () => {
  it.each([
    ['{"error":{"message":"busy","code":503}}', "transient", "upstream_error"],
    ['{"error":{"message":"slow down","code":429}}', "rate_limited", "upstream_rate_limited"],
    ['{"error":{"message":"no","type":"model_not_found"}}', "rejected", "upstream_error"],
    ['{"error":{"message":"no such model"}}', "unknown", "upstream_error"],
    ['{"error":"no such model"}', "unknown", "upstream_error"],
    ['{"object":"error","message":"no"}', "unknown", "upstream_error"],
    ['{"error":{"message":"broke","code":502},"usage":{"prompt_tokens":1}}', "unknown", "upstream_error"],
    ['{"choices":[{"error":{"message":"broke","code":502}}]}', "unknown", "upstream_error"],
  ])("that is an error in a 200, %s, is a failure of class %s", async (text, failureClass, reason) => {
    const { outcome, answer } = failedOf(await whole(text).run());
    expect(outcome).toMatchObject({ class: failureClass, reason: { reason } });
    expect(answer).toMatchObject({ status: 200, text });
  });

  it.each([
    ["", "unknown"],
    ['{"id":"chatcmpl-1","choices":[', "unknown"],
    ["<html>", "unknown"],
    ["[1]", "unknown"],
  ])("that is no JSON object, %s, is a failure that may have been billed", async (text, failureClass) => {
    expect(failedOf(await whole(text).run()).outcome).toMatchObject({ class: failureClass });
  });

  it("that breaks off may have been billed, and nothing of it was passed on", async () => {
    const source = new Source((at) => (at === 0 ? '{"id"' : (source.break(), "")));
    const attempt = Attempt.answered(source, { headers: { ...JSON_TYPE, "content-length": "100" } });
    const { outcome, answer } = failedOf(await attempt.run());
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
    expect(answer).toBeNull();
    expect(attempt.timer?.stopped).toBe(true);
  });

  it.each([
    ["timeOut", "upstream_timeout"],
    ["leave", "cancelled"],
  ] as const)("that is not whole at a %s is stopped, and may have been billed", async (how, reason) => {
    const source = new Source();
    const attempt = Attempt.answered(source, { headers: { ...JSON_TYPE, "content-length": "100" } });
    const passed = attempt.run();
    source.push('{"id"');
    await Promise.resolve();
    if (how === "leave") attempt.controller.abort();
    else attempt.timeOut();
    expect(failedOf(await passed).outcome).toMatchObject({ class: "unknown", reason: { reason } });
  });

  it("is passed on as it comes from 256 KiB on, or if it is compressed", async () => {
    const wholeMax = 256 * 1024;
    const padded = (length: number) => chat().padEnd(length - bytesOf(chat()).length + chat().length);
    const atMost = answeredOf(await whole(padded(wholeMax)).run());
    const above = answeredOf(await whole(padded(wholeMax + 1)).run());
    const compressed = answeredOf(await whole(chat(), { "content-encoding": "gzip" }).run());
    expect([atMost, above, compressed].map(({ body }) => body instanceof Uint8Array)).toEqual([true, false, false]);
    for (const passed of [above, compressed]) expect((await both(passed)).text).toContain(PRICED);
  });
});

describe("an answer in chunks", () => {
  it("goes on before it is whole", async () => {
    const source = new Source();
    const attempt = Attempt.answered(source, { headers: JSON_TYPE });
    source.push('{"id":"a",');
    const answered = answeredOf(await attempt.run());
    const reader = readerOf(answered);
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('{"id":"a",');
    expect(attempt.timer?.stopped).toBe(false);
    source.push('"usage":{"prompt_tokens":1,"completion_tokens":1}}');
    source.close();
    let rest = "";
    for (let read = await reader.read(); !read.done; read = await reader.read())
      rest += new TextDecoder().decode(read.value);
    expect(rest).toBe('"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.000003}}');
    expect(successOf((await answered.ended).outcome).usage).toMatchObject({ promptTokens: 1 });
    expect(attempt.timer?.stopped).toBe(true);
  });

  it("has the upstream's key blanked wherever a border cuts it", async () => {
    const answer = `{"a":"${KEY}","b":"${KEY.slice(0, -1)}"}`;
    for (let at = 1; at < answer.length; at++) {
      const { text } = await both(await chunked(answer.slice(0, at), answer.slice(at)).run());
      expect(text).toBe(`{"a":"[redacted]","b":"${KEY.slice(0, -1)}"}`);
    }
    expect((await both(await chunked(...answer).run())).text).not.toContain(KEY);
    expect((await both(await chunked('{"a":"', KEY.slice(0, 9)).run())).text).toBe(`{"a":"${KEY.slice(0, 9)}`);
  });

  it("that the upstream breaks off breaks off for its client, and stays charged", async () => {
    const source = new Source((at) => (at === 0 ? '{"id":"a",' : (source.break(), "")));
    const { text, broke, outcome } = await both(await Attempt.answered(source, { headers: JSON_TYPE }).run());
    expect([text, broke]).toEqual(['{"id":"a",', true]);
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it("that ends too early has no end in order for its client, and stays charged", async () => {
    const { text, broke, outcome } = await both(await chunked('{"id":"a",').run());
    expect([text, broke]).toEqual(['{"id":"a",', true]);
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it.each(["<html>busy</html>", "[1]", "pong", "\uFEFF\n null"])(
    "that is no JSON object, %s, is a failure of which nothing was passed on",
    async (text) => {
      expect(failedOf(await chunked(text).run()).outcome).toMatchObject({ class: "unknown" });
    },
  );

  it("that begins with an error is a failure, as if it had been announced", async () => {
    for (const text of [
      '{"error":{"message":"busy","code":503}}',
      '\r\n { "object":"error","code":503,"message":"busy"}',
    ]) {
      const { outcome, answer } = failedOf(await chunked(text.slice(0, -3), text.slice(-3)).run());
      expect(outcome).toMatchObject({ class: "transient", reason: { reason: "upstream_error", status: 503 } });
      expect(answer).toMatchObject({ status: 200, text });
    }
  });

  it("that begins with no error goes on though it holds one, and stays charged", async () => {
    for (const text of ['{"id":"a","error":{"message":"busy","code":503}}', '{"error":{"message":"busy"}} {']) {
      const padding = text.endsWith("{") ? " ".repeat(256 * 1024) : "";
      const { text: got, outcome } = await both(await chunked(text, padding).run());
      expect(got).toBe(text + padding);
      expect(outcome).toMatchObject({ kind: "failure", class: "unknown" });
    }
  });

  it.each(['{"error":null,"choices":[]}', '{"error":"","choices":[]}', '{"errors":{"a":1},"choices":[]}'])(
    "that begins with what is no error, %s, is a success",
    async (text) => {
      expect(await both(await chunked(text).run())).toMatchObject({ text, outcome: { kind: "success" } });
    },
  );

  it("that breaks off before its first byte can be tried again: nothing of it was passed on", async () => {
    const source = new Source(() => (source.break(), ""));
    const { outcome, answer } = failedOf(await Attempt.answered(source, { headers: JSON_TYPE }).run());
    expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
    expect(answer).toBeNull();
  });

  it("that is empty is a failure", async () => {
    for (const attempt of [chunked(), new Attempt(() => new Response(null, { status: 200 }))]) {
      expect(failedOf(await attempt.run()).outcome).toMatchObject({
        class: "unknown",
        reason: { reason: "upstream_truncated" },
      });
    }
  });

  it.each([
    ["timeOut", "upstream_timeout"],
    ["leave", "cancelled"],
  ] as const)("breaks off at a %s", async (how, reason) => {
    const source = new Source();
    const attempt = Attempt.answered(source, { headers: JSON_TYPE });
    source.push('{"id":"a",');
    const answered = answeredOf(await attempt.run());
    const client = heard(answered);
    await new Promise((resolve) => setTimeout(resolve));
    if (how === "leave") attempt.controller.abort();
    else attempt.timeOut();
    expect(await client).toEqual({ text: '{"id":"a",', broke: true });
    expect((await answered.ended).outcome).toMatchObject({ class: "unknown", reason: { reason } });
  });

  it("whose client leaves is stopped at the upstream, and stays charged", async () => {
    const source = new Source();
    const attempt = Attempt.answered(source, { headers: JSON_TYPE });
    source.push('{"id":"a",');
    const answered = answeredOf(await attempt.run());
    const reader = readerOf(answered);
    await reader.read();
    await reader.cancel();
    expect((await answered.ended).outcome).toMatchObject({ class: "unknown", reason: { reason: "cancelled" } });
    expect(attempt.controller.signal.aborted).toBe(true);
  });

  it("whose client leaves after the last byte is a success", async () => {
    const source = new Source();
    const attempt = Attempt.answered(source, { headers: JSON_TYPE });
    source.push(chat());
    const answered = answeredOf(await attempt.run());
    const reader = readerOf(answered);
    for (let text = ""; !text.endsWith("}\n");) text += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    expect(successOf((await answered.ended).outcome).usage).toEqual(USAGE);
  });
});

describe("an answer whose JSON ends in its middle", () => {
  const ANSWER = `{"id":"a😀","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",${" "}"content":"\\u00e9\\""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`;
  const bytes = bytesOf(ANSWER);
  const init = (length: number | null) => ({
    headers: length === null ? JSON_TYPE : { ...JSON_TYPE, "content-length": String(length) },
  });
  const streamOf = (...pieces: Uint8Array[]) =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    });
  const runs = { numRuns: 2 * bytes.length };
  const places = [
    fc.integer({ min: 0, max: bytes.length - 1 }),
    fc.integer({ min: 0, max: bytes.length - 1 }),
  ] as const;

  it("is truncated at every place, announced with the length that it has", async () => {
    for (let at = 0; at < bytes.length; at++) {
      const half = bytes.slice(0, at);
      const { outcome, answer } = failedOf(await new Attempt(() => new Response(half, init(at))).run());
      expect(outcome, `cut at ${at}`).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
      // The answer's status is a 200: it is not what the client gets.
      expect(answer?.status).toBe(200);
    }
  });

  it("is truncated wherever it ends in chunks, and never ends in order for its client", async () => {
    await fc.assert(
      fc.asyncProperty(...places, async (at, border) => {
        const pieces = [bytes.slice(0, Math.min(at, border)), bytes.slice(Math.min(at, border), at)];
        const attempt = new Attempt(
          () => new Response(streamOf(...pieces.filter(({ length }) => length > 0)), init(null)),
        );
        const passed = await attempt.run();
        const { broke, outcome } = passed.kind === "failed" ? { broke: true, ...passed } : await both(passed);
        expect(broke).toBe(true);
        expect(outcome).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
      }),
      runs,
    );
  });

  it("is whole in any two chunks", async () => {
    await fc.assert(
      fc.asyncProperty(places[0], async (at) => {
        const pieces = [bytes.slice(0, at), bytes.slice(at)].filter(({ length }) => length > 0);
        const { broke, outcome } = await both(
          await new Attempt(() => new Response(streamOf(...pieces), init(null))).run(),
        );
        expect([broke, outcome.kind]).toEqual([false, "success"]);
      }),
      runs,
    );
  });
});

describe("embeddings asked for as base64", () => {
  const job = makeJob({ endpoint: "embeddings", base64: true });
  const floats = '{"data":[ {"embedding":[1, -2.5],"index":0}],"usage":{"prompt_tokens":8,"total_tokens":8}}';
  const base64 =
    '{"data":[ {"embedding":"AACAPwAAIMA=","index":0}],"usage":{"prompt_tokens":8,"total_tokens":8,"cost":0.000008}}';

  it("and answered as numbers are re-encoded, of announced length or not", async () => {
    for (const attempt of [whole(floats), chunked(...half(floats))]) {
      const { text, outcome } = await both(await attempt.run(job));
      expect(text).toBe(base64);
      expect(successOf(outcome).usage).toMatchObject({ promptTokens: 8, completionTokens: 0 });
    }
  });

  it("and answered as base64 stay, and so do numbers that were asked for", async () => {
    expect((await both(await whole(base64).run(job))).text).toBe(base64);
    const numbers = await both(await whole(floats).run({ ...job, base64: false }));
    expect(numbers.text).toBe(floats.replace("}}", ',"cost":0.000008}}'));
  });

  it("and answered with more than 32 MiB are not gathered in memory, but passed on as they come", async () => {
    const source = new Source((at) => (at < 12 ? " ".repeat(4 * 1024 * 1024) : at === 12 ? floats : null));
    const attempt = Attempt.answered(source, { headers: JSON_TYPE });
    const answered = answeredOf(await attempt.run(job));
    expect(source.pulled).toBeLessThan(10);
    const { text, outcome } = await both(answered);
    expect(text.length).toBe(12 * 4 * 1024 * 1024 + floats.length + ',"cost":0.000008'.length);
    expect(text.trimStart()).toBe(floats.replace("}}", ',"cost":0.000008}}'));
    expect(outcome.kind).toBe("success");
  });
});
