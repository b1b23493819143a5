/**
 * The tools of the Model Context Protocol. Each is a request to this gateway's own routes, with the credential of the caller: so
 * budget, bounds, retries and errors are theirs.
 */
import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";
import { MCP_ARGUMENTS } from "../../contract/mcp.ts";

/** Sends a request to a route of this gateway, with the caller's credential. */
export type Ask = (path: string, body?: unknown) => Promise<Response>;

/** Offers all tools of the gateway at a server. Arguments that do not fit their schema do not come here. */
export function offerTools(server: McpServer, ask: Ask): void {
  const spends = { annotations: { readOnlyHint: false, openWorldHint: true } };
  server.registerTool(
    "llm_query",
    {
      description: "Asks a language model once. With a schema the answer is JSON that fits it.",
      inputSchema: MCP_ARGUMENTS().llm_query,
      ...spends,
    },
    async (args) => resultOf(await ask("/query", args), (answer) => String(answer["text"])),
  );
  server.registerTool(
    "llm_batch",
    {
      description:
        "Asks a language model many independent prompts at once; the answers come in order. A failed prompt does not affect the others: its place has its error.",
      inputSchema: MCP_ARGUMENTS().llm_batch,
      ...spends,
    },
    async (args) => batchResult(await ask("/batch", args)),
  );
  server.registerTool(
    "llm_map",
    {
      description: "Splits a long text and asks about each part at once; the answers come in the order of the parts.",
      inputSchema: MCP_ARGUMENTS().llm_map,
      ...spends,
    },
    async (args) => mapResult(args, ask),
  );
  server.registerTool(
    "budget",
    {
      description: "Shows what is left of the budget of this run, in US dollars, calls and tokens.",
      inputSchema: MCP_ARGUMENTS().budget,
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    async () => resultOf(await ask("/budget"), (answer) => JSON.stringify(answer)),
  );
}

async function mapResult(
  args: z.infer<ReturnType<typeof MCP_ARGUMENTS>["llm_map"]>,
  ask: Ask,
): Promise<CallToolResult> {
  const { text, context: named, size, by, overlap, ...call } = args;
  if ((text === undefined) === (named === undefined)) return failed("expected either text or context");
  let context: unknown = named;
  if (text !== undefined) {
    const stored = await answerOf(await ask("/contexts", { text }));
    if (stored.error !== undefined) return refused(stored.error);
    context = stored["id"];
  }
  const split = Object.fromEntries(Object.entries({ size, by, overlap }).filter(([, value]) => value !== undefined));
  return batchResult(await ask("/batch", { ...call, over: { context, split } }));
}

/** The answers alone as text: the rest of a group's answer is for programs. */
async function batchResult(response: Response): Promise<CallToolResult> {
  return resultOf(response, ({ results }) => JSON.stringify(results));
}

const failure = z.looseObject({ message: z.string(), code: z.string() });
const answerObject = z.looseObject({ error: failure.optional() });

async function answerOf(response: Response): Promise<z.infer<typeof answerObject>> {
  return answerObject.parse(await response.json());
}

async function resultOf(
  response: Response,
  textOf: (answer: Record<string, unknown>) => string,
): Promise<CallToolResult> {
  const answer = await answerOf(response);
  if (answer.error !== undefined) return refused(answer.error);
  return { content: [{ type: "text", text: textOf(answer) }], structuredContent: answer };
}

/** A failure is a result too: the model that called reads it. */
function refused(error: z.infer<typeof failure>): CallToolResult {
  return { ...failed(`${error.message} (${error.code})`), structuredContent: { error } };
}

function failed(message: string): CallToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}
