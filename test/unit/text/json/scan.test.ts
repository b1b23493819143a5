import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { valueEnd } from "../../../../src/text/json/grammar.ts";
import {
  firstElement,
  JSON_MEMBERS_MAX,
  nextElement,
  readObject,
  scanObject,
  valueAtPath,
} from "../../../../src/text/json/scan.ts";
import { JSON_LEVELS_MAX, jsonFault } from "../../../../src/text/json/validate.ts";
import { jsonText, objectText } from "./texts.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const bytesOf = (text: string) => encoder.encode(text);

/** Whether a strict decoder and `JSON.parse` accept the same bytes. */
function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(decoder.decode(bytes));
    return true;
  } catch {
    return false;
  }
}

function scanned(bytes: Uint8Array) {
  const scan = scanObject(bytes);
  if (!scan.ok) throw new Error(scan.problem);
  return scan.object;
}

function problemOf(bytes: Uint8Array): string | null {
  const scan = scanObject(bytes);
  return scan.ok ? null : scan.problem;
}

describe("jsonFault", () => {
  it("accepts every text that is JSON", () => {
    fc.assert(
      fc.property(jsonText, (text) => jsonFault(bytesOf(text)) === null),
      { numRuns: 500 },
    );
  });

  it("agrees with JSON.parse on texts with a byte or two changed or cut off", () => {
    const interesting = fc.constantFrom(
      ...bytesOf('"\\{}[],: \n01e.-+tfnu/\0'),
      0xc3,
      0xa9,
      0xed,
      0xa0,
      0xf0,
      0x80,
      0xff,
    );
    const change = fc.tuple(fc.nat(), interesting);
    let refused = 0;
    fc.assert(
      fc.property(jsonText, fc.array(change, { maxLength: 2 }), fc.nat(), fc.boolean(), (text, changes, cut, isCut) => {
        const whole = bytesOf(text);
        for (const [at, byte] of changes) if (whole.length > 0) whole[at % whole.length] = byte;
        const bytes = isCut ? whole.subarray(0, cut % (whole.length + 1)) : whole;
        if (jsonFault(bytes) !== null) refused += 1;
        expect(jsonFault(bytes) === null).toBe(isJson(bytes));
      }),
      { numRuns: 2_000 },
    );
    expect(refused).toBeGreaterThan(500);
  });

  it.each([
    ["", 0, "a value"],
    ['{"a":1,}', 7, "a key in double quotes"],
    ["{,}", 1, "a key in double quotes or }"],
    ['{"a" 1}', 5, ":"],
    ['{"a":1 "b":2}', 7, ", or }"],
    ["[1 2]", 3, ", or ]"],
    ["[1}", 2, ", or ]"],
    ["{} {}", 3, "the end"],
    ['{"a":"x', 7, 'a closing "'],
    ['{"a":"x\ny"}', 7, "control characters in texts to be escaped"],
    ['{"a":"x\0"}', 7, "control characters in texts to be escaped"],
    ['{"a":"\\x"}', 6, "a valid escape after the backslash"],
    ['{"a":"\\u12g4"}', 6, "a valid escape after the backslash"],
    ['{"a":01}', 6, ", or }"],
    ['{"a":1.}', 7, "a number"],
    ['{"a":-}', 6, "a number"],
    ['{"a":NaN}', 5, "a value"],
    ["\ufeff{}", 0, "a value"],
  ])("places the fault of %j at byte %d and expects %s", (text, at, expected) => {
    expect(jsonFault(bytesOf(text))).toEqual({ at, expected });
  });

  it.each([
    ["an overlong form", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a sequence cut short", [0xe6, 0xbc]],
    ["a continuation alone", [0x80]],
    ["a character above the last", [0xf4, 0x90, 0x80, 0x80]],
  ])("refuses %s in UTF-8", (_, broken) => {
    const bytes = new Uint8Array([0x22, 0x61, ...broken, 0x22]);
    expect(jsonFault(bytes)).toEqual({ at: 2, expected: "well-formed UTF-8" });
  });

  it("accepts nesting up to its limit, and refuses any deeper text", () => {
    const nested = (levels: number) => bytesOf("[".repeat(levels) + "]".repeat(levels));
    expect(jsonFault(nested(JSON_LEVELS_MAX))).toBeNull();
    expect(jsonFault(nested(JSON_LEVELS_MAX + 1))).toMatchObject({ at: JSON_LEVELS_MAX });
    expect(jsonFault(nested(100_000))).toMatchObject({ at: JSON_LEVELS_MAX });
    expect(jsonFault(bytesOf('{"a":'.repeat(100_000)))).toMatchObject({ at: JSON_LEVELS_MAX * 5 });
  });

  it("reads a view of a larger buffer", () => {
    const whole = bytesOf('garbage{"a":"some longer text"}garbage');
    expect(jsonFault(whole.subarray(7, 31))).toBeNull();
  });
});

describe("scanObject", () => {
  it("finds the members that JSON.parse finds, and their texts", () => {
    fc.assert(
      fc.property(objectText, (text) => {
        const bytes = bytesOf(text);
        const object = scanned(bytes);
        const parsed: Record<string, unknown> = JSON.parse(text);
        const read = object.members.map(({ name, start, end }) => [
          name,
          JSON.parse(decoder.decode(bytes.subarray(start, end))),
        ]);
        expect(Object.fromEntries(read)).toEqual(parsed);
        expect(object.duplicate).toBeNull();
        // The second way to read an object, used for the inner ones, finds the same.
        expect(readObject(bytes, object.start)).toEqual(object);
      }),
      { numRuns: 500 },
    );
  });

  it("decodes keys that are written with escapes", () => {
    const bytes = bytesOf('{"mod\\u0065l":"x","\\u00e9\\n":1,"\\ud83d\\ude00":2}');
    expect(scanned(bytes).members.map(({ name }) => name)).toEqual(["model", "é\n", "😀"]);
  });

  it("reports a repeated name, however it is written and among how many members", () => {
    expect(scanned(bytesOf('{"model":1,"mod\\u0065l":2}')).duplicate).toBe("model");
    const many = Array.from({ length: 50 }, (_, at) => `"k${at}":1`);
    expect(scanned(bytesOf(`{${many.join(",")}}`)).duplicate).toBeNull();
    expect(scanned(bytesOf(`{${many.join(",")},"k7":2}`)).duplicate).toBe("k7");
  });

  it("reads the last of two members of one name, as JSON.parse does", () => {
    const bytes = bytesOf('{"a":{"b":1},"a":{"b":2}}');
    const found = valueAtPath(bytes, scanned(bytes), ["a", "b"]);
    expect(found && decoder.decode(bytes.subarray(found.start, found.end))).toBe("2");
  });

  it("names the kind of every value", () => {
    const kinds = scanned(bytesOf('{"a":{},"b":[],"c":"","d":-1,"e":true,"f":false,"g":null}')).members.map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(["object", "array", "text", "number", "boolean", "boolean", "null"]);
  });

  it("finds values by their path, and returns null for a missing name", () => {
    const bytes = bytesOf('{ "usage" : { "cost" : 0.5 , "x" : [ ] } , "n" : 1 }');
    const object = scanned(bytes);
    expect(valueAtPath(bytes, object, ["usage", "cost"])).toMatchObject({ kind: "number", start: 23, end: 26 });
    expect(valueAtPath(bytes, object, ["usage", "none"])).toBeNull();
    expect(valueAtPath(bytes, object, ["n", "cost"])).toBeNull();
    expect(valueAtPath(bytes, object, ["usage", "x", "y"])).toBeNull();
  });

  it.each(["[]", '"text"', "1", " null "])("refuses %s, which is not an object", (text) => {
    expect(problemOf(bytesOf(text))).toBe("is not a JSON object");
  });

  it("describes a fault by line and column, quoting one printable character", () => {
    expect(problemOf(bytesOf('{\n  "a": x\n}'))).toBe(
      'is not JSON: found "x" at line 2, column 8 (byte 9); expected a value',
    );
    expect(problemOf(bytesOf("\n\0"))).toBe(
      "is not JSON: found the byte 0x00 at line 2, column 1 (byte 1); expected a value",
    );
    expect(problemOf(bytesOf('{"a":'))).toBe(
      "is not JSON: the text ends at line 1, column 6 (byte 5); expected a value",
    );
    expect(problemOf(bytesOf("\n"))).toBe("is not JSON: the text ends at line 2, column 1 (byte 1); expected a value");
  });

  it("reads members up to its limit and no more", () => {
    const wide = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":[${at}]`).join(",")}}`;
    expect(scanned(bytesOf(wide(JSON_MEMBERS_MAX))).members).toHaveLength(JSON_MEMBERS_MAX);
    expect(problemOf(bytesOf(wide(JSON_MEMBERS_MAX + 1)))).toBe(`has more than ${JSON_MEMBERS_MAX} fields`);
    expect(readObject(bytesOf(wide(JSON_MEMBERS_MAX)), 0)?.members).toHaveLength(JSON_MEMBERS_MAX);
    expect(readObject(bytesOf(wide(JSON_MEMBERS_MAX + 1)), 0)).toBeNull();
  });
});

describe("elements of an array", () => {
  it("are found one by one, with their ends", () => {
    fc.assert(
      fc.property(fc.array(jsonText, { maxLength: 5 }), (texts) => {
        const bytes = bytesOf(`[${texts.join(",")}]`);
        const found: unknown[] = [];
        for (let at = firstElement(bytes, 0); at !== -1;) {
          const end = valueEnd(bytes, at);
          found.push(JSON.parse(decoder.decode(bytes.subarray(at, end))));
          at = nextElement(bytes, end);
        }
        expect(found).toEqual(texts.map((text): unknown => JSON.parse(text)));
      }),
    );
  });

  it.each([
    ["no escapes", "x".repeat(500)],
    ["quotes", 'a"'.repeat(300)],
    ["backslashes before the closing quote", `${"x".repeat(100)}${"\\".repeat(7)}`],
    ["quotes far apart", `${"x".repeat(90)}"`.repeat(5)],
  ])("end behind a long text with %s", (_, text) => {
    const written = JSON.stringify(text);
    expect(valueEnd(bytesOf(`[${written},1]`), 1)).toBe(1 + written.length);
  });
});
