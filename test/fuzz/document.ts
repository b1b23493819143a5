/** What the gateway's OpenAPI document says of its routes, as far as requests are drawn from it. */
import { z } from "zod";

export type Schema = { readonly [keyword: string]: unknown };

export type Parameter = { name: string; in: string; schema: Schema };

export type Body = { type: string; schema: Schema };

export type Operation = {
  method: string;
  path: string;
  /** Whether it needs no credential. */
  isOpen: boolean;
  parameters: readonly Parameter[];
  bodies: readonly Body[];
};

/** All operations, and the schemas that theirs refer to by name. */
export type Surface = { operations: readonly Operation[]; schemas: ReadonlyMap<string, Schema> };

const schema = z.record(z.string(), z.unknown());
const documentForm = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        parameters: z
          .array(z.looseObject({ name: z.string(), in: z.string(), schema: schema.default({}) }))
          .default([]),
        security: z.array(z.unknown()).default([]),
        requestBody: z.looseObject({ content: z.record(z.string(), z.looseObject({ schema })) }).optional(),
      }),
    ),
  ),
  components: z.looseObject({ schemas: z.record(z.string(), schema) }),
});

/** Reads the document. Throws if it has another form. */
export function surfaceOf(document: unknown): Surface {
  const { paths, components } = documentForm.parse(document);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, security, requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      isOpen: security.length === 0,
      parameters,
      bodies: Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => ({ type, schema })),
    })),
  );
  return { operations, schemas: new Map(Object.entries(components.schemas)) };
}
