/**
 * The OpenAPI 3.1 document, generated from the schemas that the routes parse with. Made when it is first asked for and
 * kept as text: no other request pays for it.
 */
import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { calls } from "./openapi/calls.ts";
import { dialects } from "./openapi/dialects.ts";
import { discovery } from "./openapi/discovery.ts";
import { files } from "./openapi/files.ts";
import { groups } from "./openapi/groups.ts";
import { log, logLine } from "./openapi/log.ts";
import { runs } from "./openapi/runs.ts";
import { tools } from "./openapi/tools.ts";
import { v1 } from "./openapi/v1.ts";
import { VERSION } from "./version.ts";

/** Routes by door: the names under which a reader finds them. */
const DOORS: readonly (readonly [door: string, routes: readonly RouteConfig[]])[] = [
  ["Discovery", discovery],
  ["Runs", runs],
  ["Log", log],
  ["Calls", calls],
  ["Dialects", dialects],
  ["Tools", tools],
  ["Groups", groups],
  ["OpenAI and Anthropic", v1],
  ["Files", files],
];

let text: string | null = null;

/** The document as JSON text. */
export function openApiText(): string {
  text ??= JSON.stringify(generate());
  return text;
}

function generate(): unknown {
  // Only its registry and generator serve here; the routes themselves are plain Hono, which is faster per request.
  const documented = new OpenAPIHono();
  const registry = documented.openAPIRegistry;
  registry.registerComponent("securitySchemes", "bearer", {
    type: "http",
    scheme: "bearer",
    description: "A run token, or the operator's ADMIN_KEY",
  });
  registry.registerComponent("securitySchemes", "basic", {
    type: "http",
    scheme: "basic",
    description: "The same as user or password, for programs whose only setting is a URL",
  });
  registry.registerComponent("securitySchemes", "apiKey", { type: "apiKey", in: "header", name: "x-api-key" });
  // No answer is one line of a log, so no route refers to it.
  registry.register("LogLine", logLine);
  for (const [door, routes] of DOORS) for (const route of routes) registry.registerPath({ ...route, tags: [door] });
  return documented.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "fanout",
      version: VERSION,
      description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
    },
  });
}
