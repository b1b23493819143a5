/**
 * The OpenAPI 3.1 document, generated from the schemas that the routes parse with. It is generated at the first request
 * for it and kept as text, so that other requests do not pay for it.
 */
import { OpenApiGeneratorV31, OpenAPIRegistry, type RouteConfig } from "@asteasolutions/zod-to-openapi";
import { calls } from "./openapi/calls.ts";
import { nameComponents } from "./openapi/components.ts";
import { contexts } from "./openapi/contexts.ts";
import { dialects } from "./openapi/dialects.ts";
import { discovery } from "./openapi/discovery.ts";
import { files } from "./openapi/files.ts";
import { groups } from "./openapi/groups.ts";
import { mcp } from "./openapi/mcp.ts";
import { log, logLine } from "./openapi/log.ts";
import { pull } from "./openapi/pull.ts";
import { runs } from "./openapi/runs.ts";
import { operator } from "./openapi/operator.ts";
import { tools } from "./openapi/tools.ts";
import { v1 } from "./openapi/v1.ts";
import { VERSION } from "./version.ts";

/** Routes by OpenAPI tag, in the order of the reference page: what a newcomer uses first comes first. */
const TAGS: readonly (readonly [tag: string, routes: readonly RouteConfig[]])[] = [
  ["Calls", calls],
  ["Contexts", contexts],
  ["Groups", groups],
  ["Runs", runs],
  ["Log", log],
  ["OpenAI and Anthropic", v1],
  ["Files", files],
  ["Tools", tools],
  ["Model Context Protocol", mcp],
  ["Pull workers", pull],
  ["Dialects", dialects],
  ["Upstreams", operator],
  ["Discovery", discovery],
];

let text: string | null = null;

/** The document as JSON text. */
export function openApiText(): string {
  text ??= JSON.stringify(generate());
  return text;
}

function generate(): unknown {
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
  for (const [tag, routes] of TAGS) for (const route of routes) registry.registerPath({ ...route, tags: [tag] });
  nameComponents();
  // Routes return the log as text, so none of them refers to this schema.
  const generator = new OpenApiGeneratorV31([...registry.definitions, { type: "schema", schema: logLine }]);
  return generator.generateDocument({
    openapi: "3.1.0",
    info: {
      title: "fanout",
      version: VERSION,
      description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
    },
  });
}
