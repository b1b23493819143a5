/** Parsing objects by the fields that they have: the result is always that of the whole schema. */
import * as z from "zod";
import { describe, expect, it } from "vitest";
import { PresentFields } from "../../../src/contract/present-fields.ts";
import { queryBody } from "../../../src/contract/query.ts";
import { strictFields } from "../../../src/contract/strict-fields.ts";
import { FIELD_SETS_KEPT_MAX } from "../../../src/limits.ts";
import { seeded } from "../../support/engine.ts";

type Parsed = z.ZodSafeParseResult<unknown>;

/** What a result says: its data, or its issues. */
const said = (read: Parsed): unknown => (read.success ? read.data : read.error.issues);

type Field = keyof ReturnType<typeof queryBody>["shape"];
const queryFields = () => new PresentFields(queryBody(), (mask: { [Name in Field]?: true }) => queryBody().pick(mask));

/** Values of which some fit each field of a call, and some none. */
const VALUES: readonly unknown[] = [
  ...["text", "", "up/echo", "fail", "low", "learned", "flex", true, false, null, 0, 1, 0.5, 50, -1],
  ...[[], [{ role: "user", content: "p" }], ["a", "b"], {}, { type: "object" }, { a: 1 }, undefined],
];

describe("PresentFields", () => {
  it("says of random calls what the whole schema says", () => {
    const random = seeded(7);
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
    const names = [...Object.keys(queryBody().shape), "unknown", "__proto__", "prompt model"];
    const parser = queryFields();
    let accepted = 0;
    for (let call = 0; call < 5_000; call++) {
      const fields = Array.from({ length: Math.floor(random() * 4) }, () => [pick(names) ?? "", pick(VALUES)] as const);
      const value = Object.fromEntries([["prompt", "p"], ...fields]);
      const read = parser.safeParse(value);
      expect(said(read), JSON.stringify(value)).toEqual(said(queryBody().safeParse(value)));
      if (read.success) accepted += 1;
    }
    expect(accepted).toBeGreaterThan(500);
  });

  it.each([null, 1, "text", [], [1], undefined])("says of %j what the whole schema says", (value) => {
    expect(said(queryFields().safeParse(value))).toEqual(said(queryBody().safeParse(value)));
  });

  it("keeps what absent fields say: that they are required, and their defaults", () => {
    const schema = strictFields({
      needed: z.string(),
      given: z.number().default(3),
      made: z
        .string()
        .optional()
        .transform((text) => text ?? "none"),
      free: z.boolean().optional(),
    });
    const fields = new PresentFields(schema, (mask: { [Name in keyof typeof schema.shape]?: true }) =>
      schema.pick(mask),
    );
    for (const value of [{}, { needed: "n" }, { needed: "n", free: true }, { free: false }, { needed: "n", given: 4 }])
      expect(said(fields.safeParse(value)), JSON.stringify(value)).toEqual(said(schema.safeParse(value)));
    expect(said(fields.safeParse({ needed: "n" }))).toEqual({ needed: "n", given: 3, made: "none" });
  });

  it("makes schemas for a bounded number of sets of fields, and parses the others as well", () => {
    const names = Array.from({ length: FIELD_SETS_KEPT_MAX + 10 }, (_, at) => `f${at}`);
    const schema = strictFields(Object.fromEntries(names.map((name) => [name, z.number().optional()])));
    let made = 0;
    const fields = new PresentFields(schema, (mask) => {
      made += 1;
      return schema.pick(mask);
    });
    for (const _ of ["once", "again"])
      for (const name of names) expect(said(fields.safeParse({ [name]: 1 }))).toEqual({ [name]: 1 });
    expect(made).toBe(FIELD_SETS_KEPT_MAX);
  });
});
