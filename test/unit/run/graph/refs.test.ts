import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { partAt, referenceOf, tokensOf } from "../../../../src/run/graph/refs.ts";
import { expectLinear } from "../../../support/growth.ts";

const spellings = (text: string): string[] => [...tokensOf(text)].map(({ start, end }) => text.slice(start, end));

describe("the references of a text", () => {
  it("are found in order, in every form", () => {
    const forms = [
      "{{a.output}}",
      "{{a.output.json}}",
      "{{a.output.json.items[0].name}}",
      "{{ a.outputs }}",
      "{{item}}",
      "{{item.title}}",
      "$1",
      "${1}",
    ];
    expect(spellings(forms.join(" and "))).toEqual(forms);
  });

  it("name the task, the path and whether they mean every output", () => {
    expect(referenceOf("{{a-1.output.json.items.0.name}}")).toEqual({
      kind: "task",
      task: "a-1",
      every: false,
      path: ["items", "0", "name"],
      isShort: false,
    });
    expect(referenceOf("{{a.output.json}}")).toMatchObject({ path: [] });
    expect(referenceOf("{{a.output}}")).toMatchObject({ path: null });
    expect(referenceOf("{{a.outputs}}")).toMatchObject({ every: true });
    expect(referenceOf("{{item[2].x}}")).toEqual({ kind: "item", path: [2, "x"] });
    expect(referenceOf("{{item.output}}")).toEqual({ kind: "item", path: ["output"] });
    expect(referenceOf("{{itemized.output}}")).toMatchObject({ kind: "task", task: "itemized" });
  });

  it("take all digits of a number: $12 is task 12, never task 1 and a 2", () => {
    expect(referenceOf("$12")).toMatchObject({ task: "12", isShort: true });
    expect([...tokensOf("$12")]).toHaveLength(1);
    expect([...tokensOf("$1$2 ${1}2")].map(({ reference }) => reference)).toMatchObject([
      { task: "1" },
      { task: "2" },
      { task: "1" },
    ]);
  });

  it("are not amounts of money, other templates, shell variables or malformed paths", () => {
    const plain = [
      "$1.50",
      "$12.50",
      "$1,000",
      "$12,000",
      "$HOME ${HOME} $ 1",
      "{{user}} {{user.name}} {{a.result}}",
      "{{a.output.jsonx}} {{a.outputs.json}} {{a.output.}} {{item.}} {{item[x]}}",
      "{a.output} {{a.output} {{ }}",
    ];
    for (const text of plain) expect(spellings(text), text).toEqual([]);
    expect(spellings("It costs $1. Then $1, too.")).toEqual(["$1", "$1"]);
    expect(spellings("{{{a.output}}}")).toEqual(["{{a.output}}"]);
  });

  it("is one reference only if nothing else is there", () => {
    expect(referenceOf(" {{a.output}}")).toBeNull();
    expect(referenceOf("{{a.output}}{{b.output}}")).toBeNull();
    expect(referenceOf("")).toBeNull();
  });

  it("never overlap, in any text", () => {
    const piece = fc.constantFrom(
      "{{",
      "}}",
      "a.output",
      "item",
      ".json",
      ".x",
      "[0]",
      "$",
      "1",
      "2",
      "{",
      "}",
      ".",
      ",",
      " ",
      "é",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join("");
        let at = 0;
        for (const { start, end } of tokensOf(text)) {
          expect(start).toBeGreaterThanOrEqual(at);
          expect(end).toBeGreaterThan(start);
          expect(referenceOf(text.slice(start, end))).not.toBeNull();
          at = end;
        }
      }),
    );
  });

  it("are found in time linear in the text, whatever it has", { tags: ["slow"] }, () => {
    for (const hostile of ["{{", "{{a", "$1", "$1.", "{{a.output.json.", "$111"]) {
      expectLinear(200_000, (repeats) => {
        const text = hostile.repeat(repeats);
        return () => [...tokensOf(text)].length;
      });
    }
  });
});

describe("a part of a JSON value", () => {
  it("is found by names and indexes", () => {
    expect(partAt({ items: [{ name: "x" }] }, ["items", 0, "name"])).toBe("x");
    expect(partAt({ items: ["x", "y"] }, ["items", "1"])).toBe("y");
    expect(partAt({ a: null }, ["a"])).toBeNull();
    expect(partAt([1], [])).toEqual([1]);
  });

  it("is undefined if there is none, and is never an inherited property", () => {
    expect(partAt({}, ["constructor"])).toBeUndefined();
    expect(partAt({}, ["__proto__", "toString"])).toBeUndefined();
    expect(partAt("text", [0])).toBeUndefined();
    expect(partAt({ a: null }, ["a", "b"])).toBeUndefined();
  });
});
