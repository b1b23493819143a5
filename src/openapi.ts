/**
 * The OpenAPI 3.1 document, generated from the schemas that the routes parse with. Made when it is first asked for and
 * kept as text: no other request pays for it.
 */
import type { RouteConfig } from "@hono/zod-openapi";
import { OpenAPIHono, z } from "@hono/zod-openapi";
import { batchBody, batchReply, quoteReply } from "./contract/batch.ts";
import { errorBody } from "./contract/errors.ts";
import { aboutDocument, healthDocument, limitsDocument, stubList } from "./contract/ops.ts";
import { queryBody, queryReply } from "./contract/query.ts";
import {
  budgetDocument,
  openedRunDocument,
  patchBody,
  runBody,
  runDocument,
  runList,
  runListQuery,
  runLookDocument,
} from "./contract/runs.ts";
import { VERSION } from "./version.ts";

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
  registry.registerComponent("securitySchemes", "apiKey", { type: "apiKey", in: "header", name: "x-api-key" });
  for (const route of [...discovery, ...runs, ...calls]) registry.registerPath(route);
  return documented.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "fanout",
      version: VERSION,
      description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
    },
  });
}

const json = (schema: z.ZodType, description: string) => ({
  description,
  content: { "application/json": { schema } },
});

const refusal = json(errorBody, "Refused or failed; `error.code` says why");

const open = (path: string, summary: string, schema: z.ZodType): RouteConfig => ({
  method: "get",
  path,
  summary,
  responses: { 200: json(schema, summary), default: refusal },
});

const guarded = (route: Omit<RouteConfig, "security">): RouteConfig => ({
  ...route,
  security: [{ bearer: [] }, { apiKey: [] }],
  responses: { ...route.responses, default: refusal },
});

const idParameter = { name: "id", in: "path", required: true, schema: { type: "string" } } as const;

const flag = (name: string, description: string) => {
  const schema = { type: "string" as const, enum: ["1"] };
  return { name, in: "query" as const, required: false, description, schema };
};

const discovery: RouteConfig[] = [
  open("/", "What this is, with links", aboutDocument),
  open("/health", "Whether the gateway answers", healthDocument),
  open("/limits", "Every bound that a client can meet", limitsDocument),
  {
    method: "get",
    path: "/openapi.json",
    summary: "This document",
    responses: { 200: { description: "OpenAPI 3.1", content: { "application/json": { schema: { type: "object" } } } } },
  },
  open("/stubs", "Client files for sandboxes", stubList),
  {
    method: "get",
    path: "/stubs/{lang}",
    summary: "One client file, to be copied into a sandbox",
    parameters: [{ ...idParameter, name: "lang" }],
    responses: {
      200: { description: "Source text", content: { "text/x-python": { schema: { type: "string" } } } },
      default: refusal,
    },
  },
];

const runs: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/runs",
    summary: "Opens a run: a budget, a width and a token; asked with a run token, a child run inside that run",
    request: { body: { content: { "application/json": { schema: runBody } } } },
    responses: { 201: json(openedRunDocument, "The run and its token, which is shown only here") },
  }),
  guarded({
    method: "get",
    path: "/runs",
    summary: "Lists runs, newest first (operator)",
    request: { query: runListQuery },
    responses: { 200: json(runList, "One page") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}",
    summary: "One run",
    parameters: [idParameter, flag("subtree", "1 = with the figures of all runs below it, under `subtree`")],
    responses: { 200: json(runLookDocument, "The run") },
  }),
  guarded({
    method: "patch",
    path: "/runs/{id}",
    summary: "New limits, width or pause (operator)",
    parameters: [idParameter],
    request: { body: { required: true, content: { "application/json": { schema: patchBody } } } },
    responses: { 200: json(runDocument, "The run as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/close",
    summary: "Ends a run and all below it: what runs finishes, and the rest of the budget flows back",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "delete",
    path: "/runs/{id}",
    summary: "Cancels a run and all below it, at once",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/run",
    summary: "The caller's own run",
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/budget",
    summary: "What is left of the caller's budget",
    responses: { 200: json(budgetDocument, "Four numbers in each dimension") },
  }),
];

const calls: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/query",
    summary: "One call",
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: queryBody }, "text/plain": { schema: { type: "string" } } },
      },
    },
    responses: {
      200: {
        description: "The answer; as bare text if `Accept` asks for text/plain",
        content: { "application/json": { schema: queryReply }, "text/plain": { schema: { type: "string" } } },
      },
    },
  }),
  guarded({
    method: "post",
    path: "/batch",
    summary: "An ordered list of calls",
    parameters: [flag("quote", "1 = what it would cost; nothing is reserved or sent")],
    request: { body: { required: true, content: { "application/json": { schema: batchBody } } } },
    responses: {
      200: {
        description: "One result per call in input order, whole or as each slot ends; or the quote",
        content: {
          "application/json": { schema: z.union([batchReply, quoteReply]) },
          "application/x-ndjson": { schema: { type: "string" } },
          "text/event-stream": { schema: { type: "string" } },
        },
      },
    },
  }),
];
