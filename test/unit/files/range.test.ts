/** Range headers, applied to files of ten bytes and of none. */
import { describe, expect, it } from "vitest";
import { requestedRange } from "../../../src/files/range.ts";

const range = (firstByte: number, lastByte: number) => ({ kind: "range", firstByte, lastByte });

describe("a range of ten bytes", () => {
  it.each([
    ["bytes=0-0", range(0, 0)],
    ["bytes=0-9", range(0, 9)],
    ["bytes=0-10", range(0, 9)],
    ["bytes=3-", range(3, 9)],
    ["bytes=9-", range(9, 9)],
    ["bytes=-1", range(9, 9)],
    ["bytes=-10", range(0, 9)],
    ["bytes=-11", range(0, 9)],
    ["Bytes = 2 - 4", range(2, 4)],
    ["bytes=2-99999999999999999999", range(2, 9)],
  ])("is read from %s", (header, asked) => {
    expect(requestedRange(header, 10)).toEqual(asked);
  });

  it.each(["bytes=10-", "bytes=10-12", "bytes=-0"])("is unsatisfiable for %s", (header) => {
    expect(requestedRange(header, 10)).toEqual({ kind: "unsatisfiable" });
  });

  it.each([null, "", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "0-1"])(
    "is the whole where the header is %s",
    (header) => expect(requestedRange(header, 10)).toEqual({ kind: "whole" }),
  );
});

describe("a range of an empty file", () => {
  it("is unsatisfiable from any byte on, and its last bytes are the whole file", () => {
    expect(requestedRange("bytes=0-", 0)).toEqual({ kind: "unsatisfiable" });
    expect(requestedRange("bytes=-5", 0)).toEqual({ kind: "whole" });
  });
});
