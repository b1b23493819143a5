/** What a schema means here: as the standard says and as an independent validator finds, or it is refused. */
import { Validator } from "@cfworker/json-schema";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  SCHEMA_CHECK_STEPS_MAX,
  SCHEMA_NESTING_MAX,
  SCHEMA_PARTS_MAX,
  SCHEMA_PATTERN_STATES_MAX,
} from "../../../../src/limits.ts";
import { compileSchema } from "../../../../src/text/schema/compile.ts";
import { KEYWORDS, UNSUPPORTED } from "../../../../src/text/schema/keywords/table.ts";
import { runCounted } from "../../../../src/text/schema/steps.ts";

type Schema = Record<string, unknown>;

function problemOf(schema: Schema, value: unknown, stepsMax = SCHEMA_CHECK_STEPS_MAX): string | null {
  const compiled = compileSchema(schema);
  if (!compiled.ok) throw new Error(`${compiled.path}: ${compiled.problem}`);
  const found = runCounted((steps) => compiled.check(value, steps), stepsMax);
  return found === null || found === "too long" ? found : `${found.path}: ${found.problem}`;
}

function refusalOf(schema: Schema): string | null {
  const compiled = compileSchema(schema);
  return compiled.ok ? null : `${compiled.path}: ${compiled.problem}`;
}

/** From text, because an object with `then` could be taken for a promise. */
function conditional(condition: unknown, met: unknown, unmet: unknown): Schema {
  const [first, second, third] = [condition, met, unmet].map((schema) => JSON.stringify(schema));
  return JSON.parse(`{"if":${first},"then":${second},"else":${third}}`) as Schema;
}

/** By keyword: a schema, a value that fits, one that does not, and what is said of that. */
const EXAMPLES: Record<string, [schema: Schema, fits: unknown, misfits: unknown, problem: string]> = {
  type: [{ type: ["integer", "null"] }, 2, 2.5, ": expected null or integer, received number"],
  enum: [{ enum: [1, { a: [2], b: 3 }] }, { b: 3, a: [2] }, { a: [2] }, `: expected 1, {"a":[2],"b":3}`],
  const: [{ const: null }, null, 0, ": expected null"],
  minimum: [{ minimum: 3 }, 3, 2.9, ": expected a number from 3"],
  maximum: [{ maximum: 3 }, 3, 3.1, ": expected a number up to 3"],
  exclusiveMinimum: [{ exclusiveMinimum: 3 }, 3.1, 3, ": expected a number above 3"],
  exclusiveMaximum: [{ exclusiveMaximum: 3 }, 2.9, 3, ": expected a number below 3"],
  multipleOf: [{ multipleOf: 0.1 }, 0.3, 0.35, ": expected a multiple of 0.1"],
  minLength: [{ minLength: 2 }, "ab", "😀", ": expected at least 2 characters"],
  maxLength: [{ maxLength: 1 }, "😀", "ab", ": expected at most 1 characters"],
  pattern: [{ pattern: "^[A-Z]{2}$" }, "AB", "ABC", ": does not match the pattern ^[A-Z]{2}$"],
  $defs: [{ $defs: { a: { type: "null" } }, $ref: "#/$defs/a" }, null, 1, ": expected null, received number"],
  definitions: [{ definitions: { a: false }, not: { $ref: "#/definitions/a" } }, 1, undefined, ""],
  prefixItems: [{ prefixItems: [{ type: "string" }] }, ["a", 1], [1], "[0]: expected string, received number"],
  items: [{ items: { type: "string" } }, ["a"], ["a", 1], "[1]: expected string, received number"],
  additionalItems: [{ items: [true], additionalItems: false }, [1], [1, 2], "[1]: is not allowed"],
  contains: [
    { contains: { const: 1 }, maxContains: 1 },
    [1, 2],
    [2],
    ": expected at least 1 elements that fit contains, received 0",
  ],
  minItems: [{ minItems: 1 }, [1], [], ": expected at least 1 elements, received 0"],
  maxItems: [{ maxItems: 1 }, [1], [1, 2], ": expected at most 1 elements, received 2"],
  uniqueItems: [
    { uniqueItems: true },
    [1, "1"],
    [{ a: 1, b: 2 }, 3, { b: 2, a: 1 }],
    "[2]: is the same as the element 0",
  ],
  properties: [{ properties: { a: { type: "null" } } }, { b: 1 }, { a: 1 }, ".a: expected null, received number"],
  patternProperties: [
    { patternProperties: { "^x": { type: "null" } } },
    { y: 1 },
    { xy: 1 },
    ".xy: expected null, received number",
  ],
  additionalProperties: [
    { properties: { a: true }, additionalProperties: false },
    { a: 1 },
    { b: 1 },
    ".b: is not a name that the schema allows",
  ],
  propertyNames: [
    { propertyNames: { maxLength: 1 } },
    { a: 1 },
    { ab: 1 },
    ".ab: has a name that does not fit: expected at most 1 characters",
  ],
  required: [{ required: ["a"] }, { a: null }, { constructor: 1 }, ".a: is missing"],
  dependentRequired: [{ dependentRequired: { a: ["b"] } }, { b: 1 }, { a: 1 }, ".b: is missing"],
  dependentSchemas: [
    { dependentSchemas: { a: { minProperties: 2 } } },
    { b: 1 },
    { a: 1 },
    ": expected at least 2 names, received 1",
  ],
  minProperties: [{ minProperties: 1 }, { a: 1 }, {}, ": expected at least 1 names, received 0"],
  maxProperties: [{ maxProperties: 1 }, { a: 1 }, { a: 1, b: 2 }, ": expected at most 1 names, received 2"],
  allOf: [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 1.5, 3, ": expected a number up to 2"],
  anyOf: [
    { anyOf: [{ type: "null" }, { properties: { a: { type: "null" } }, type: "object" }] },
    null,
    { a: 1 },
    ".a: fits none of 2 choices; the nearest one: expected null, received number",
  ],
  oneOf: [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 1.5, 3, ": fits several choices of oneOf; expected exactly one"],
  not: [{ not: { type: "string" } }, 1, "a", ": fits a schema that it must not fit"],
  if: [conditional({ minimum: 5 }, { multipleOf: 5 }, { multipleOf: 2 }), 10, 3, ": expected a multiple of 2"],
  $ref: [
    { properties: { next: { $ref: "#" } }, required: ["id"] },
    { id: 1, next: { id: 2 } },
    { id: 1, next: {} },
    ".next.id: is missing",
  ],
};

describe("a schema", () => {
  it("has an example here for every keyword that is checked", () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual([...KEYWORDS.keys()].sort());
  });

  it.each(Object.entries(EXAMPLES))(
    "%s tells what fits, and what is wrong where",
    (_, [schema, fits, misfits, problem]) => {
      expect(problemOf(schema, fits)).toBeNull();
      if (misfits !== undefined) expect(problemOf(schema, misfits)).toBe(problem);
      expect(new Validator(schema as object, "2020-12").validate(fits).valid).toBe(true);
    },
  );

  it.each([...UNSUPPORTED.keys()])("with %s is refused, because it would mean more than is checked", (keyword) => {
    expect(refusalOf({ properties: { a: { [keyword]: "x" } } })).toMatch(/^\.properties\.a\.\S+: is not supported/);
  });

  it.each<[string, Schema, string]>([
    ["a type that is none", { type: "text" }, ".type: expected null, boolean"],
    ["a bound that is a text", { items: { minimum: "1" } }, ".items.minimum: expected a number"],
    ["a negative length", { maxLength: -1 }, ".maxLength: expected a whole number"],
    ["no schemas", { anyOf: [] }, ".anyOf: expected a list of schemas"],
    ["a list as a schema", { properties: { a: [] } }, ".properties.a: expected a schema"],
    [
      "a pattern that is none",
      { patternProperties: { "(": true } },
      ".patternProperties.(: Invalid regular expression",
    ],
    ["a reference to elsewhere", { $ref: "https://example.com/s" }, '.$ref: expected "#" or "#/…"'],
    ["a reference to nothing", { $ref: "#/$defs/a" }, ".$ref: expected"],
    ["a reference to what is inherited", { $ref: "#/constructor" }, ".$ref: expected"],
    ["a reference to itself", { $defs: { a: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" }, ": refers to itself"],
    ["a circle of references", { allOf: [{ anyOf: [{ not: { $ref: "#" } }] }] }, ": refers to itself"],
    ["a fault where nothing refers to", { $defs: { a: { type: 1 } } }, ".$defs.a.type: expected"],
  ])("with %s is refused", (_, schema, why) => {
    expect(refusalOf(schema)).toContain(why);
  });

  it("may have as many schemas inside as the bound", () => {
    const withParts = (parts: number): Schema => ({ allOf: Array.from({ length: parts - 1 }, () => ({})) });
    expect(refusalOf(withParts(SCHEMA_PARTS_MAX))).toBeNull();
    expect(refusalOf(withParts(SCHEMA_PARTS_MAX + 1))).toContain("more than");
  });
});

describe("patterns of a schema", () => {
  const withPatterns = (count: number): Schema => ({
    allOf: Array.from({ length: count }, () => ({ pattern: "a{999}" })),
  });

  it("have as many states together as the bound", () => {
    // A repetition of one character has a state for each.
    const count = Math.floor(SCHEMA_PATTERN_STATES_MAX / 999);
    expect(refusalOf(withPatterns(count))).toBeNull();
    expect(refusalOf(withPatterns(count + 1))).toContain("states together");
  });

  it("take steps of the check: a list of texts that each take long takes too long", () => {
    const schema = { items: { pattern: "(a|a?){200}b" } };
    expect(problemOf(schema, ["aab"])).toBeNull();
    expect(
      problemOf(
        schema,
        Array.from({ length: 1_000 }, () => `${"a".repeat(1_000)}b`),
      ),
    ).toBe("too long");
  });
});

describe("a check of bounded work", () => {
  it("ends where references multiply", () => {
    const $defs: Schema = { d0: { type: "string" } };
    for (let level = 1; level <= 60; level++) {
      const inner = { $ref: `#/$defs/d${level - 1}` };
      $defs[`d${level}`] = { anyOf: [{ not: inner }, inner, { allOf: [inner, inner] }] };
    }
    expect(problemOf({ $defs, not: { $ref: "#/$defs/d60" } }, 1)).toBe("too long");
  });

  it("ends where a schema and an answer multiply", { tags: ["slow"] }, () => {
    const allOf = Array.from({ length: SCHEMA_PARTS_MAX - 1 }, () => ({ minLength: 1 }));
    expect(problemOf({ allOf }, "x".repeat(1_000_000))).toBe("too long");
    const lists = Array.from({ length: 900 }, () => ({ items: true, uniqueItems: true }));
    expect(
      problemOf(
        { allOf: lists },
        Array.from({ length: 100_000 }, (_, at) => at),
      ),
    ).toBe("too long");
  });

  it("ends where schemas nest deeper than the stack may be used", () => {
    const $defs: Schema = { d0: true };
    for (let level = 1; level <= SCHEMA_NESTING_MAX; level++) $defs[`d${level}`] = { $ref: `#/$defs/d${level - 1}` };
    const from = (level: number): Schema => ({ $defs, $ref: `#/$defs/d${level}` });
    expect(problemOf(from(SCHEMA_NESTING_MAX - 1), 1)).toBeNull();
    expect(problemOf(from(SCHEMA_NESTING_MAX), 1)).toBe("too long");
  });

  it("has room for an ordinary schema and an answer of a megabyte", () => {
    const item = { type: "object", properties: { id: { type: "integer" }, text: { type: "string", maxLength: 200 } } };
    const schema = { type: "object", properties: { items: { type: "array", items: { ...item, required: ["id"] } } } };
    const items = Array.from({ length: 8_000 }, (_, id) => ({ id, text: "x".repeat(120) }));
    expect(problemOf(schema, { items })).toBeNull();
    expect(problemOf(schema, { items: [...items, { text: "" }] })).toBe(".items[8000].id: is missing");
  });
});

describe("random schemas", () => {
  const names = fc.constantFrom("a", "b", "c");
  const leaf = fc.oneof(
    fc.record({ type: fc.constantFrom("string", "integer", "number", "null", "boolean", "array", "object") }),
    fc.record({
      enum: fc.array(fc.constantFrom<unknown>(1, "a", null, true, [1], { a: 1 }), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ minimum: fc.integer({ min: -2, max: 2 }), exclusiveMaximum: fc.integer({ min: -2, max: 3 }) }),
    fc.record({ minLength: fc.nat(2), maxLength: fc.nat(3) }),
    fc.record({ pattern: fc.constantFrom("^a", "b$", "^[ab]*$", "") }),
    fc.record({ minItems: fc.nat(2), uniqueItems: fc.boolean() }),
    fc.record({ required: fc.array(names, { maxLength: 2 }), maxProperties: fc.nat(3) }),
    fc.boolean(),
  );
  const { schema } = fc.letrec<{ schema: unknown; inner: unknown }>((tie) => ({
    schema: fc.oneof({ maxDepth: 3, withCrossShrink: true }, leaf, tie("inner")),
    inner: fc.oneof(
      fc.record({ items: tie("schema"), prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
      fc.record({ properties: fc.dictionary(names, tie("schema")), additionalProperties: tie("schema") }),
      fc.record({ patternProperties: fc.dictionary(fc.constantFrom("^a", "b"), tie("schema")) }),
      fc.record({ contains: tie("schema"), minContains: fc.nat(2) }),
      fc.record({ allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
      fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
      fc.record({ oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
      fc.record({ not: tie("schema") }),
      fc.tuple(tie("schema"), tie("schema"), tie("schema")).map((parts) => conditional(...parts)),
      fc.record({ propertyNames: tie("schema"), dependentSchemas: fc.dictionary(names, tie("schema")) }),
    ),
  }));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(null, true, 0, 1, 2.5, "", "a", "ab", "b"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(names, tie("value"), { maxKeys: 3 }),
    ),
  }));

  it("mean here what they mean to an independent validator", () => {
    fc.assert(
      fc.property(schema, value, (inner, tested) => {
        const whole = { allOf: [inner] };
        const expected = new Validator(whole as object, "2020-12").validate(tested).valid;
        expect(problemOf(whole, JSON.parse(JSON.stringify(tested))) === null).toBe(expected);
      }),
      { numRuns: 3_000 },
    );
  });
});
