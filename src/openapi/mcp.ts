/** The route that clients of the Model Context Protocol use. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { mcpAnswer, mcpMessage } from "../contract/mcp/messages.ts";
import { guarded, json, jsonBody } from "./parts.ts";

export const mcp: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/mcp",
    summary: "Serves the tools llm_query, llm_batch, llm_map and budget to clients of the Model Context Protocol",
    request: jsonBody(mcpMessage),
    responses: { 200: json(mcpAnswer, "The answer to a request"), 202: { description: "A notification was received" } },
  }),
];
