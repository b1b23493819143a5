/** The fields `tools` and `max_turns` of a call: the tools of its run that its model may use. */
import * as z from "zod";
import { TOOL_TURNS_DEFAULT, TOOL_TURNS_MAX, TOOLS_PER_RUN_MAX } from "../../limits.ts";
import { toolName } from "../tools.ts";
import { atFirstUse } from "../../at-first-use.ts";

const NAMES =
  'expected names of tools that the run has; put definitions of functions in params: {"params": {"tools": …}}';

/** A name, or what to do with a definition: chat completions have these under the same field. */
const named = z.string({ error: NAMES }).pipe(toolName());

export const toolUseSettings = atFirstUse(() => ({
  tools: z.array(named, { error: NAMES }).min(1).max(TOOLS_PER_RUN_MAX).optional().meta({
    description:
      "Names of tools that the run has, with `parameters`: the model is offered them, and while its answers ask for them the gateway calls them and asks it again. See docs/tools.md",
  }),
  max_turns: z
    .int()
    .min(1)
    .max(TOOL_TURNS_MAX)
    .optional()
    .meta({
      description: `Most answers of a model that uses \`tools\`; default ${TOOL_TURNS_DEFAULT}. Each is an attempt with a reservation of its own`,
    }),
}));

/** What an answer shows of a call whose model may use tools. */
export const toolUseFields = atFirstUse(() => ({
  turns: z.int().optional().meta({ description: "Of a call with `tools`: how many answers its model has given" }),
  tool_calls: z.record(z.string(), z.int()).optional().meta({
    description: "Of a call with `tools`: how often the gateway has called each of them",
  }),
}));
