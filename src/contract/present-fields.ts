/**
 * Parses objects by the fields that they have. zod runs the schema of every field, also if it is absent, and a call has about
 * three of two dozen fields: without the absent ones it is parsed in a fifth of the time.
 */
import type * as z from "zod";
import { FIELD_SETS_KEPT_MAX } from "../limits.ts";

/** A schema of objects, whose fields do not depend on each other. */
type ObjectSchema<Output> = {
  readonly shape: Readonly<Record<string, z.core.SomeType>>;
  safeParse: (value: unknown) => z.ZodSafeParseResult<Output>;
};

type Mask = Record<string, true>;

/** A parser that accepts, refuses and returns what its schema does. */
export class PresentFields<Output> {
  readonly #schema: ObjectSchema<Output>;
  readonly #pick: (mask: Mask) => Pick<ObjectSchema<Output>, "safeParse">;
  /** Schemas for the sets of fields that objects had, by the names of the fields. */
  readonly #schemas = new Map<string, Pick<ObjectSchema<Output>, "safeParse">>();
  /** Fields that matter if they are absent: they are required, or have a default. */
  #always: readonly string[] | null = null;

  /** @param pick The schema of some of the fields; the others are absent. */
  constructor(schema: ObjectSchema<Output>, pick: (mask: Mask) => Pick<ObjectSchema<Output>, "safeParse">) {
    this.#schema = schema;
    this.#pick = pick;
  }

  safeParse(value: unknown): z.ZodSafeParseResult<Output> {
    const read = typeof value === "object" && value !== null ? this.#schemaOf(value)?.safeParse(value) : undefined;
    // The whole schema makes the message: it names all fields that an object may have.
    return read?.success === true ? read : this.#schema.safeParse(value);
  }

  /** The schema of the fields that an object has; null if it has others, or too many sets of fields are known. */
  #schemaOf(value: object): Pick<ObjectSchema<Output>, "safeParse"> | null {
    const names = Object.keys(value);
    const set = names.join(" ");
    const known = this.#schemas.get(set);
    if (known !== undefined) return known;
    const { shape } = this.#schema;
    const areFields = names.every((name) => Object.hasOwn(shape, name));
    if (!areFields || this.#schemas.size >= FIELD_SETS_KEPT_MAX) return null;
    this.#always ??= Object.entries(shape).flatMap(([name, field]) => (isSilent(field) ? [] : [name]));
    const schema = this.#pick(Object.fromEntries([...names, ...this.#always].map((name) => [name, true as const])));
    this.#schemas.set(set, schema);
    return schema;
  }
}

/** Whether a field that is absent is accepted and adds nothing to the result. */
function isSilent(field: z.core.SomeType): boolean {
  const read = field._zod.run({ value: undefined, issues: [] }, {});
  return !(read instanceof Promise) && read.issues.length === 0 && read.value === undefined;
}
