/** The parts of the OpenAPI document that the reference page shows, parsed from the text that `/openapi.json` serves. */
import * as z from "zod";
import { ROUTES_PER_SLICE } from "../../limits.ts";
import type { Sliced } from "../../text/bytes/slices.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** A JSON schema. The page ignores keywords that are not listed here. */
export type Schema = {
  $ref?: string | undefined;
  type?: string | string[] | undefined;
  description?: string | undefined;
  enum?: (string | number | boolean | null)[] | undefined;
  format?: string | undefined;
  pattern?: string | undefined;
  minimum?: number | undefined;
  exclusiveMinimum?: number | undefined;
  maximum?: number | undefined;
  minLength?: number | undefined;
  maxLength?: number | undefined;
  minItems?: number | undefined;
  maxItems?: number | undefined;
  required?: string[] | undefined;
  properties?: Record<string, Schema> | undefined;
  additionalProperties?: boolean | Schema | undefined;
  items?: Schema | undefined;
  anyOf?: Schema[] | undefined;
  oneOf?: Schema[] | undefined;
  allOf?: Schema[] | undefined;
};

const number = z.number().optional();
const text = z.string().optional();

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({
    $ref: text,
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: text,
    enum: z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
    format: text,
    pattern: text,
    minimum: number,
    exclusiveMinimum: number,
    maximum: number,
    minLength: number,
    maxLength: number,
    minItems: number,
    maxItems: number,
    required: z.array(z.string()).optional(),
    properties: z.record(z.string(), schema).optional(),
    additionalProperties: z.union([z.boolean(), schema]).optional(),
    items: schema.optional(),
    anyOf: z.array(schema).optional(),
    oneOf: z.array(schema).optional(),
    allOf: z.array(schema).optional(),
  }),
);

const content = atFirstUse(() => z.record(z.string(), z.object({ schema: schema.optional() })).optional());

const parameter = atFirstUse(() =>
  z.object({
    name: z.string(),
    in: z.string(),
    required: z.boolean().optional(),
    description: text,
    schema: schema.optional(),
  }),
);
export type Parameter = z.infer<ReturnType<typeof parameter>>;

const answer = atFirstUse(() =>
  z.object({
    description: z.string(),
    headers: z.record(z.string(), z.object({ description: text })).optional(),
    content: content(),
  }),
);
export type Answer = z.infer<ReturnType<typeof answer>>;

const operation = atFirstUse(() =>
  z.object({
    tags: z.array(z.string()).optional(),
    summary: text,
    description: text,
    parameters: z.array(parameter()).optional(),
    requestBody: z.object({ required: z.boolean().optional(), description: text, content: content() }).optional(),
    responses: z.record(z.string(), answer()),
    security: z.array(z.unknown()).optional(),
    /** The guide in the source that explains the route. */
    "x-guide": text,
  }),
);
export type Operation = z.infer<ReturnType<typeof operation>>;

const info = atFirstUse(() => z.object({ title: z.string(), version: z.string(), description: text }));
const outline = atFirstUse(() =>
  z.object({
    info: info(),
    paths: z.record(z.string(), z.unknown()),
    components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
  }),
);
const operations = atFirstUse(() => z.record(z.string(), operation()));

export type Reference = {
  info: z.infer<ReturnType<typeof info>>;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

/** Parses the document, in slices. Throws if it is malformed, which is a bug: the gateway generated it. */
export function* referenceParsing(openApiText: string): Sliced<Reference> {
  const { info, paths, components } = outline().parse(JSON.parse(openApiText));
  yield;
  const parsed = yield* parsing(paths, operations());
  return { info, paths: parsed, components: { schemas: yield* parsing(components.schemas, schema) } };
}

function* parsing<T>(named: Record<string, unknown>, type: z.ZodType<T>): Sliced<Record<string, T>> {
  const parsed: [string, T][] = [];
  for (const [name, value] of Object.entries(named)) {
    parsed.push([name, type.parse(value)]);
    if (parsed.length % ROUTES_PER_SLICE === 0) yield;
  }
  return Object.fromEntries(parsed);
}

/** A route; `id` is its anchor on the page. */
export type Route = { id: string; method: string; path: string; operation: Operation };

/** Routes by their first tag, in the order of the document. */
export function routesByTag({ paths }: Reference): Map<string, Route[]> {
  const byTag = new Map<string, Route[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? "Other";
      const routes = byTag.get(tag) ?? [];
      byTag.set(tag, routes);
      routes.push({ id: anchorOf(`${method} ${path}`), method: method.toUpperCase(), path, operation });
    }
  }
  return byTag;
}

/** Turns a text into an anchor: lower-case letters, digits and hyphens. */
export function anchorOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
