import { describe, expect, it } from "vitest";
import { readReply } from "../../../src/tools/reply.ts";

const JSON_TYPE = "application/json";

function resultOf(text: string, type: string | null = JSON_TYPE): unknown {
  const read = readReply(text, type);
  if (!read.ok) throw new Error(read.problem);
  return read.result;
}

describe("the result of a tool's answer", () => {
  it.each([
    ["the field result", '{"result":[1,{"a":null}]}', [1, { a: null }]],
    ["the field result, whatever is beside it", '{"result":"x","usage":{"ms":3}}', "x"],
    ["the field result, also when it is null", '{"result":null}', null],
    ["the field result once: what is in it stays", '{"result":{"result":1}}', { result: 1 }],
    ["an object without that field", '{"error":"no such page"}', { error: "no such page" }],
    ["an empty object", "{}", {}],
    ["a list", '[{"result":1}]', [{ result: 1 }]],
    ["a text in JSON", '"{\\"result\\":1}"', '{"result":1}'],
    ["a number", " 42\n", 42],
    ["null", "null", null],
  ])("is %s", (_, text, result) => expect(resultOf(text)).toEqual(result));

  it("is text as it stands where the answer says that it is text, though it looks like JSON", () => {
    expect(resultOf('{"result":1}', "text/plain; charset=utf-8")).toBe('{"result":1}');
    expect(resultOf("<p>42</p>", "TEXT/HTML")).toBe("<p>42</p>");
  });

  it("is JSON or text, whichever it is, where the answer names no type or another", () => {
    expect(resultOf('{"result":1}', null)).toBe(1);
    expect(resultOf("not JSON", null)).toBe("not JSON");
    expect(resultOf("", null)).toBe("");
    expect(resultOf("[1]", "application/octet-stream")).toEqual([1]);
    expect(resultOf("a,b", "application/csv")).toBe("a,b");
  });

  it("keeps keys that other languages' objects inherit, and inherits none", () => {
    expect(JSON.stringify(resultOf('{"__proto__":{"result":1},"a":2}'))).toBe('{"__proto__":{"result":1},"a":2}');
    expect(JSON.stringify(resultOf('{"result":{"toJSON":1,"constructor":2}}'))).toBe('{"toJSON":1,"constructor":2}');
  });
});

describe("an answer without a result", () => {
  it.each(["", "not JSON", '{"result":', '{"result":1} trailing', "{'result':1}"])(
    "is one that says it is JSON and is not: %j",
    (text) => {
      expect(readReply(text, "application/json; charset=utf-8").ok).toBe(false);
      expect(readReply(text, "application/problem+json").ok).toBe(false);
    },
  );

  it("is one that is nested deeper than anybody can write it down again", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect(readReply(nested(64), JSON_TYPE).ok).toBe(true);
    expect(readReply(nested(65), JSON_TYPE).ok).toBe(false);
    expect(readReply(`{"result":${nested(100_000)}}`, JSON_TYPE).ok).toBe(false);
  });
});
