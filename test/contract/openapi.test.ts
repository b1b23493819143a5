/** The OpenAPI document against the gateway that serves it: every reference resolves, and every answer is as it says. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startWorld, type RunAccess, type World } from "./world.ts";

const schemaLike = z.record(z.string(), z.unknown());
const content = z.record(z.string().regex(/^[a-z]+\/[a-z0-9.+-]+$/), z.strictObject({ schema: schemaLike }));
const header = z.strictObject({ description: z.string().min(1), schema: schemaLike });
const response = z.strictObject({
  description: z.string().min(1),
  headers: z.record(z.string().regex(/^[a-z-]+$/), header).optional(),
  content: content.optional(),
});
const operation = z.strictObject({
  // An extension: the guide of the route.
  "x-guide": z.string().regex(/^(?:docs|stubs)\/[\w/-]+\.md(?:#[\w-]+)?$|^README\.md(?:#[\w-]+)?$/),
  tags: z.tuple([z.string().min(1)]),
  summary: z.string().min(1),
  description: z.string().optional(),
  parameters: z
    .array(
      z.looseObject({
        name: z.string().min(1),
        in: z.enum(["path", "query", "header", "cookie"]),
        required: z.boolean().optional(),
        schema: schemaLike,
      }),
    )
    .optional(),
  requestBody: z
    .strictObject({ description: z.string().optional(), required: z.boolean().optional(), content })
    .optional(),
  responses: z.record(z.string().regex(/^([1-5]\d\d|default)$/), response),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
});
/** What the 3.1 specification requires of a document, as far as this one uses it; anything else in it is an error here. */
const document = z.strictObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.strictObject({ title: z.string().min(1), version: z.string().min(1), description: z.string().optional() }),
  paths: z.record(
    z.string().regex(/^\//),
    z.partialRecord(z.enum(["get", "put", "post", "delete", "options", "head", "patch", "trace"]), operation),
  ),
  components: z.strictObject({
    schemas: z.record(z.string().regex(/^[A-Za-z0-9._-]+$/), schemaLike),
    parameters: z.record(z.string(), z.unknown()).optional(),
    securitySchemes: z.record(z.string(), z.looseObject({ type: z.enum(["http", "apiKey"]) })),
  }),
  webhooks: z.record(z.string(), z.unknown()).optional(),
});

let world: World;
let run: RunAccess;
let api: z.infer<typeof document>;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun();
  api = document.parse((await world.send("/openapi.json")).json);
});
afterAll(() => world.stop());

const operations = () =>
  Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ name: `${method} ${path}`, method, path, operation })),
  );

describe("the OpenAPI document", () => {
  it("documents exactly the methods that each path accepts", async () => {
    for (const [path, item] of Object.entries(api.paths)) {
      const taken = (await run.send(path, { method: "OPTIONS" })).headers.get("allow")?.split(", ");
      const documented = Object.keys(item).map((method) => method.toUpperCase());
      expect([path, taken?.filter((method) => method !== "HEAD").toSorted()]).toEqual([path, documented.toSorted()]);
    }
  });

  it("resolves each of its references", () => {
    const referenced = new Set([...JSON.stringify(api).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target));
    expect(referenced.size).toBeGreaterThan(5);
    const known = new Set(Object.keys(api.components.schemas).map((name) => `#/components/schemas/${name}`));
    expect([...referenced].filter((target) => !known.has(target ?? ""))).toEqual([]);
  });

  it("names each parameter of a path, and no others", () => {
    for (const { name, path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect([name, declared.map((parameter) => parameter.name)]).toEqual([name, inPath]);
      expect(declared.every(({ required }) => required === true)).toBe(true);
    }
  });

  it("uses only security schemes that it defines, exactly where a credential is required", async () => {
    const schemes = Object.keys(api.components.securitySchemes);
    for (const { name, method, path, operation } of operations()) {
      const named = (operation.security ?? []).flatMap((alternative) => Object.keys(alternative));
      expect(named.filter((scheme) => !schemes.includes(scheme))).toEqual([]);
      const answer = await world.send(path.replace("{lang}", "python"), { method: method.toUpperCase() });
      expect([name, answer.status === 401]).toEqual([name, named.length > 0]);
    }
  });

  it("uses only keywords of JSON Schema 2020-12, not those of OpenAPI 3.0", () => {
    const text = JSON.stringify(api);
    expect(text).not.toContain('"nullable"');
    expect(text).not.toMatch(/"exclusiveM(in|ax)imum":(true|false)/);
  });

  it("lists the fields of each request body, and excludes others", () => {
    for (const [name, field] of [
      ["Query", "prompt"],
      ["Batch", "prompts"],
      ["RunRequest", "budget"],
      ["RunPatch", "paused"],
      ["ClientEvent", "event_type"],
    ] as const) {
      expect(api.components.schemas[name]).toMatchObject({
        type: "object",
        additionalProperties: false,
        properties: { [field]: expect.any(Object) },
      });
    }
  });

  it("lists in each reply schema every field of the reply", { tags: ["slow"] }, async () => {
    const prefer = { prefer: "respond-async" };
    const slow = await run.send("/batch", { json: { prompts: ["p"], model: "sim/slow?ms=60000" }, headers: prefer });
    const at = slow.headers.get("location") ?? "";
    const line = (await run.send(`/runs/${run.id}/log`)).text.split("\n")[0] ?? "";
    const shapes: [string, unknown][] = [
      ["OpenedRun", (await world.sendAsOperator("/runs", { json: {} })).json],
      ["Run", (await run.send("/run")).json],
      ["RunLook", (await run.send(`/runs/${run.id}?subtree=1`)).json],
      ["Quote", (await run.send("/batch?quote=1", { json: { prompts: ["p"] } })).json],
      ["RunList", (await world.sendAsOperator("/runs")).json],
      ["Budget", (await run.send("/budget")).json],
      ["QueryReply", (await run.send("/query", { json: { prompt: "p" } })).json],
      ["Group", (await run.send("/batch", { json: { prompts: ["p"] } })).json],
      ["RunningGroup", slow.json],
      ["RunningGroup", (await run.send("/query", { json: { prompt: "p" }, headers: prefer })).json],
      ["Results", (await run.send(`${at}/results`)).json],
      ["StoppedGroup", (await run.send(at, { method: "DELETE" })).json],
      ["Results", (await run.send(`${at}/results`)).json],
      ["Group", (await run.send(at)).json],
      ["UsageTotals", (await run.send(`/runs/${run.id}/usage`)).json],
      ["Run", (await run.send(`/runs/${run.id}/stats/reset`, { method: "POST" })).json],
      ["Flushed", (await run.send(`/runs/${run.id}/flush`, { method: "POST" })).json],
      ["Appended", (await run.send(`/runs/${run.id}/log`, { json: { event_type: "mine" } })).json],
      ["LogLine", JSON.parse(line)],
      ["Limits", (await world.send("/limits")).json],
      ["Health", (await world.send("/health")).json],
      ["About", (await world.send("/")).json],
      ["StubList", (await world.send("/stubs")).json],
      ["Error", (await world.send("/nowhere")).json],
    ];
    for (const [name, value] of shapes)
      expect([name, undocumented(value, api.components.schemas[name])]).toEqual([name, []]);
  });
});

/**
 * The paths of fields that a value has and its schema does not list, and of listed ones that are required and missing; of several
 * variants, those of the one that fits best.
 */
function undocumented(value: unknown, schema: unknown, at = ""): string[] {
  if (Array.isArray(value)) {
    const items = fieldOf(schema, "items");
    return value.flatMap((item) => undocumented(item, items, `${at}[]`));
  }
  const variants = [...branchesOf(fieldOf(schema, "anyOf")), ...branchesOf(fieldOf(schema, "oneOf"))].filter(
    (variant) => fieldOf(variant, "properties") !== undefined,
  );
  if (variants.length > 1 && typeof value === "object" && value !== null) {
    const faults = variants.map((variant) => undocumented(value, variant, at));
    return faults.reduce((fewest, each) => (each.length < fewest.length ? each : fewest));
  }
  const properties = fieldOf(schema, "properties");
  if (typeof value !== "object" || value === null || properties === undefined) return [];
  const required = z.array(z.string()).catch([]).parse(fieldOf(schema, "required"));
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name} is missing`);
  const open = fieldOf(schema, "additionalProperties") !== undefined;
  const inner = Object.entries(value).flatMap(([name, field]) => {
    const known = fieldOf(properties, name);
    if (known === undefined) return open ? [] : [`${at}.${name}`];
    return undocumented(field, known, `${at}.${name}`);
  });
  return [...missing, ...inner];
}

/** A keyword of a schema, behind its reference; of the parts that it is made of, joined; of the first variant that has it. */
function fieldOf(schema: unknown, name: string): unknown {
  const parsed = schemaLike.safeParse(schema);
  if (!parsed.success) return undefined;
  const reference = parsed.data["$ref"];
  if (typeof reference === "string") return fieldOf(api.components.schemas[reference.split("/").at(-1) ?? ""], name);
  if (Object.hasOwn(parsed.data, name)) return parsed.data[name];
  const inParts = inBranches(parsed.data["allOf"], name);
  if (inParts.length > 0) return Array.isArray(inParts[0]) ? inParts.flat() : Object.assign({}, ...inParts);
  return [...inBranches(parsed.data["anyOf"], name), ...inBranches(parsed.data["oneOf"], name)][0];
}

function inBranches(value: unknown, name: string): unknown[] {
  return branchesOf(value)
    .map((branch) => fieldOf(branch, name))
    .filter((field) => field !== undefined);
}

function branchesOf(value: unknown): unknown[] {
  return z.array(z.unknown()).catch([]).parse(value);
}
