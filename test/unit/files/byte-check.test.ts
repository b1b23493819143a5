/** Checks of bytes that pass by, whichever way these are cut. */
import { describe, expect, it } from "vitest";
import { allChecks, firstLineCheck, utf8Check } from "../../../src/files/byte-check.ts";
import type { ByteCheck } from "../../../src/files/byte-check.ts";
import { FIRST_LINE_BYTES_MAX } from "../../../src/limits.ts";
import type { Reason } from "../../../src/errors.ts";
import { bytesOf } from "../../support/forms.ts";

const objection: Reason = { reason: "invalid_request", message: "not like this", param: null };
const other: Reason = { reason: "invalid_request", message: "nor like that", param: null };

function verdict(check: ByteCheck, bytes: Uint8Array, chunkLength = 65_536): Reason | null {
  for (let at = 0; at < bytes.length; at += chunkLength) {
    const found = check.see(bytes.subarray(at, at + chunkLength));
    if (found !== null) return found;
  }
  return check.end();
}

describe("the first line", () => {
  it.each([
    ["an object", '{"a":1}\nnonsense'],
    ["an object without a line break", '{"a":1}'],
    ["an object behind blank lines", '\n \r\n\t{"a":1}\r\n'],
    ["an object behind a byte order mark", '\ufeff{"a":"é"}\n'],
    ["longer than what is looked at", `{"a":"${"x".repeat(2 * FIRST_LINE_BYTES_MAX)}`],
  ])("may be %s", (_, text) => {
    for (const length of [1, 2, 1_000_000])
      expect(verdict(firstLineCheck(objection), bytesOf(text), length)).toBeNull();
  });

  it.each([
    ["nothing", ""],
    ["blank to the end", " \n\n"],
    ["text", "hello\n{}"],
    ["cut off", '{"a":\n1}'],
    ["a list", "[1]\n"],
    ["a number", "1\n"],
    ["over its end", '{"a":1} x\n'],
    ["a long text", "x".repeat(2 * FIRST_LINE_BYTES_MAX)],
  ])("may not be %s", (_, text) => {
    for (const length of [1, 2, 1_000_000])
      expect(verdict(firstLineCheck(objection), bytesOf(text), length)).toBe(objection);
  });
});

describe("UTF-8", () => {
  it("is what text of any script is, wherever it is cut", () => {
    const bytes = bytesOf("aé日😀\u2028");
    for (let length = 1; length <= bytes.length; length += 1) {
      expect(verdict(utf8Check(objection), bytes, length)).toBeNull();
    }
  });

  it.each([
    ["a byte of Latin-1", [0x61, 0xe9, 0x0a]],
    ["a character that is cut off", [0x61, 0xf0, 0x9f, 0x98]],
    ["half a surrogate pair", [0xed, 0xa0, 0x80]],
    ["an overlong form", [0xc0, 0xaf]],
  ])("is not %s", (_, bytes) => {
    expect(verdict(utf8Check(objection), new Uint8Array(bytes), 1)).toBe(objection);
  });
});

describe("several checks", () => {
  it("give the first objection of any of them", () => {
    const both = () => allChecks([firstLineCheck(objection), utf8Check(other)]);
    expect(verdict(both(), bytesOf('{"a":1}\n'))).toBeNull();
    expect(verdict(both(), bytesOf("x"))).toBe(objection);
    expect(verdict(both(), bytesOf('{"a":1}\n', new Uint8Array([0xff])))).toBe(other);
  });
});
