/** JSON that is validated in slices: whatever they cut, the result is that of one piece, and no slice is longer than it may be. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanObject, scanObjectInSlices } from "../../../../src/text/json/scan.ts";
import { JSON_LEVELS_MAX, jsonFault, jsonFaultInSlices, type JsonFault } from "../../../../src/text/json/validate.ts";
import { jsonText, objectText } from "./texts.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What sliced work finds, and how many pauses it has. */
function counted<T>(work: Generator<void, T, void>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const step = work.next();
    if (step.done === true) return { value: step.value, pauses };
  }
}

/** Fault and marks of one piece, and of slices of every size: their first cut is at every byte of the text. */
function expectSameAtEveryCut(bytes: Uint8Array): void {
  const whole = { at: [], max: 3 };
  const fault: JsonFault | null = jsonFault(bytes, whole);
  for (let size = 1; size <= bytes.length; size += 1) {
    const marks = { at: [], max: 3 };
    const { value } = counted(jsonFaultInSlices(bytes, size, marks));
    expect({ size, value, marks }).toEqual({ size, value: fault, marks: whole });
  }
}

/** Texts with something that a cut may break on every byte: keys, escapes, characters of up to four bytes, numbers, words. */
const TEXTS = [
  '{"a\\u00e9\\"k":"\\ud83d\\ude00\\\\","é漢😀":[true,false,null,-1.5e+10],"":{}}',
  ' [ [ ] , { } , "é漢😀é漢😀" , "\\\\\\\\\\"" , 0 ] ',
  '"\\u0301\\u0301\\u0301\\u0301"',
  '"the text ends',
  '"ends in a backslash\\',
  '{"a":"\\x"}',
  '{"ab\\u12g4":1}',
  '{"漢\u0001":1}',
  '[{"a":1},{"b":2}}',
];
const BROKEN_UTF8 = [0x22, 0x61, 0xe6, 0xbc, 0x22, 0x2c, 0x61];

describe("JSON in slices", () => {
  it.each(TEXTS)("has the fault and the members of one piece: %j", (text) => {
    expectSameAtEveryCut(bytesOf(text));
  });

  it("has them where its UTF-8 is broken", () => {
    expectSameAtEveryCut(new Uint8Array(BROKEN_UTF8));
  });

  it("has them for any text, also with bytes changed or cut off", () => {
    const interesting = fc.constantFrom(...bytesOf('"\\{}[],: \n01e.-+tfnu/\0'), 0xc3, 0xa9, 0xed, 0xa0, 0xf0, 0xff);
    const change = fc.tuple(fc.nat(), interesting);
    let refused = 0;
    fc.assert(
      fc.property(jsonText, fc.array(change, { maxLength: 2 }), fc.nat(), (text, changes, cut) => {
        const whole = bytesOf(text).slice(0, 200);
        for (const [at, byte] of changes) if (whole.length > 0) whole[at % whole.length] = byte;
        const bytes = cut % 3 === 0 ? whole.subarray(0, cut % (whole.length + 1)) : whole;
        if (jsonFault(bytes) !== null) refused += 1;
        expectSameAtEveryCut(bytes);
      }),
      { numRuns: 150 },
    );
    expect(refused).toBeGreaterThan(20);
  });

  it.each([
    ["an escaped text", JSON.stringify("x").slice(0, -1) + "\\u0301".repeat(500) + '"'],
    ["a plain text", `"${"word ".repeat(600)}"`],
    ["a text beyond ASCII", `"${"é漢😀".repeat(300)}"`],
    ["a long key", `{"${"k".repeat(3_000)}":1}`],
    ["many small values", `[${Array<string>(500).fill('{"a":1}').join(",")}]`],
  ])("pauses as often as %s has slices", (_, text) => {
    const bytes = bytesOf(text);
    const sliceBytes = 100;
    const { value, pauses } = counted(jsonFaultInSlices(bytes, sliceBytes));
    expect(value).toBeNull();
    // A slice ends behind the character or the value that it cuts, of at most ten bytes here.
    expect(pauses).toBeGreaterThanOrEqual(Math.floor(bytes.length / (sliceBytes + 10)));
    expect(pauses).toBeLessThanOrEqual(Math.ceil(bytes.length / sliceBytes));
  });

  it("is not mixed up with another text that is read in a pause", () => {
    const objects = bytesOf('{"a":'.repeat(50) + "1" + "}".repeat(50));
    const arrays = bytesOf("[".repeat(JSON_LEVELS_MAX) + "]".repeat(JSON_LEVELS_MAX));
    const work = jsonFaultInSlices(objects, 20);
    let pauses = 0;
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) {
        expect(step.value).toBeNull();
        break;
      }
      pauses += 1;
      expect(jsonFault(arrays)).toBeNull();
      expect(counted(jsonFaultInSlices(arrays, 300)).value).toBeNull();
    }
    expect(pauses).toBeGreaterThan(5);
  });

  it("is read as the object that one piece reads", () => {
    fc.assert(
      fc.property(objectText, fc.integer({ min: 1, max: 50 }), (text, size) => {
        const bytes = bytesOf(text);
        expect(counted(scanObjectInSlices(bytes, size)).value).toEqual(scanObject(bytes));
        const cut = bytes.subarray(0, -1);
        expect(counted(scanObjectInSlices(cut, size)).value).toEqual(scanObject(cut));
      }),
      { numRuns: 300 },
    );
  });
});
