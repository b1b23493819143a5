/** The shape of a JSON text, in one piece and in slices of any size. */
import { describe, expect, it } from "vitest";
import { excessIn, excessInSlices, type Excess } from "../../../../src/text/json/depth.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const BOUNDS = { levelsMax: 3, valuesMax: 8 };

/** The excess, and how many pauses its search had. */
function inSlicesOf(sliceBytes: number, text: string): { excess: Excess | null; pauses: number } {
  const look = excessInSlices(bytesOf(text), { ...BOUNDS, sliceBytes });
  for (let pauses = 0; ; pauses += 1) {
    const step = look.next();
    if (step.done === true) return { excess: step.value, pauses };
  }
}

const TEXTS: readonly (readonly [text: string, excess: Excess | null])[] = [
  ["", null],
  ["[[[1]]]", null],
  ["[[[[1]]]]", { of: "levels", at: 3 }],
  ['{"a":[{"b":[]}]}', { of: "levels", at: 11 }],
  ["[1,2,3,4,5,6,7,8]", null],
  ["[1,2,3,4,5,6,7,8,9]", { of: "values", at: 16 }],
  ['["a,[,\\",[[[[,,,,,,,,", "\\\\", "]"]', null],
  ['["\\\\", [[[0]]]]', { of: "levels", at: 9 }],
  ['["a string that does not end [[[[,,,,,,,,,', null],
  ['["ends in a backslash\\', null],
];

describe("the shape of a text", () => {
  it.each(TEXTS)("of %j exceeds its bounds at %o", (text, excess) => {
    expect(excessIn(bytesOf(text), BOUNDS)).toEqual(excess);
  });

  it.each(TEXTS)("of %j is the same in slices of any size", (text, excess) => {
    for (let size = 1; size <= text.length + 1; size += 1) expect(inSlicesOf(size, text).excess).toEqual(excess);
  });

  it("is looked at in as many slices as it is long, and no further than its first excess", () => {
    const spaces = " ".repeat(100);
    expect(inSlicesOf(10, spaces)).toEqual({ excess: null, pauses: 9 });
    expect(inSlicesOf(100, spaces).pauses).toBe(0);
    expect(inSlicesOf(10, `[[[[${spaces}`)).toEqual({ excess: { of: "levels", at: 3 }, pauses: 0 });
  });
});
