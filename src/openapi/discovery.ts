/** Routes that describe the gateway. They need no credential. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { aboutDocument, healthDocument, limitsDocument, stubList } from "../contract/ops.ts";
import { asText, idParameter, open, refusal } from "./parts.ts";

export const discovery: RouteConfig[] = [
  {
    method: "get",
    path: "/",
    summary: "Describes the gateway, with links",
    responses: {
      200: {
        description: "A description with links; an HTML page if `Accept` prefers `text/html`",
        content: { "application/json": { schema: aboutDocument }, ...asText("", "text/html").content },
      },
      default: refusal,
    },
  },
  {
    method: "get",
    path: "/docs",
    summary: "This reference as a page",
    responses: { 200: asText("The page", "text/html"), default: refusal },
  },
  page("/ui", "The page that lists runs, for the operator"),
  {
    ...page("/ui/runs/{id}", "The page of a run: money, progress, failures and a timeline, live"),
    parameters: [idParameter],
  },
  {
    method: "get",
    path: "/ui/app.js",
    summary: "The script of these pages",
    responses: { 200: asText("JavaScript", "text/javascript"), default: refusal },
  },
  {
    method: "get",
    path: "/ui/app.css",
    summary: "The style of these pages",
    responses: { 200: asText("CSS", "text/css"), default: refusal },
  },
  open("/health", "Reports that the gateway responds, and warnings about its configuration", healthDocument),
  open("/limits", "Lists every limit that a client can reach", limitsDocument),
  {
    method: "get",
    path: "/openapi.json",
    summary: "This reference as OpenAPI 3.1",
    responses: { 200: { description: "OpenAPI 3.1", content: { "application/json": { schema: { type: "object" } } } } },
  },
  open("/stubs", "Lists the client files, one per language", stubList),
  {
    method: "get",
    path: "/stubs/{lang}",
    summary: "Returns the client file of a language, to copy into a sandbox",
    parameters: [{ ...idParameter, name: "lang" }],
    responses: {
      200: asText("Source text", "text/x-python", "text/javascript", "text/x-shellscript", "text/plain"),
      default: refusal,
    },
  },
];

/** A page that is the same for everyone: its script asks for the credential. */
function page(path: string, summary: string): RouteConfig {
  return { method: "get", path, summary, responses: { 200: asText("The page", "text/html"), default: refusal } };
}
