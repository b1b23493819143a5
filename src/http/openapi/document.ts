/**
 * The OpenAPI 3.1 document, generated from the table of routes and the schemas that they parse with. It is generated at the
 * first request for it, in slices, and kept as text, so that other requests do not pay for it.
 */
import { OpenApiGeneratorV31, OpenAPIRegistry, type RouteConfig } from "@asteasolutions/zod-to-openapi";
import { logLine } from "../../contract/routes/log.ts";
import { refusal } from "../../contract/routes/parts.ts";
import type { Body, Content, Method, Reply, Route } from "../../contract/routes/record.ts";
import { FAMILIES } from "../../contract/routes/table.ts";
import { ROUTES_PER_SLICE } from "../../limits.ts";
import { SlicedOnce } from "../../text/bytes/sliced-once.ts";
import { atOnce, type Sliced } from "../../text/bytes/slices.ts";
import { nameComponents } from "./components.ts";
import { VERSION } from "../../version.ts";

const document = new SlicedOnce(generating);

/** The document as JSON text. */
export function openApiText(): string {
  return atOnce(openApiWriting());
}

/** The same in slices; it is generated once. */
export function openApiWriting(): Sliced<string> {
  return document.result();
}

type Definitions = OpenAPIRegistry["definitions"];

/** Generates the document anew. */
export function* generating(): Sliced<string> {
  const definitions = yield* defining();
  yield;
  nameComponents();
  yield;
  // The generator reads this list at each call, and keeps what it has generated before.
  const next: Definitions = [];
  const generator = new OpenApiGeneratorV31(next);
  for (const definition of definitions) {
    next.splice(0, next.length, definition);
    generator.generateComponents();
    // One at a time: a route has all schemas that no route before it has.
    yield;
  }
  next.splice(0);
  return JSON.stringify(
    generator.generateDocument({
      openapi: "3.1.0",
      info: {
        title: "fanout",
        version: VERSION,
        description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
      },
    }),
  );
}

/** What the document describes, in the order in which its components are listed. Builds the schemas of all routes. */
function* defining(): Sliced<Definitions> {
  const registry = new OpenAPIRegistry();
  registry.registerComponent("securitySchemes", "bearer", {
    type: "http",
    scheme: "bearer",
    description: "A run token, or the operator's ADMIN_KEY; where only figures are read, also VIEW_KEY",
  });
  registry.registerComponent("securitySchemes", "basic", {
    type: "http",
    scheme: "basic",
    description: "The same credential as user or password, for programs that can only be given a URL",
  });
  registry.registerComponent("securitySchemes", "apiKey", { type: "apiKey", in: "header", name: "x-api-key" });
  let described = 0;
  for (const { heading, routes } of FAMILIES) {
    if (heading === null) continue;
    for (const route of routes) {
      registry.registerPath(describe(heading, route));
      described += 1;
      if (described % ROUTES_PER_SLICE === 0) yield;
    }
  }
  // Routes return the log as text, so none of them refers to this schema.
  return [{ type: "schema", schema: logLine() }, ...registry.definitions];
}

const METHODS = { GET: "get", POST: "post", PUT: "put", PATCH: "patch", DELETE: "delete" } as const satisfies Record<
  Method,
  string
>;

/** A route in the generator's words: those of its record, without what only the gateway reads. */
function describe(heading: string, { name: _name, method, path, auth, ...record }: Route): RouteConfig {
  const { guide, where: _where, opensNothing: _opens, link: _link, bound: _bound, ...rest } = record;
  const { replies, errors = refusal, request, ...words } = rest;
  const answers = Object.entries(replies).map(([status, reply]) => [status, shown(reply)] as const);
  return {
    ...words,
    ...(request === undefined
      ? {}
      : { request: "body" in request ? { body: sent(request.body) } : { query: request.query() } }),
    "x-guide": guide,
    method: METHODS[method],
    path: path.replace(/:(\w+)/g, "{$1}"),
    responses: { ...Object.fromEntries(answers), ...(errors === null ? {} : { default: shown(errors) }) },
    ...(auth === null ? {} : { security: [{ bearer: [] }, { basic: [] }, { apiKey: [] }] }),
    tags: [heading],
  };
}

/** The body of a request with its schemas. */
function sent({ content, ...body }: Body["request"]["body"]) {
  return { ...body, content: built(content) };
}

/** A reply with its schemas. */
function shown({ content, ...reply }: Reply) {
  return content === undefined ? reply : { ...reply, content: built(content) };
}

/** The schemas of a body, also those that are built at their first use. */
function built(content: Content) {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => {
      return [type, { schema: typeof schema === "function" ? schema() : schema }] as const;
    }),
  );
}
