import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallBody } from "../../../../src/call.ts";
import {
  elementsOf,
  substituteBody,
  templatesOf,
  type Outputs,
  type Sources,
} from "../../../../src/run/graph/substitute.ts";

function sourcesOf(outputs: Record<string, Outputs>, changes: Partial<Sources> = {}): Sources {
  return {
    outputsOf: (task) => outputs[task] ?? null,
    item: null,
    charsMax: null,
    inject: "template",
    dependencies: Object.keys(outputs),
    totalCharsMax: 10_000,
    ...changes,
  };
}

function promptOf(prompt: string, sources: Sources): string | undefined {
  const result = substituteBody({ prompt }, sources);
  if (!result.ok) throw new Error(JSON.stringify(result.reason));
  return result.value.prompt;
}

describe("substitution", () => {
  it("inserts outputs, their JSON parts, all outputs of a foreach, and the element", () => {
    const sources = sourcesOf(
      { a: ["alpha"], j: ['{"n":{"x":[1,"two"]}}'], f: ["one", null, "three"], 1: ["first"] },
      { item: { value: { title: "T" } } },
    );
    expect(promptOf("<{{a.output}}>", sources)).toBe("<alpha>");
    expect(promptOf("<$1> <${1}>", sources)).toBe("<first> <first>");
    expect(promptOf("<{{j.output.json.n.x[1]}}> <{{j.output.json.n}}>", sources)).toBe('<two> <{"x":[1,"two"]}>');
    expect(promptOf("<{{f.outputs}}>", sources)).toBe("<one\n\nthree>");
    expect(promptOf("<{{item}}> <{{item.title}}>", sources)).toBe('<{"title":"T"}> <T>');
  });

  it("inserts text elements as they are, and reads a path in them as JSON", () => {
    expect(promptOf("<{{item}}>", sourcesOf({}, { item: { value: "plain" } }))).toBe("<plain>");
    expect(promptOf("<{{item.x}}>", sourcesOf({}, { item: { value: '{"x":5}' } }))).toBe("<5>");
  });

  it("never reads an inserted output for references", () => {
    const sources = sourcesOf({ a: ["$2 {{b.output}} {{item}} $&"], b: ["SECRET"], 2: ["SECRET"] });
    expect(promptOf("{{a.output}}", sources)).toBe("$2 {{b.output}} {{item}} $&");
  });

  it("never builds a reference from two pieces", () => {
    const sources = sourcesOf({ a: ["{{b"], b: ["SECRET"], 1: ["$"], 2: ["SECRET"] });
    expect(promptOf("{{a.output}}.output}} ${1}2", sources)).toBe("{{b.output}} $2");
  });

  it("leaves what is no reference of this graph as it is", () => {
    expect(promptOf("costs $5, {{item}}, {{x.output}}", sourcesOf({ a: ["A"] }))).toBe(
      "costs $5, {{item}}, {{x.output}}",
    );
  });

  it("inserts nothing for a dependency that has no output", () => {
    expect(promptOf("<{{a.output}}> <{{a.output.json.x}}>", sourcesOf({ a: [null] }))).toBe("<> <>");
  });

  it("cuts each output at its limit, and marks the cut", () => {
    const cut = (charsMax: number) => promptOf("{{a.output}}", sourcesOf({ a: ["abcdef"] }, { charsMax }));
    expect(cut(6)).toBe("abcdef");
    expect(cut(5)).toBe("abcd…");
    expect(cut(1)).toBe("…");
  });

  it("never leaves half a character at a cut", () => {
    const text = promptOf("{{a.output}}", sourcesOf({ a: ["ab😀cd"] }, { charsMax: 4 }));
    expect(text?.isWellFormed()).toBe(true);
  });

  it("fails, with the reference in the message, if the output is not JSON or has no such part", () => {
    for (const [output, problem] of [
      ["text", "not JSON"],
      ['{"y":1}', "no such part"],
    ]) {
      const result = substituteBody({ prompt: "{{a.output.json.x[0]}}" }, sourcesOf({ a: [output ?? ""] }));
      expect(result).toMatchObject({ ok: false, reason: { reason: "schema_violation" } });
      expect(JSON.stringify(result)).toContain("a.output.json.x[0]");
      expect(JSON.stringify(result)).toContain(problem);
    }
  });

  it("reads JSON inside a Markdown fence", () => {
    expect(promptOf("{{a.output.json.x}}", sourcesOf({ a: ['```json\n{"x":1}\n```'] }))).toBe("1");
  });

  it("accepts a text as long as its bound, and refuses one that is a character longer", () => {
    const result = (totalCharsMax: number) =>
      substituteBody({ prompt: "ab{{a.output}}{{a.output}}" }, sourcesOf({ a: ["12345"] }, { totalCharsMax }));
    expect(result(12)).toEqual({ ok: true, value: { prompt: "ab1234512345" } });
    expect(result(11)).toMatchObject({ ok: false, reason: { reason: "payload_too_large", bytesMax: 11 } });
  });

  it("stops at its bound: a hundred thousand references to a megabyte cost no more than one", () => {
    const megabyte = "x".repeat(1_000_000);
    const result = substituteBody(
      { prompt: "{{a.output}}".repeat(100_000) },
      sourcesOf({ a: [megabyte] }, { totalCharsMax: 1_500_000 }),
    );
    expect(result.ok).toBe(false);
  });

  it("reaches all texts of messages, and nothing else", () => {
    const image = { type: "image_url", image_url: { url: "data:{{a.output}}" } };
    const body: CallBody = {
      system: "S {{a.output}}",
      temperature: 0,
      params: { stop: "{{a.output}}" },
      messages: [
        { role: "assistant", content: "M {{a.output}}", name: "n" },
        { role: "user", content: [{ type: "text", text: "P {{a.output}}" }, image] },
        { role: "assistant", content: null },
      ],
    };
    const result = substituteBody(body, sourcesOf({ a: ["A"] }));
    expect(result).toEqual({
      ok: true,
      value: {
        ...body,
        messages: [
          { role: "assistant", content: "M A", name: "n" },
          { role: "user", content: [{ type: "text", text: "P A" }, image] },
          { role: "assistant", content: null },
        ],
      },
    });
    expect([...templatesOf(body)]).toEqual(["M {{a.output}}", "P {{a.output}}"]);
  });

  it("with markdown, puts a section per dependency before the prompt, or before the user's first message", () => {
    const sources = sourcesOf({ a: ["A"], b: [null], c: ["x", "y"] }, { inject: "markdown" });
    const sections = "## Result from a\nA\n\n## Result from c\nx\n\ny";
    expect(promptOf("Go", sources)).toBe(`${sections}\n\nGo`);
    const system = { role: "system", content: "Be short" };
    const user = { role: "user", content: "Go" };
    expect(substituteBody({ messages: [system, user] }, sources)).toEqual({
      ok: true,
      value: { messages: [system, { role: "user", content: sections }, user] },
    });
  });

  it("equals a naive reference: split at the tokens, replace each, join", () => {
    const literal = fc.constantFrom("text ", "$", "{{", "}}", "1", "é", "😀", "\n", ".output");
    const output = fc.string({ maxLength: 8 });
    const token = fc.constantFrom("{{a.output}}", "{{b.output}}", "${7}");
    fc.assert(
      fc.property(
        fc.array(fc.oneof(literal, token), { maxLength: 20 }),
        output,
        output,
        output,
        (pieces, a, b, seven) => {
          // A space on both sides keeps neighbours from forming other tokens.
          const texts = pieces.map((piece) => ` ${piece} `);
          const values: Record<string, string> = { "{{a.output}}": a, "{{b.output}}": b, "${7}": seven };
          const expected = pieces.map((piece) => ` ${values[piece] ?? piece} `).join("");
          expect(promptOf(texts.join(""), sourcesOf({ a: [a], b: [b], 7: [seven] }))).toBe(expected);
        },
      ),
    );
  });
});

describe("the elements of a foreach", () => {
  it("are those of the array at its path", () => {
    expect(elementsOf('{"items":["x",{"y":1}]}', ["items"], "find")).toEqual({ ok: true, value: ["x", { y: 1 }] });
    expect(elementsOf("[]", [], "find")).toEqual({ ok: true, value: [] });
  });

  it("are a failure that names the source if there is no array", () => {
    for (const output of ["text", '{"items":"x"}', "{}"]) {
      const result = elementsOf(output, ["items"], "find");
      expect(result).toMatchObject({ ok: false, reason: { reason: "schema_violation" } });
      expect(JSON.stringify(result)).toContain("find.output.json.items");
    }
  });
});
