import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { FIELD_BYTES_MAX, USAGE_BYTES_MAX } from "../../../../../src/providers/formats/response/fields.ts";
import { readJsonAnswer } from "../../../../../src/providers/formats/response/read.ts";
import { KEY_BYTES_MAX, MemberScanner } from "../../../../../src/text/json/stream.ts";
import { AnswerObserver, type AnswerObserverOptions } from "../../../../../src/providers/formats/response/observer.ts";
import { answers, factsOf, answerOptions, manyFloats, playJson } from "./recorded.ts";
import { bytesOf, textOf } from "../stream/recorded.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const USAGE = '{"prompt_tokens":3,"completion_tokens":4}';
const PRICED = '{"prompt_tokens":3,"completion_tokens":4,"cost":0.007}';

/** Plays a body in one chunk, and reads what the client got as text. */
function playText(text: string, options: Partial<AnswerObserverOptions> = {}) {
  const { sent, outcome } = playJson([bytesOf(text)], options);
  return { text: textOf([sent]), outcome };
}

describe("AnswerObserver", () => {
  it.each(Object.entries(answers))("reads the same facts from an answer of %s as reading it whole", (_, recorded) => {
    const { endpoint, text } = recorded;
    expect(playText(text, { endpoint }).outcome).toEqual({ ...factsOf(recorded), complete: true });
  });

  it.each(Object.entries(answers))("adds the cost to the usage of %s and changes no other byte", (_, recorded) => {
    const { text } = playText(recorded.text, { endpoint: recorded.endpoint });
    const { promptTokens = 0, completionTokens = 0 } = recorded.usage ?? {};
    const inserted = `,"cost":${(promptTokens + completionTokens) / 1_000}`;
    expect(text.split(inserted)).toHaveLength(2);
    expect(sha256(text.replace(inserted, ""))).toBe(sha256(recorded.text));
    expect(JSON.parse(text).usage.cost).toBe((promptTokens + completionTokens) / 1_000);
  });

  it.each(Object.entries(answers))("forwards %s byte for byte if no price is known", (_, { endpoint, text }) => {
    expect(playText(text, { endpoint, costUsdOf: () => null }).text).toBe(text);
  });

  it.each(Object.entries(answers))("reports %s cut short at any byte as incomplete", (_, { endpoint, text }) => {
    const bytes = bytesOf(text);
    const closed = bytes.lastIndexOf(0x7d);
    for (let end = 0; end <= bytes.length; end++) {
      const { sent, outcome } = playJson([bytes.subarray(0, end)], { endpoint, costUsdOf: () => null });
      expect(Buffer.compare(sent, bytes.subarray(0, end))).toBe(0);
      expect(outcome.complete).toBe(end > closed);
    }
  });

  it.each([
    "{}",
    ' \n\t\r{ "a" : 1 } \n\t\r',
    '{"a":"}"}',
    '{"a":[{}],"b":true,"c":-1.5e+7}',
    '{"":"","usage":null}',
    '{"a":"\\\\"}',
  ])("takes %j for complete", (text) => {
    expect(playText(text)).toMatchObject({ text, outcome: { complete: true, usage: null } });
  });

  it.each([
    "",
    " ",
    "null",
    "[]",
    '"a"',
    "7",
    '{"a":1}}',
    "{} x",
    "{}{}",
    '{"a" 1}',
    '{"a":}',
    '{"a":,"b":1}',
    '{"a"::1}',
    '{"a":]}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a":1 "b":2}',
    "{a:1}",
    '{"a":"\\"}',
    "<html></html>",
    "\uFEFF{}",
    'data: {"usage":{}}\n\n',
  ])("passes %j, which is no whole JSON object, as it came", (text) => {
    expect(playText(text)).toMatchObject({ text, outcome: { complete: false, usage: null, hasError: false } });
  });

  it("reads nothing more once a text is known not to be JSON", () => {
    const text = `{"id":"a", oops, "usage":${USAGE}, "error":{}}`;
    expect(playText(text)).toMatchObject({ text, outcome: { id: "a", usage: null, hasError: false, complete: false } });
  });

  it("delays only the usage, until it is whole", () => {
    const tap = new AnswerObserver(answerOptions({}));
    const feed = (text: string) => textOf(tap.feed(bytesOf(text)));
    expect(feed('{"choices":[{"message":{"content":"half of')).toBe('{"choices":[{"message":{"content":"half of');
    expect(feed(' it"}}],"us')).toBe(' it"}}],"us');
    expect(feed('age": {"prompt_tokens":3,')).toBe('age": ');
    expect(feed('"completion_tokens":4')).toBe("");
    expect(feed('},"model":')).toBe(`${PRICED},"model":`);
    expect(feed('"m"}')).toBe('"m"}');
    expect(tap.end()).toMatchObject({ bytes: [], outcome: { model: "m", complete: true } });
  });

  it("forwards a chunk that needs no change without a copy", () => {
    const chunk = bytesOf('{"choices":[1,2,3],"model":"m"');
    expect(new AnswerObserver(answerOptions({})).feed(chunk)).toEqual([chunk]);
  });

  it("forwards an unfinished usage when the body ends", () => {
    const { text, outcome } = playText('{"usage":{"prompt_tokens":3');
    expect([text, outcome.usage, outcome.complete]).toEqual(['{"usage":{"prompt_tokens":3', null, false]);
  });

  it("keeps what it read if the body breaks off later", () => {
    const { text, outcome } = playText(`{"usage":${USAGE},"choices":[{"finish_reason":"st`);
    expect(text).toBe(`{"usage":${PRICED},"choices":[{"finish_reason":"st`);
    expect(outcome).toMatchObject({ usage: { promptTokens: 3 }, finishReason: null, complete: false });
  });

  it("keeps an upstream's own cost, and fills one that is null", () => {
    const own = '{"usage":{"prompt_tokens":3,"completion_tokens":4,"cost":5.0e-1}}';
    expect(playText(own)).toMatchObject({ text: own, outcome: { usage: { costNanoUsd: 500_000_000 } } });
    const unnamed = '{"usage":{"prompt_tokens":3,"cost" : null,"completion_tokens":4}}';
    expect(playText(unnamed).text).toBe(unnamed.replace("null", "0.007"));
  });

  it.each([
    "null",
    "7",
    '"usage"',
    "[]",
    "{}",
    '{"prompt_tokens":-1,"completion_tokens":1}',
    '{"prompt_tokens":1,"completion_tokens":tru}',
    '{"prompt_tokens":1 "completion_tokens":1}',
  ])("leaves a usage that is %s as it is", (usage) => {
    const text = `{"usage":${usage},"id":"a"}`;
    expect(playText(text)).toMatchObject({ text, outcome: { usage: null, id: "a", complete: true } });
  });

  it("adds a cost to each of several usages, and counts the last", () => {
    const other = '{"prompt_tokens":1,"completion_tokens":1}';
    const twice = playText(`{"usage":${other},"usage":${USAGE}}`);
    expect(twice.text).toBe(`{"usage":${other.replace("}", ',"cost":0.002}')},"usage":${PRICED}}`);
    expect(twice.outcome.usage?.promptTokens).toBe(3);
    expect(playText(`{"usage":${USAGE},"usage":null}`).outcome.usage).toBeNull();
  });

  it("reads the last of other repeated fields", () => {
    const text =
      '{"id":"a","choices":[{"finish_reason":"stop","error":{}}],"id":"b","choices":[{"finish_reason":"length"}]}';
    const { outcome } = playText(text);
    expect(outcome).toMatchObject({ id: "b", finishReason: "length", hasError: false });
    expect(factsOf(outcome)).toEqual(factsOf(readJsonAnswer("chat", bytesOf(text))));
    expect(playText('{"choices":[{"finish_reason":"stop"}],"choices":[]}').outcome.finishReason).toBeNull();
  });

  it("recognises a key however it is escaped, and no similar one", () => {
    const all = String.raw`\u0075\u0073\u0061\u0067\u0065`;
    expect(playText(`{"${all}":${USAGE}}`).text).toBe(`{"${all}":${PRICED}}`);
    for (const key of ["usage ", "Usage", "\\\\usage", '\\"usage', "usage\\u0000", "\\x", "us\\", "choice.usage"]) {
      expect(playText(`{"${key}":${USAGE}}`).text).toBe(`{"${key}":${USAGE}}`);
    }
  });

  it("skips a key of any length, and reads one up to its bound", () => {
    const key = "\\u0075".padEnd(KEY_BYTES_MAX + 5, "x");
    const text = `{"${"k".repeat(100_000)}":1,"${key}":2,"usage":${USAGE}}`;
    expect(playText(text)).toMatchObject({ text: text.replace(USAGE, PRICED), outcome: { complete: true } });
    const longest = "k".repeat(KEY_BYTES_MAX);
    const found: string[] = [];
    const sink = { begins: (name: string) => found.push(name), ends: () => undefined };
    const watched = { names: new Set([longest, `${longest}k`]), firstOf: { list: "choices", prefix: "choice." } };
    const bytes = bytesOf(`{"${longest}k":1,"${longest}":2}`);
    for (const size of [1, bytes.length]) {
      const scanner = new MemberScanner(watched, sink);
      for (let at = 0; at < bytes.length; at += size) scanner.feed(bytes.subarray(at, at + size));
    }
    expect(found).toEqual([longest, longest]);
  });

  it("takes no top-level member for a member of the first choice", () => {
    const text = '{"choice.finish_reason":"stop","choice.error":{}}';
    expect(playText(text).outcome).toMatchObject({ finishReason: null, hasError: false, complete: true });
  });

  it("reads a usage up to its largest size, and forwards a larger one unread", () => {
    const padded = (bytes: number) => `${USAGE.slice(0, -1)}${" ".repeat(bytes - USAGE.length)}}`;
    const largest = `{"id":"a","usage":${padded(USAGE_BYTES_MAX)},"model":"m"}`;
    expect(playText(largest).text).toBe(largest.replace(":4", ':4,"cost":0.007'));
    const larger = `{"id":"a","usage":${padded(USAGE_BYTES_MAX + 1)},"model":"m"}`;
    const outcome = { usage: null, id: "a", model: "m", complete: true };
    expect(playText(larger)).toMatchObject({ text: larger, outcome });
  });

  it("forwards a usage as soon as it is too large", () => {
    const tap = new AnswerObserver(answerOptions({}));
    const part = " ".repeat(USAGE_BYTES_MAX / 2);
    expect(textOf(tap.feed(bytesOf(`{"usage":{`)))).toBe('{"usage":');
    expect(textOf(tap.feed(bytesOf(part)))).toBe("");
    expect(textOf(tap.feed(bytesOf(part)))).toBe(`{${part}${part}`);
    expect(textOf(tap.feed(bytesOf(`"a":1`)))).toBe('"a":1');
    expect(textOf(tap.feed(bytesOf("}}")))).toBe("}}");
    expect(tap.end().outcome).toMatchObject({ usage: null, complete: true });
  });

  it("ignores a name above the bound, as reading the body whole does", () => {
    const named = (bytes: number) => playText(`{"id":"${"a".repeat(bytes - 2)}"}`).outcome.id;
    expect([named(FIELD_BYTES_MAX), named(FIELD_BYTES_MAX + 1)]).toEqual([expect.stringMatching(/^a+$/), null]);
  });

  it("finds an error, also one too long to be kept", () => {
    for (const error of ['{"message":"no"}', `"${"x".repeat(10_000)}"`, `{"message":"${"x".repeat(10_000)}"}`]) {
      expect(playText(`{"error":${error},"id":"a"}`).outcome).toMatchObject({
        hasError: true,
        complete: true,
        id: "a",
      });
    }
    expect(playText('{"error":null}').outcome.hasError).toBe(false);
    expect(playText('{"choices":[{"error":{"code":502}},{}]}').outcome).toMatchObject({
      hasError: true,
      complete: true,
    });
  });

  it("skips nesting of any depth", () => {
    const deep = `${"[".repeat(50_000)}${'{"usage":'.repeat(50_000)}1${"}".repeat(50_000)}${"]".repeat(50_000)}`;
    const text = `{"a":${deep},"choices":[${deep}],"usage":${USAGE}}`;
    expect(playText(text)).toMatchObject({ text: text.replace(USAGE, PRICED), outcome: { complete: true } });
    const inUsage = `{"usage":{"prompt_tokens":3,"completion_tokens":4,"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}}`;
    expect(playText(inUsage)).toMatchObject({ text: inUsage, outcome: { complete: true } });
    const open = `{"a":${"[".repeat(100_000)}`;
    expect(playText(open)).toMatchObject({ text: open, outcome: { complete: false } });
  });

  it("forwards huge strings of any content, and parses none of them", () => {
    const pieces = ["x", '\\"', "\\\\", '\\",\\"usage\\":{', "🦊", "\\u0022"];
    const parse = vi.spyOn(JSON, "parse");
    for (const piece of pieces) {
      const text = `{"choices":[{"message":{"content":"${piece.repeat(100_000)}"},"finish_reason":"stop"}],"usage":${USAGE}}`;
      const played = playText(text);
      expect(played.text === text.replace(USAGE, PRICED)).toBe(true);
      expect(played.outcome).toMatchObject({ complete: true, finishReason: "stop" });
    }
    const longest = Math.max(...parse.mock.calls.map(([json]) => json.length));
    parse.mockRestore();
    expect(longest).toBeLessThan(100);
  });

  it("forwards 10,000 floats", () => {
    const { text, outcome } = playText(manyFloats, { endpoint: "embeddings" });
    expect(text).toBe(manyFloats.replace(/}}$/, ',"cost":0.008}}'));
    expect(outcome).toMatchObject({ model: "e", usage: { promptTokens: 8, completionTokens: 0 }, complete: true });
  });

  it("forwards bytes that are not UTF-8 unchanged", () => {
    const bytes = new Uint8Array([...bytesOf('{"a":"'), 0xff, 0xc3, ...bytesOf('","'), 0xfe, ...bytesOf('":1}')]);
    expect(playJson([bytes])).toMatchObject({ sent: bytes, outcome: { complete: true } });
  });
});
