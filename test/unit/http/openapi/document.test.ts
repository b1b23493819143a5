import { expect, it } from "vitest";
import { z } from "zod";
import { createApp } from "../../../../src/http/app.ts";
import { FAMILIES, ROUTES } from "../../../../src/contract/routes/table.ts";
import { generating, openApiText } from "../../../../src/http/openapi/document.ts";
import { ROUTES_PER_SLICE } from "../../../../src/limits.ts";

const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
});

const documented = (): string[] => {
  const { paths } = document.parse(JSON.parse(openApiText()));
  return Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
};

it("documents exactly the routes of the table, but for those without a heading", () => {
  const listed = FAMILIES.filter(({ heading }) => heading !== null).flatMap(({ routes }) => routes);
  const routes = listed.map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect(routes).toContain("post /batch");
  expect(documented().toSorted()).toEqual(routes.toSorted());
  const unlisted = FAMILIES.filter(({ heading }) => heading === null).flatMap(({ routes }) => routes);
  // Probes are the operator's: docs/probe.md has them.
  expect(unlisted.map(({ name }) => name)).toEqual(["GET /_probe/hold", "GET /_probe/:n"]);
});

it("generates one route at a time, and the same document each time", () => {
  const slices = [...slicesOf(generating())];
  expect(slices.at(-1)).toBe(openApiText());
  const routes = documented().length;
  // Each route is described before that, with a few others.
  expect(slices.length).toBeGreaterThanOrEqual(Math.floor(routes / ROUTES_PER_SLICE) + routes);
});

/** What each slice returns; undefined for all but the last. */
function* slicesOf(work: Generator<void, string, void>): Generator<string | undefined> {
  for (;;) {
    const { done, value } = work.next();
    yield value ?? undefined;
    if (done === true) return;
  }
}

it("mounts exactly the routes of the table, in its order", () => {
  // Middleware for every request is registered for all methods; it is no route.
  const mounted = createApp().routes.filter(({ method }) => method !== "ALL");
  const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path.replace(/\{.*?\}/g, "")}`;
  expect(mounted.map(nameOf)).toEqual(ROUTES.map(({ name }) => name));
});

it("combines no schemas that contradict each other", () => {
  const { components } = document.parse(JSON.parse(openApiText()));
  const combined = combinationsIn(components.schemas, "");
  expect(combined.length).toBeGreaterThan(2);
  const faults = combined.flatMap(({ at, parts }) => {
    const fields = parts.map((part) => Object.keys(propertiesOf(part, components.schemas)));
    const twice = fields.flat().filter((name, index, all) => all.indexOf(name) !== index);
    // Null fits one part, and not the others.
    const nulls = parts.filter((part) => JSON.stringify(part.type ?? null).includes('"null"'));
    return [...twice.map((name) => `${at}.${name}`), ...(nulls.length > 0 ? [`${at}: null`] : [])];
  });
  expect(faults).toEqual([]);
});

const part = z.looseObject({
  $ref: z.string().optional(),
  type: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
});
type Part = z.infer<typeof part>;

/** Every `allOf` below a value, with its place. */
function combinationsIn(value: unknown, at: string): { at: string; parts: Part[] }[] {
  if (typeof value !== "object" || value === null) return [];
  const own = part.safeParse(value);
  const parts = own.success && own.data.allOf !== undefined ? [{ at, parts: z.array(part).parse(own.data.allOf) }] : [];
  return [...parts, ...Object.entries(value).flatMap(([name, inner]) => combinationsIn(inner, `${at}/${name}`))];
}

function propertiesOf(schema: Part, schemas: Record<string, unknown>): Record<string, unknown> {
  if (schema.$ref !== undefined) return propertiesOf(part.parse(schemas[schema.$ref.split("/").at(-1) ?? ""]), schemas);
  const inherited = (schema.allOf ?? []).map((each) => propertiesOf(part.parse(each), schemas));
  return Object.assign({}, ...inherited, schema.properties);
}
