import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyAt, shortText } from "../../../../src/text/json/key.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** What the bytes between two quotes are as JSON; undefined if they are none. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(`"${decoder.decode(bytes)}"`);
  } catch {
    return undefined;
  }
}

/** Bytes of which many are printable, so that some texts are plain. */
const someBytes = fc.uint8Array({ maxLength: 40, min: 0x10, max: 0x90 });

describe("shortText", () => {
  it("is the value of a JSON text, or leaves the bytes to the parser", () => {
    fc.assert(
      fc.property(someBytes, (bytes) => {
        const text = shortText(bytes, 0, bytes.length);
        if (text !== null) expect(text).toBe(parsed(bytes));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    ["", ""],
    ["chat.completion", "chat.completion"],
    ["x".repeat(32), "x".repeat(32)],
    ["x".repeat(33), null],
    ["a~", "a~"],
    ["a\u007f", "a\u007f"],
    ["ä", null],
    ['a"b', null],
    ["a\\nb", null],
    ["a\u001fb", null],
  ])("reads %j as %j", (written, expected) => {
    const bytes = encoder.encode(written);
    expect(shortText(bytes, 0, bytes.length)).toBe(expected);
    // Once more, when it may be kept.
    expect(shortText(bytes, 0, bytes.length)).toBe(expected);
  });
});

describe("keyAt", () => {
  it("decodes any text as the parser does", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const bytes = encoder.encode(JSON.stringify(text));
        expect(keyAt(bytes, 1, bytes.length - 1)).toBe(JSON.parse(decoder.decode(bytes)));
      }),
      { numRuns: 200 },
    );
  });
});
