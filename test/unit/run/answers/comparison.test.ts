/** Which answers are one vote. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonInAnswer, valueAt } from "../../../../src/run/answers/answer-json.ts";
import { canonicalJson } from "../../../../src/text/schema/canonical.ts";
import { normalized, voteOf } from "../../../../src/run/answers/comparison.ts";
import { ANSWER_JSON_CHARS_MAX, ANSWER_JSON_DEPTH_MAX, VOTE_KEY_CHARS_MAX } from "../../../../src/limits.ts";

describe("a normalized answer", () => {
  it.each(["yes", "Yes", " YES ", "**Yes.**", '"yes"', "`yes`", "yes!", "“Yes”", "ｙｅｓ", "yes.\n"])(
    "is the same for %j as for yes",
    (text) => expect(normalized(text)).toBe("yes"),
  );

  it.each([
    ["-5", "5"],
    ["yes", "yes?"],
    ["a b", "ab"],
    ["(a)", "a"],
    ["c++", "c"],
    ["1.5", "15"],
  ])("differs for %j and %j", (one, other) => expect(normalized(one)).not.toBe(normalized(other)));

  it("does not change if it is normalized again", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => normalized(normalized(text)) === normalized(text)));
  });
});

describe("a vote", () => {
  it("is compared letter by letter if it must be exact", () => {
    expect(voteOf("Yes", { by: "exact" })).not.toBe(voteOf("yes", { by: "exact" }));
  });

  it.each(["", "  ", '""', "..."])("is not cast by an answer without content: %j", (text) => {
    expect(voteOf(text, { by: "normalized" })).toBeNull();
  });

  it("by a key of the JSON is found in fences and between words, whatever else the JSON has", () => {
    const by = { by: "json_key", key: "verdict.label" } as const;
    const answers = [
      '{"verdict":{"label":"Guilty"},"why":"a"}',
      'Sure:\n```json\n{"why":"b","verdict":{"label":"guilty."}}\n```\nDone.',
      'I think {"verdict":{"label":"GUILTY"}} is right.',
    ];
    expect(new Set(answers.map((text) => voteOf(text, by)))).toEqual(new Set(["guilty"]));
  });

  it("by a key takes numbers as numbers are written, and objects whatever the order of their members", () => {
    const by = { by: "json_key", key: "x" } as const;
    expect(voteOf('{"x":3}', by)).toBe(voteOf('{"x":"3"}', by));
    expect(voteOf('{"x":{"a":1,"b":[2]}}', by)).toBe(voteOf('{"x":{"b":[2],"a":1}}', by));
    expect(voteOf('{"x":false}', by)).toBe("false");
  });

  it.each(["no JSON", '{"y":1}', '{"x":null}', '{"x":""}', "[1]", '{"x"'])(
    "by a key is not cast by an answer without the key: %j",
    (text) => expect(voteOf(text, { by: "json_key", key: "x" })).toBeNull(),
  );

  it("never reads what an object inherits", () => {
    expect(voteOf("{}", { by: "json_key", key: "constructor.name" })).toBeNull();
    expect(valueAt({ a: "text" }, "a.length")).toBeUndefined();
  });

  it("of a long answer is a short text that differs with any letter", () => {
    const long = "word ".repeat(VOTE_KEY_CHARS_MAX).trim();
    const votes = [long, `${long} x`, `${long} y`, long.replace("word", "ward")].map((text) =>
      voteOf(text, { by: "normalized" }),
    );
    expect(new Set(votes).size).toBe(4);
    expect(Math.max(...votes.map((vote) => vote?.length ?? 0))).toBeLessThan(VOTE_KEY_CHARS_MAX);
    expect(voteOf(long.toUpperCase(), { by: "normalized" })).toBe(votes[0]);
  });
});

describe("the JSON of an answer", () => {
  it("is not read if it is too long, or nests too deeply", () => {
    const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
    expect(jsonInAnswer(nested(ANSWER_JSON_DEPTH_MAX))).toBeDefined();
    expect(jsonInAnswer(nested(ANSWER_JSON_DEPTH_MAX + 2))).toBeUndefined();
    expect(jsonInAnswer(nested(200_000))).toBeUndefined();
    expect(jsonInAnswer(`"${"x".repeat(ANSWER_JSON_CHARS_MAX - 2)}"`)).toBeDefined();
    expect(jsonInAnswer(`"${"x".repeat(ANSWER_JSON_CHARS_MAX - 1)}"`)).toBeUndefined();
  });

  it("has one canonical text for equal values", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
    expect(canonicalJson({ b: 1, a: { d: 2, c: 3 } })).toBe('{"a":{"c":3,"d":2},"b":1}');
  });
});
