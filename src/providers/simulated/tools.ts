/** Rehearses tool calls: which function of a request the simulated model asks for, if any. */
import { isRecord } from "../../text/json/record.ts";

/** A function that the client describes and runs itself. `parameters` is the JSON Schema of its arguments. */
export type FunctionTool = { name: string; parameters: unknown };

/** The functions that the request allows. `isForced`: the request demands a call; without it the model may answer in text. */
export type Tools = { functions: readonly FunctionTool[]; isForced: boolean };

/** The tools of a request, or the message to refuse it with. */
export type ToolsRead = { ok: true; tools: Tools } | { ok: false; message: string };

/** Reads `tools` and `tool_choice` of any of the three protocols. */
export function toolsIn({ tools, tool_choice: choice }: Readonly<Record<string, unknown>>): ToolsRead {
  const functions = Array.isArray(tools) ? tools.flatMap(functionIn) : [];
  if (choice === undefined || choice === null) return { ok: true, tools: { functions, isForced: false } };
  const mode = isRecord(choice) ? choice["type"] : choice;
  switch (mode) {
    case "none":
      return { ok: true, tools: { functions: [], isForced: false } };
    case "auto":
      return { ok: true, tools: { functions, isForced: false } };
    case "required":
    case "any":
      return forced(functions, "tool_choice requires a call, but tools has no function");
    case "function":
    case "tool":
      return named(functions, [choice], true);
    case "allowed_tools": {
      const allowed = isRecord(choice) && isRecord(choice["allowed_tools"]) ? choice["allowed_tools"] : choice;
      const { mode: strictness, tools: names } = isRecord(allowed) ? allowed : {};
      return named(functions, Array.isArray(names) ? names : [], strictness === "required");
    }
    default:
      return { ok: false, message: "tool_choice is none of auto, none, required, any, a function, or allowed_tools" };
  }
}

/** OpenAI's chat nests the description in `function`; Anthropic calls the schema `input_schema`. Other tools are ignored. */
function functionIn(tool: unknown): FunctionTool[] {
  if (!isRecord(tool)) return [];
  const described = isRecord(tool["function"]) ? tool["function"] : tool;
  const { name, parameters, input_schema: inputSchema } = described;
  const isFunction = tool["type"] === "function" || isRecord(inputSchema);
  return isFunction && typeof name === "string"
    ? [{ name, parameters: parameters ?? inputSchema ?? NO_ARGUMENTS }]
    : [];
}

const NO_ARGUMENTS = { type: "object", properties: {} };

function named(functions: readonly FunctionTool[], choices: readonly unknown[], isForced: boolean): ToolsRead {
  const names = new Set(choices.map(nameIn));
  const chosen = functions.filter(({ name }) => names.has(name));
  if (chosen.length === 0) return { ok: false, message: "tool_choice names no function of tools" };
  return { ok: true, tools: { functions: chosen, isForced } };
}

function nameIn(choice: unknown): unknown {
  if (!isRecord(choice)) return undefined;
  return isRecord(choice["function"]) ? choice["function"]["name"] : choice["name"];
}

function forced(functions: readonly FunctionTool[], message: string): ToolsRead {
  return functions.length === 0 ? { ok: false, message } : { ok: true, tools: { functions, isForced: true } };
}

/**
 * The function to call after `rounds` answers of tools; null = the model answers in text. A demanded call is made once,
 * so that a client's loop ends; `calls` of the model asks for another number. Each round takes the next function.
 */
export function nextCall({ functions, isForced }: Tools, rounds: number, calls: number | null): FunctionTool | null {
  if (functions.length === 0 || rounds >= (calls ?? (isForced ? 1 : 0))) return null;
  return functions[rounds % functions.length] ?? null;
}
