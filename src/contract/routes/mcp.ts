/** The route that clients of the Model Context Protocol use. */
import { mcpAnswer, mcpMessage } from "../mcp.ts";
import { BODY_BYTES_MAX } from "../../limits.ts";
import { json, jsonBody } from "./parts.ts";
import { CLIENTS, family } from "./record.ts";

export const mcp = family("Model Context Protocol", {
  "POST /mcp": {
    auth: CLIENTS,
    guide: "docs/mcp.md",
    opensNothing: true,
    bound: BODY_BYTES_MAX,
    summary: "Serves the tools llm_query, llm_batch, llm_map and budget to clients of the Model Context Protocol",
    request: jsonBody(mcpMessage),
    replies: { 200: json(mcpAnswer, "The answer to a request"), 202: { description: "A notification was received" } },
  },
});
