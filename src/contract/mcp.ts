/** `POST /mcp`: the messages of the Model Context Protocol, and the arguments of its tools. */
import * as z from "zod";
import { MAX_TOKENS_MAX } from "../limits.ts";
import { atFirstUse } from "../at-first-use.ts";

/** A request or, without `id`, a notification. */
export const mcpMessage = atFirstUse(() =>
  z
    .looseObject({
      jsonrpc: z.literal("2.0"),
      id: z.union([z.string(), z.number()]).optional(),
      method: z.string(),
      params: z.looseObject({}).optional(),
    })
    .meta({ id: "McpMessage" }),
);

/** An answer. `result` or `error`, as JSON-RPC has them. */
export const mcpAnswer = atFirstUse(() =>
  z
    .object({
      jsonrpc: z.literal("2.0"),
      id: z.union([z.string(), z.number(), z.null()]),
      result: z.looseObject({}).optional(),
      error: z.object({ code: z.int(), message: z.string() }).optional(),
    })
    .meta({ id: "McpAnswer" }),
);

const callFields = atFirstUse(() => ({
  model: z.string().optional().describe("As upstream/model; default: the run's"),
  system: z.string().optional(),
  max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional(),
  temperature: z.number().min(0).max(2).optional(),
  schema: z.record(z.string(), z.unknown()).optional().describe("A JSON Schema that each answer must fit"),
}));

/** The arguments of each tool. What they name is checked by the route behind the tool, under its own bounds. */
export const MCP_ARGUMENTS = atFirstUse(
  () =>
    ({
      llm_query: z.strictObject({ prompt: z.string(), ...callFields() }),
      llm_batch: z.strictObject({
        prompts: z.array(z.string()).describe("Answers come in this order"),
        ...callFields(),
        concurrency: z.int().min(1).optional(),
      }),
      llm_map: z.strictObject({
        text: z.string().optional().describe("The long text; or context, the id of one that is stored"),
        context: z.string().optional(),
        prompt: z.string().describe("Contains {{chunk}}, which becomes each part of the text"),
        size: z.int().min(1).optional().describe("Characters of a part at most; default 8000"),
        by: z.enum(["chars", "lines", "paragraphs", "markdown"]).optional(),
        overlap: z.int().min(0).optional(),
        ...callFields(),
      }),
      budget: z.strictObject({}),
    }) as const,
);
