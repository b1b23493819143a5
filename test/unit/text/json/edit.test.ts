import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyPatches, editJson, type JsonEdit } from "../../../../src/text/json/edit.ts";
import { JSON_MEMBERS_MAX, scanObject } from "../../../../src/text/json/scan.ts";
import { objectText } from "./texts.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function edit(text: string, edits: readonly JsonEdit[]): string {
  const bytes = encoder.encode(text);
  const scan = scanObject(bytes);
  if (!scan.ok) throw new Error(scan.problem);
  return decoder.decode(editJson(bytes, scan.object, edits));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same edit on a parsed value. `Object.entries` and back, because a name may be `__proto__`. */
function editValue(value: unknown, path: readonly string[], json: string | null): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return json === null ? undefined : JSON.parse(json);
  if (!isObject(value) && json === null) return value;
  const entries = new Map(isObject(value) ? Object.entries(value) : []);
  if (rest.length === 0 && json === null) entries.delete(name);
  else if (entries.has(name) || json !== null) entries.set(name, editValue(entries.get(name), rest, json));
  return Object.fromEntries(entries);
}

const path = fc.constantFrom<readonly [string, ...string[]]>(
  ["a"],
  ["b"],
  ["__proto__"],
  ["a", "b"],
  ["a", "b", "c"],
  ["é"],
);
const json = fc.constantFrom("1", "12345678901234567890", '"x"', "null", "[]", '{ "k" : 1 }', null);

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

describe("editJson", () => {
  it("does to the text what the edit does to its value", () => {
    fc.assert(
      fc.property(objectText, path, json, (text, path, json) => {
        const edited = edit(text, [{ path, json }]);
        expect(JSON.parse(edited)).toEqual(editValue(JSON.parse(text), path, json));
      }),
      { numRuns: 1_000 },
    );
  });

  it("does several edits at once as it does them one by one", () => {
    const several = fc.uniqueArray(
      fc.record({
        path: fc.constantFrom<readonly [string, ...string[]]>(["a"], ["b"], ["c"], ["é"], ["d", "e"], ["d", "f"]),
        json,
      }),
      {
        selector: ({ path }) => path.join("."),
        maxLength: 6,
      },
    );
    fc.assert(
      fc.property(objectText, several, (text, edits) => {
        const expected = edits.reduce<unknown>(
          (value, { path, json }) => editValue(value, path, json),
          JSON.parse(text),
        );
        expect(JSON.parse(edit(text, edits))).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  it("keeps every byte outside a replaced value, and every one of its members' texts", () => {
    fc.assert(
      fc.property(objectText, json, (text, value) => {
        const bytes = encoder.encode(text);
        const scan = scanObject(bytes);
        if (!scan.ok || value === null) return;
        for (const member of scan.object.members) {
          const edited = editJson(bytes, scan.object, [{ path: [member.name], json: value }]);
          const before = decoder.decode(bytes.subarray(0, member.start));
          const after = decoder.decode(bytes.subarray(member.end));
          const tail = edited.length - (bytes.length - member.end);
          expect(sha256(decoder.decode(edited.subarray(0, member.start)))).toBe(sha256(before));
          expect(sha256(decoder.decode(edited.subarray(tail)))).toBe(sha256(after));
          expect(decoder.decode(edited.subarray(member.start, tail))).toBe(value);
        }
      }),
    );
  });

  it("returns the original text once an inserted member is removed", () => {
    fc.assert(
      fc.property(objectText, (text) => {
        const inserted = edit(text, [{ path: ["a new one"], json: "[1, 2]" }]);
        expect(edit(inserted, [{ path: ["a new one"], json: null }])).toBe(text);
      }),
    );
  });

  it.each([
    ["{}", [["a"], "1"], '{"a":1}'],
    ["{ \n }", [["a"], "1"], '{"a":1 \n }'],
    ['{"x": 1.0e+2 }', [["a"], "1"], '{"x": 1.0e+2,"a":1 }'],
    ['{"x": 12345678901234567890 , "a" :2 }', [["a"], "1"], '{"x": 12345678901234567890 , "a" :1 }'],
    ['{"x":1 , "a" : 2 , "y":3}', [["a"], null], '{"x":1 , "y":3}'],
    ['{ "a" : 2 , "y":3}', [["a"], null], '{ "y":3}'],
    ['{ "a" : 2 }', [["a"], null], "{  }"],
    ['{"x":1,"a":2 }', [["a"], null], '{"x":1 }'],
    ['{"a":1,"x":0,"\\u0061":2}', [["a"], null], '{"x":0}'],
    ['{"a":1,"a":2}', [["a"], "3"], '{"a":1,"a":3}'],
    ['{"x":1}', [["a", "b"], "true"], '{"x":1,"a":{"b":true}}'],
    ['{"a":null}', [["a", "b"], "true"], '{"a":{"b":true}}'],
    ['{"a":{"c": 1e2}}', [["a", "b"], "true"], '{"a":{"c": 1e2,"b":true}}'],
    ['{"x":1}', [["a", "b"], null], '{"x":1}'],
  ] as const)("makes of %s with %j %s", (text, [path, json], expected) => {
    expect(edit(text, [{ path, json }])).toBe(expected);
  });

  it("replaces, removes and inserts in one go", () => {
    const edits: JsonEdit[] = [
      { path: ["n"], json: null },
      { path: ["model"], json: '"m"' },
      { path: ["z"], json: null },
      { path: ["cap"], json: "5" },
      { path: ["o", "u"], json: "true" },
    ];
    expect(edit('{"n":1, "model":"long name", "k":12345678901234567890, "z":0}', edits)).toBe(
      '{"model":"m", "k":12345678901234567890,"cap":5,"o":{"u":true}}',
    );
  });

  it("does not edit an object with too many members", () => {
    const wide = `{"a":{${Array.from({ length: JSON_MEMBERS_MAX + 1 }, (_, at) => `"k${at}":1`).join(",")}}}`;
    expect(edit(wide, [{ path: ["a", "b"], json: "1" }])).toBe(wide);
  });

  it("returns the same bytes if nothing changes", () => {
    const bytes = encoder.encode('{"a":1}');
    expect(applyPatches(bytes, [])).toBe(bytes);
  });
});

describe("applyPatches", () => {
  it.each(["", "1", "x".repeat(64), "x".repeat(65), "ä", `${"x".repeat(63)}ä`, "x𝒳", "🙂".repeat(40)])(
    "puts %j where other bytes were",
    (text) => {
      const patches = [
        { start: 1, end: 3, text },
        { start: 3, end: 3, text },
        { start: 4, end: 5, text: "" },
      ];
      const patched = applyPatches(encoder.encode("abcdefg"), patches);
      expect(decoder.decode(patched)).toBe(`a${text}${text}dfg`);
    },
  );
});
