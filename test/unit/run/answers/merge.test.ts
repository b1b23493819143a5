/** Combining answers as one text, or as one JSON value whose conflicts are listed. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MergeSpec } from "../../../../src/run/answers/merge.ts";
import { MERGE_CHARS_MAX, MERGE_CONFLICTS_SHOWN } from "../../../../src/limits.ts";
import { expectLinear } from "../../../support/growth.ts";
import { combined, membersOf } from "./members.ts";

const concat: MergeSpec = { strategy: "merge", mode: "concat", separator: "\n---\n" };
const json: MergeSpec = { strategy: "merge", mode: "json" };
const jsonOf = (...values: unknown[]) => combined(json, membersOf(values.map((value) => JSON.stringify(value))));

describe("texts", () => {
  it("are joined in input order, without those of failed members", () => {
    expect(combined(concat, membersOf(["a", null, "b"]))).toMatchObject({
      output: "a\n---\nb",
      merged: 2,
      left_out: [],
    });
  });

  it("have no output if nobody has answered", () => {
    expect(combined(concat, membersOf([null]))).toMatchObject({ output: null, merged: 0 });
  });

  it("that do not fit are left out, each by itself", () => {
    const half = "x".repeat(MERGE_CHARS_MAX / 2);
    const result = combined(concat, membersOf([half, `${half}x`, half, "y"]));
    expect(result).toMatchObject({ merged: 2, left_out: [1, 3] });
  });
});

it("compares each element of a list once, however many answers add to it", () => {
  const answers = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ list: [`${at}`.padEnd(300, "x")], text: at }));
  expectLinear(8_000, (count) => {
    const members = membersOf(answers(count).map((each) => JSON.stringify(each)));
    return () => combined(json, members);
  });
  expect(jsonOf(...answers(3_000))).toMatchObject({ merged: 3_000, conflicts_in_all: 2_999 });
});

describe("JSON answers", () => {
  it("are merged member by member, and arrays are joined without repeats", () => {
    expect(jsonOf({ a: { x: 1 }, list: [1, { k: 2 }] }, { a: { y: 2 }, list: [{ k: 2 }, 3], b: null })).toMatchObject({
      output: { a: { x: 1, y: 2 }, list: [1, { k: 2 }, 3], b: null },
      conflicts: [],
      merged: 2,
    });
  });

  it("that differ keep the first value and list the conflict with both answers", () => {
    expect(jsonOf({ a: { b: 1 } }, { a: { b: 1 } }, { a: { b: 2 } })).toMatchObject({
      output: { a: { b: 1 } },
      conflicts: [{ path: "a.b", kept: 1, kept_from: 0, other: 2, other_from: 2 }],
      conflicts_in_all: 1,
    });
    expect(jsonOf({ a: [1] }, { a: { b: 1 } })).toMatchObject({
      conflicts: [{ path: "a", kept: [1], other: { b: 1 } }],
    });
  });

  it("name the answer that a value came from, not the first of all", () => {
    expect(jsonOf({}, { a: 1 }, { a: 2 })).toMatchObject({ conflicts: [{ kept_from: 1, other_from: 2 }] });
  });

  it("without JSON are left out", () => {
    expect(combined(json, membersOf(["none", '{"a":1}', null]))).toMatchObject({
      output: { a: 1 },
      left_out: [0],
      merged: 1,
    });
  });

  it("with members that JavaScript gives a meaning are merged like any other", () => {
    const result = combined(json, membersOf(['{"__proto__":{"x":1},"constructor":1}', '{"__proto__":{"y":2}}']));
    expect(JSON.stringify(result)).toContain('{"__proto__":{"x":1,"y":2},"constructor":1}');
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });

  it("equal themselves if they are merged with themselves", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), (value) => {
        const once = jsonOf(value);
        expect(jsonOf(value, value)).toEqual({ ...once, merged: 2 });
      }),
    );
  });

  it("have a bounded list of conflicts, and their number", () => {
    const wide = (value: number) =>
      Object.fromEntries(Array.from({ length: MERGE_CONFLICTS_SHOWN + 1 }, (_, at) => [`k${at}`, value]));
    const result = jsonOf(wide(1), wide(2));
    expect(result).toMatchObject({ conflicts_in_all: MERGE_CONFLICTS_SHOWN + 1 });
    expect("conflicts" in result && result.conflicts.length).toBe(MERGE_CONFLICTS_SHOWN);
  });
});
