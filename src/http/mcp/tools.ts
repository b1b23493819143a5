/**
 * The tools of the Model Context Protocol. Each is a request to this gateway's own routes, with the credential of the caller: so
 * budget, bounds, retries and errors are theirs.
 */
import * as z from "zod";
import { MCP_ARGUMENTS, type McpToolName } from "../../contract/mcp.ts";

/** Sends a request to a route of this gateway, with the caller's credential. */
export type Ask = (path: string, body?: unknown) => Promise<Response>;

const DESCRIPTIONS: Readonly<Record<McpToolName, string>> = {
  llm_query: "Asks a language model once. With a schema the answer is JSON that fits it.",
  llm_batch:
    "Asks a language model many independent prompts at once; the answers come in order. A failed prompt does not affect the others: its place has its error.",
  llm_map: "Splits a long text and asks about each part at once; the answers come in the order of the parts.",
  budget: "Shows what is left of the budget of this run, in US dollars, calls and tokens.",
};

/** `tools/list` */
export function listedTools(): unknown[] {
  return Object.entries(MCP_ARGUMENTS).map(([name, schema]) => {
    const description = Object.entries(DESCRIPTIONS).find(([known]) => known === name)?.[1];
    const readOnlyHint = name === "budget";
    return {
      name,
      description,
      inputSchema: z.toJSONSchema(schema),
      annotations: { readOnlyHint, openWorldHint: true },
    };
  });
}

/** A tool's result, as the protocol has it. A failure is one too: the model that called reads it. */
export type ToolResult = {
  content: { type: "text"; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
};

/** Calls a tool. The arguments fit its schema. */
export async function callTool(name: McpToolName, args: Record<string, unknown>, ask: Ask): Promise<ToolResult> {
  if (name === "budget") return resultOf(await ask("/budget"), (answer) => JSON.stringify(answer));
  if (name === "llm_query") return resultOf(await ask("/query", args), (answer) => String(answer["text"]));
  if (name === "llm_batch") return batchResult(await ask("/batch", args));
  return mapResult(args, ask);
}

async function mapResult(args: Record<string, unknown>, ask: Ask): Promise<ToolResult> {
  const { text, context: named, size, by, overlap, ...call } = args;
  if ((text === undefined) === (named === undefined)) return failed("expected either text or context");
  let context = named;
  if (text !== undefined) {
    const stored = await resultOf(await ask("/contexts", { text }), () => "");
    if (stored.isError === true) return stored;
    context = stored.structuredContent?.["id"];
  }
  const split = Object.fromEntries(Object.entries({ size, by, overlap }).filter(([, value]) => value !== undefined));
  return batchResult(await ask("/batch", { ...call, over: { context, split } }));
}

/** The answers alone as text: the rest of a group's answer is for programs. */
async function batchResult(response: Response): Promise<ToolResult> {
  return resultOf(response, ({ results }) => JSON.stringify(results));
}

const answerObject = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.string() }).optional() });

async function resultOf(response: Response, textOf: (answer: Record<string, unknown>) => string): Promise<ToolResult> {
  const answer = answerObject.parse(await response.json());
  const { error } = answer;
  if (error !== undefined) {
    return { ...failed(`${error.message} (${error.code})`), structuredContent: { error } };
  }
  return { content: [{ type: "text", text: textOf(answer) }], structuredContent: answer };
}

function failed(message: string): ToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}
