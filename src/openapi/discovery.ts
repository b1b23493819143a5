/** Routes that tell what this is. */
import type { RouteConfig } from "@hono/zod-openapi";
import { aboutDocument, healthDocument, limitsDocument, stubList } from "../contract/ops.ts";
import { asText, idParameter, open, refusal } from "./parts.ts";

export const discovery: RouteConfig[] = [
  {
    method: "get",
    path: "/",
    summary: "What this is, with links",
    responses: {
      200: {
        description: "What this is, with links; a page where `Accept` asks for text/html",
        content: { "application/json": { schema: aboutDocument }, ...asText("", "text/html").content },
      },
      default: refusal,
    },
  },
  {
    method: "get",
    path: "/docs",
    summary: "This document as a page",
    responses: { 200: asText("The page", "text/html"), default: refusal },
  },
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
    responses: { 200: asText("Source text", "text/x-python"), default: refusal },
  },
];
