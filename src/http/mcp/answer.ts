/** Answers one message of the Model Context Protocol, with the SDK. */
import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { VERSION } from "../../version.ts";
import { offerTools, type Ask } from "./tools.ts";

const INSTRUCTIONS =
  "Calls of these tools spend the budget of one run. Use llm_batch for independent prompts: they run at the same time.";

/**
 * Answers one message. Its revision decides who reads it.
 * @param request The request without its body, which is read.
 */
export async function answerTo(request: Request, parsedBody: unknown, ask: Ask): Promise<Response> {
  const serverFor = (): McpServer => {
    const server = new McpServer({ name: "fanout", version: VERSION }, { instructions: INSTRUCTIONS });
    offerTools(server, ask);
    return server;
  };
  if (!(await isLegacyRequest(request, parsedBody))) {
    // Nothing here changes while a client listens, so that a subscription would only hold its request open.
    const handler = createMcpHandler(serverFor, { legacy: "reject", maxSubscriptions: 0 });
    return await handler.fetch(request, { parsedBody });
  }
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = serverFor();
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody });
  } finally {
    await server.close();
  }
}
