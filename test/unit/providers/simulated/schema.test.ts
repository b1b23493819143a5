import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Source, writeJson } from "../../../../src/providers/simulated/schema/write.ts";

const SOURCE: Source = { text: "a prompt", items: null };

function valueFor(schema: unknown, source = SOURCE): unknown {
  const written = writeJson(schema, source);
  if (!written.ok) throw new Error(written.message);
  return JSON.parse(written.json);
}

function refusalOf(schema: unknown): string {
  const written = writeJson(schema, SOURCE);
  return written.ok ? `followed with ${written.json}` : written.message;
}

describe("a value written for a schema", () => {
  it("has every property, of its type", () => {
    const properties = {
      name: { type: "string" },
      count: { type: "integer" },
      share: { type: "number", minimum: 0, maximum: 1 },
      done: { type: "boolean" },
      nothing: { type: "null" },
      tags: { type: "array", items: { type: "string" }, minItems: 2, maxItems: 2 },
      kind: { enum: ["x", "y"] },
      version: { const: 3 },
      maybe: { type: ["null", "string"] },
    };
    expect(valueFor({ type: "object", properties, additionalProperties: false })).toEqual({
      name: "a prompt",
      count: expect.any(Number),
      share: expect.any(Number),
      done: expect.any(Boolean),
      nothing: null,
      tags: ["a prompt", "a prompt"],
      kind: expect.stringMatching(/^[xy]$/),
      version: 3,
      maybe: "a prompt",
    });
  });

  it("depends on the schema and the text alone", () => {
    const schema = { type: "array", minItems: 20, items: { type: "integer" } };
    expect(valueFor(schema)).toEqual(valueFor(schema));
    expect(valueFor(schema, { text: "another", items: null })).not.toEqual(valueFor(schema));
  });

  it("has as many elements as asked for, within the schema's bounds", () => {
    const lengthOf = (schema: object, items: number) =>
      z.array(z.unknown()).parse(valueFor({ type: "array", items: {}, ...schema }, { text: "x", items })).length;
    expect([lengthOf({}, 0), lengthOf({}, 7), lengthOf({ minItems: 3 }, 2), lengthOf({ maxItems: 4 }, 9)]).toEqual([
      0, 7, 3, 4,
    ]);
  });

  it("has elements that differ where they must", () => {
    const items = { type: "integer", minimum: 1, maximum: 1_000_000 };
    const values = z
      .array(z.number())
      .parse(valueFor({ type: "array", uniqueItems: true, minItems: 5, items }, { text: "x", items: 5 }));
    expect(new Set(values).size).toBe(5);
    const one = { type: "array", uniqueItems: true, minItems: 2, items: { const: 1 } };
    expect(refusalOf(one)).toContain("too few different elements");
  });

  it("gives some words of a long text, others at other places", () => {
    const text = Array.from({ length: 200 }, (_, index) => `word${index}`).join(" ");
    const two = { a: { type: "string" }, b: { type: "string" } };
    const { a, b } = z
      .object({ a: z.string(), b: z.string() })
      .parse(valueFor({ properties: two }, { text, items: null }));
    expect(text).toContain(a);
    expect(text).toContain(b);
    expect(a).not.toBe(b);
    expect(a.split(" ")).toHaveLength(8);
  });

  it.each([
    [{ type: "string", minLength: 3, maxLength: 3 }, "ab", 3],
    [{ type: "string", minLength: 10 }, "ab", 10],
    [{ type: "string", maxLength: 1 }, "😀😀", 1],
    [{ type: "string", minLength: 6 }, "", 6],
    [{ type: "string", maxLength: 0 }, "ab", 0],
  ])("has the length of %j, in characters", (schema, text, length) => {
    expect(Array.from(z.string().parse(valueFor(schema, { text, items: null })))).toHaveLength(length);
  });

  it("has the formats that clients check", () => {
    const checks = {
      date: z.iso.date(),
      "date-time": z.iso.datetime(),
      time: z.iso.time(),
      duration: z.iso.duration(),
      email: z.email(),
      ipv4: z.ipv4(),
      ipv6: z.ipv6(),
      uri: z.url(),
      uuid: z.uuid(),
      hostname: z.hostname(),
    };
    for (const [format, check] of Object.entries(checks)) {
      for (let index = 0; index < 50; index++) {
        const value = valueFor({ type: "string", format }, { text: `prompt ${index}`, items: null });
        // The times of JSON Schema have a zone, those of zod none.
        check.parse(format === "time" ? String(value).replace("Z", "") : value);
      }
    }
  });

  it("is within the bounds of a number, at both ends and in steps", () => {
    const number = fc.record({
      type: fc.constantFrom("integer", "number"),
      from: fc.integer({ min: -50, max: 50 }),
      width: fc.integer({ min: 2, max: 40 }),
      isOpenBelow: fc.boolean(),
      isOpenAbove: fc.boolean(),
      step: fc.constantFrom(undefined, 1, 0.5),
    });
    fc.assert(
      fc.property(number, fc.string(), ({ type, from, width, isOpenBelow, isOpenAbove, step }, text) => {
        const lower = { [isOpenBelow ? "exclusiveMinimum" : "minimum"]: from };
        const upper = { [isOpenAbove ? "exclusiveMaximum" : "maximum"]: from + width };
        const schema = { type, ...lower, ...upper, ...(step === undefined ? {} : { multipleOf: step }) };
        const value = z.number().parse(valueFor(schema, { text, items: null }));
        if (type === "integer") expect(Number.isInteger(value)).toBe(true);
        if (step !== undefined) expect(value % step).toBeCloseTo(0);
        expect(isOpenBelow ? value > from : value >= from).toBe(true);
        expect(isOpenAbove ? value < from + width : value <= from + width).toBe(true);
      }),
    );
    expect(refusalOf({ type: "integer", exclusiveMinimum: 1, exclusiveMaximum: 2 })).toContain("no number");
  });

  it("follows references, unions and intersections", () => {
    const schema = {
      $defs: { id: { type: "integer", minimum: 5 }, "a/b": { const: "slash" } },
      properties: {
        id: { $ref: "#/$defs/id", maximum: 6, description: "beside a reference" },
        odd: { $ref: "#/$defs/a~1b" },
        one: { anyOf: [{ const: 1 }, { const: 2 }] },
        both: { allOf: [{ properties: { a: { const: 1 } } }, { properties: { b: { const: 2 } } }] },
      },
    };
    const value = valueFor(schema);
    expect(value).toMatchObject({ odd: "slash", both: { a: 1, b: 2 } });
    expect(value).toMatchObject({ id: expect.toSatisfy((id) => id === 5 || id === 6), one: expect.any(Number) });
  });

  it("ends although its schema contains itself", () => {
    const tree = {
      $defs: {
        node: {
          type: "object",
          properties: {
            name: { type: "string" },
            children: { type: "array", items: { $ref: "#/$defs/node" } },
            parent: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
          },
          required: ["name", "children", "parent"],
        },
      },
      $ref: "#/$defs/node",
    };
    const node = z.object({
      name: z.string(),
      get children() {
        return z.array(node);
      },
      get parent() {
        return z.nullable(node);
      },
    });
    expect(node.safeParse(valueFor(tree)).success).toBe(true);
  });

  it.each([
    [{ $ref: "#" }, "nested more than"],
    [{ $ref: "#/$defs/none" }, "leads to no schema"],
    [{ $ref: "https://example.com/schema" }, "leads to no schema"],
    [{ type: "array", minItems: 1e9 }, "more than 50000 values"],
    [{ type: "string", minLength: 1e9 }, "the length or format"],
    [{ type: "array", minItems: 11, items: { type: "string", minLength: 100_000 } }, "more than 1000000 characters"],
    [{ type: "string", pattern: "^(a+)+$" }, "pattern"],
    [{ properties: { a: { not: {} } } }, "not at $.a"],
    [{ properties: { a: false } }, "no value is valid at $.a"],
    [{ enum: [] }, "enum is empty"],
    [{ allOf: [{ type: "string" }, { type: "integer" }] }, "differ in type"],
    [{ type: "text" }, 'type "text"'],
    ["object", "no schema"],
  ])("is refused for %j", (schema, reason) => {
    expect(refusalOf(schema)).toContain(reason);
  });

  it("takes bounded time and never throws, whatever the schema is", () => {
    const keyword = fc.constantFrom(
      ...[
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "$ref",
        "enum",
        "required",
        "minItems",
        "minLength",
      ],
      ...["minimum", "maximum", "multipleOf", "prefixItems", "additionalProperties", "uniqueItems", "format"],
    );
    const { schema } = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom("object", "array", "string", "#", "#/items", "__proto__", 3, -1, 0, 1e308, true, false, null),
        fc.array(tie("schema"), { maxLength: 3 }),
        fc.dictionary(keyword, tie("schema"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(schema, fc.string(), (given, text) => {
        const written = writeJson(given, { text, items: null });
        if (written.ok) JSON.parse(written.json);
      }),
      { numRuns: 2_000 },
    );
  });
});
