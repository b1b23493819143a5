/** `POST /mcp`: the messages of the Model Context Protocol, and the arguments of its tools. */
import * as z from "zod";
import { MAX_TOKENS_MAX } from "../limits.ts";

/** Protocol versions that are spoken, newest first. They differ in nothing that this server uses. */
export const MCP_VERSIONS = ["2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** A request or, without `id`, a notification. */
export const mcpMessage = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number()]).optional(),
    method: z.string(),
    params: z.looseObject({}).optional(),
  })
  .meta({ id: "McpMessage" });
export type McpMessage = z.infer<typeof mcpMessage>;

/** An answer. `result` or `error`, as JSON-RPC has them. */
export const mcpAnswer = z
  .object({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number(), z.null()]),
    result: z.looseObject({}).optional(),
    error: z.object({ code: z.int(), message: z.string() }).optional(),
  })
  .meta({ id: "McpAnswer" });
export type McpAnswer = z.infer<typeof mcpAnswer>;

export const initializeParams = z.looseObject({ protocolVersion: z.string() });
export const toolCallParams = z.looseObject({ name: z.string(), arguments: z.looseObject({}).optional() });

const callFields = {
  model: z.string().optional().describe("As upstream/model; default: the run's"),
  system: z.string().optional(),
  max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional(),
  temperature: z.number().min(0).max(2).optional(),
  schema: z.record(z.string(), z.unknown()).optional().describe("A JSON Schema that each answer must fit"),
};

/** The arguments of each tool. What they name is checked by the route behind the tool, under its own bounds. */
export const MCP_ARGUMENTS = {
  llm_query: z.strictObject({ prompt: z.string(), ...callFields }),
  llm_batch: z.strictObject({
    prompts: z.array(z.string()).describe("Answers come in this order"),
    ...callFields,
    concurrency: z.int().min(1).optional(),
  }),
  llm_map: z.strictObject({
    text: z.string().optional().describe("The long text; or context, the id of one that is stored"),
    context: z.string().optional(),
    prompt: z.string().describe("Contains {{chunk}}, which becomes each part of the text"),
    size: z.int().min(1).optional().describe("Characters of a part at most; default 8000"),
    by: z.enum(["chars", "lines", "paragraphs", "markdown"]).optional(),
    overlap: z.int().min(0).optional(),
    ...callFields,
  }),
  budget: z.strictObject({}),
} as const;
export type McpToolName = keyof typeof MCP_ARGUMENTS;

export function isToolName(name: string): name is McpToolName {
  return Object.hasOwn(MCP_ARGUMENTS, name);
}
