import { describe, expect, it } from "vitest";
import { jsonTextOf } from "../../../src/entrypoints/plain-json.ts";
import { JSON_BODY_DEPTH_MAX } from "../../../src/limits.ts";

const ROOM = 10_000;

/** Why a value is refused; "" = it is not. */
function refusalOf(value: unknown, bytesMax: number = ROOM): string {
  const text = jsonTextOf(value, bytesMax);
  if (text.ok) return "";
  return text.reason.reason === "invalid_request" ? text.reason.message : text.reason.reason;
}

/** A list in a list in a list, so many levels in all. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

describe("the JSON of an argument", () => {
  it.each([
    [{ prompt: "a", model: null, stream: false, n: 1.5, list: [1, [2], {}] }],
    ["text"],
    [[]],
    [Object.assign(Object.create(null), { prompt: "a" })],
    [JSON.parse('{"__proto__": {"prompt": "a"}}')],
  ])("is what JSON.stringify writes: %j", (value) => {
    expect(jsonTextOf(value, ROOM)).toEqual({ ok: true, value: JSON.stringify(value) });
  });

  it("leaves out fields that are undefined, as JSON does", () => {
    expect(jsonTextOf({ prompt: "a", model: undefined }, ROOM)).toEqual({ ok: true, value: '{"prompt":"a"}' });
  });

  it.each([
    ["nothing", undefined],
    ["a function", { prompt: () => "a" }],
    ["a function that writes JSON", { toJSON: (): string => "a" }],
    ["a big integer", { n: 1n }],
    ["a number that is none", [Number.NaN]],
    ["a number without an end", [Number.POSITIVE_INFINITY]],
    ["a map", new Map([["prompt", "a"]])],
    ["a date", { at: new Date(0) }],
    ["bytes", new Uint8Array(4)],
    ["an error", new Error("a")],
    ["an object of a class", new URL("https://a.test")],
    ["an undefined element", [undefined]],
    ["a symbol", [Symbol("a")]],
  ])("is refused of %s", (_, value) => {
    expect(refusalOf(value)).toContain("has a value that JSON has not");
  });

  it("may have as many levels as a body over HTTP, and no more", () => {
    expect(refusalOf(nested(JSON_BODY_DEPTH_MAX))).toBe("");
    expect(refusalOf(nested(JSON_BODY_DEPTH_MAX + 1))).toContain(`deeper than ${JSON_BODY_DEPTH_MAX} levels`);
  });

  it("is refused of a value that refers to itself", () => {
    const circle: unknown[] = [];
    circle.push(circle);
    expect(refusalOf(circle)).toContain("refers to itself");
  });

  it.each([["x".repeat(98)], [Array.from({ length: 49 }, () => 1)], [{ [`${"k".repeat(93)}`]: 1 }]])(
    "may be as long as the bound: %j",
    (value) => {
      expect(JSON.stringify(value).length).toBeLessThanOrEqual(100);
      expect(refusalOf(value, 100)).toBe("");
    },
  );

  it.each([
    ["a text", "x".repeat(101)],
    ["a name", { ["k".repeat(101)]: 1 }],
    ["many values", Array.from({ length: 101 }, () => 1)],
    ["many empty objects", Array.from({ length: 101 }, () => ({}))],
    ["a list of holes", Object.assign([], { length: 4_000_000_000 })],
  ])("is refused above the bound, before it is written: %s", (_, value) => {
    expect(refusalOf(value, 100)).toBe("payload_too_large");
  });

  it("is refused of a small value whose text would fill the memory", () => {
    let value: unknown = "x".repeat(1_000);
    for (let level = 0; level < 30; level++) value = [value, value, value, value];
    expect(refusalOf(value, 32 * 1024 * 1024)).toBe("payload_too_large");
  });
});
