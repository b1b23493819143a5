import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closingQuote, skipSpace, valueEnd, ValueSkipper } from "../../../../src/text/json/grammar.ts";
import { splitList, splittingList } from "../../../../src/text/json/split-list.ts";
import { jsonFault } from "../../../../src/text/json/validate.ts";
import { jsonText } from "./texts.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Where the value ends if it arrives in chunks of these sizes, and then whole. */
function endInChunks(bytes: Uint8Array, sizes: readonly number[]): number {
  const skipper = new ValueSkipper();
  const start = skipSpace(bytes, 0);
  skipper.open(bytes[start]);
  let chunkStart = start + 1;
  let ahead = 0;
  for (const size of [...sizes, bytes.length]) {
    const chunk = bytes.subarray(chunkStart, chunkStart + size);
    const at = ahead < chunk.length ? skipper.skip(chunk, ahead) : ahead;
    if (!skipper.isOpen) return chunkStart + at;
    ahead = at - chunk.length;
    chunkStart += chunk.length;
    if (chunkStart >= bytes.length) break;
  }
  return bytes.length;
}

describe("the form of a value", () => {
  const values = jsonText.filter((text) => text.trim() !== "");

  it("ends where strict validation has it end", () => {
    fc.assert(
      fc.property(values, (text) => {
        const bytes = encoder.encode(`${text.trim()},`);
        expect(jsonFault(bytes.subarray(0, -1))).toBeNull();
        expect(valueEnd(bytes, 0)).toBe(bytes.length - 1);
      }),
    );
  });

  it("ends at the same byte in any chunks", () => {
    fc.assert(
      fc.property(values, fc.array(fc.nat({ max: 9 }), { maxLength: 40 }), (text, sizes) => {
        const bytes = encoder.encode(text);
        expect(endInChunks(bytes, sizes)).toBe(valueEnd(bytes, skipSpace(bytes, 0)));
      }),
      { numRuns: 500 },
    );
  });

  it("of a string that does not end reaches the chunk's length, or one more behind a last backslash", () => {
    for (const long of ["", "x".repeat(100)]) {
      expect(closingQuote(encoder.encode(`${long}x`), 0)).toBe(long.length + 1);
      expect(closingQuote(encoder.encode(`${long}\\\\`), 0)).toBe(long.length + 2);
      expect(closingQuote(encoder.encode(`${long}\\`), 0)).toBe(long.length + 2);
    }
  });
});

describe("splitList", () => {
  const options = { fields: ["items"], elementsMax: 10, pieceBytesMin: 8 };

  it("gives an envelope and pieces that parse to the same value", () => {
    fc.assert(
      fc.property(fc.array(jsonText, { maxLength: 10 }), jsonText, (elements, other) => {
        const text = `{"a":${other},"items":[${elements.join(",")}],"b":${other}}`;
        const split = splitList(encoder.encode(text), options);
        const list = (split?.pieces ?? []).flatMap((piece): unknown[] => JSON.parse(`[${decoder.decode(piece)}]`));
        expect({ ...JSON.parse(decoder.decode(split?.envelope)), items: list }).toEqual(JSON.parse(text));
      }),
    );
  });

  it("pauses behind so many bytes of members and of elements, and finds the same", () => {
    const members = Array.from({ length: 1_000 }, (_, at) => `"m${at}":1`).join(",");
    const elements = Array.from({ length: 10 }, (_, at) => `"${"e".repeat(500)}${at}"`).join(",");
    for (const text of [`{"items":[1],${members}}`, `{"items":[${elements}]}`]) {
      const bytes = encoder.encode(text);
      const splitting = splittingList(bytes, { ...options, sliceBytes: 1_000 });
      let pauses = 0;
      let step = splitting.next();
      for (; step.done !== true; step = splitting.next()) pauses += 1;
      expect(step.value).toEqual(splitList(bytes, options));
      // A pause comes behind the member or element with which its slice is full: elements have half of one.
      expect(pauses).toBeGreaterThanOrEqual(Math.floor(bytes.length / 1_600));
      expect(pauses).toBeLessThanOrEqual(bytes.length / 1_000);
    }
  });

  it.each([
    ["no list", '{"a":[1]}'],
    ["two lists", '{"items":[1],"items":[2]}'],
    ["too many elements", `{"items":[${"1,".repeat(10)}1]}`],
    ["an escaped key", '{"items":[1],"\\u0061":1}'],
    ["a list that does not end", '{"items":[1,2'],
    ["an array around it", "[1]"],
  ])("leaves a body with %s to a reader of the whole", (_, text) => {
    expect(splitList(encoder.encode(text), options)).toBeNull();
  });
});
