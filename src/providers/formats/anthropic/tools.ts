/**
 * Translates the tools of a chat completion for Anthropic's Messages API: their definitions, and which of them the model must call.
 * What is in the API's own form already is sent unchanged; what it cannot express is refused with the field's name.
 */
import type { Reason } from "../../../errors.ts";
import { isRecord } from "../../../text/json/record.ts";

type Fields = Readonly<Record<string, unknown>>;
type Translated = { ok: true; params: Fields } | { ok: false; reason: Reason };

/** The request's further fields with its tools in the API's form. */
export function translatedTools(params: Fields): Translated {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel, ...rest } = params;
  if (tools === undefined && choice === undefined && parallel === undefined) return { ok: true, params };
  const defined: unknown[] = [];
  for (const [index, tool] of (Array.isArray(tools) ? tools : []).entries()) {
    if (isOpenAiCustom(tool))
      return refused(`tools[${index}].type`, "expected function: the API has no free-form tools");
    defined.push(toolOf(tool));
  }
  const chosen = choiceOf(choice, { hasTools: defined.length > 0, isSerial: parallel === false });
  if (!chosen.ok) return chosen;
  return {
    ok: true,
    params: {
      ...rest,
      ...(tools === undefined ? undefined : { tools: Array.isArray(tools) ? defined : tools }),
      ...(chosen.value === undefined ? undefined : { tool_choice: chosen.value }),
    },
  };
}

/** A tool of OpenAI's whose input is a text. Anthropic's tools of that type have a schema. */
function isOpenAiCustom(tool: unknown): boolean {
  return isRecord(tool) && tool["type"] === "custom" && isRecord(tool["custom"]);
}

function toolOf(tool: unknown): unknown {
  if (!isRecord(tool) || tool["type"] !== "function" || !isRecord(tool["function"])) return tool;
  const { type: _, function: described, ...marks } = tool;
  const { name, description, parameters, strict } = described;
  return {
    name,
    ...(description == null ? undefined : { description }),
    input_schema: parameters ?? { type: "object", properties: {} },
    ...(strict == null ? undefined : { strict }),
    ...marks,
  };
}

type Choice = { ok: true; value: unknown } | { ok: false; reason: Reason };

/** The modes of a chat completion by their names in the API. */
const MODES: ReadonlyMap<unknown, string> = new Map([
  ["auto", "auto"],
  ["none", "none"],
  ["required", "any"],
]);

function choiceOf(choice: unknown, { hasTools, isSerial }: { hasTools: boolean; isSerial: boolean }): Choice {
  const read = readChoice(choice);
  if (!read.ok || !isSerial) return read;
  const value = read.value ?? (hasTools ? { type: "auto" } : undefined);
  const mayCall = isRecord(value) && value["type"] !== "none";
  return { ok: true, value: mayCall ? { ...value, disable_parallel_tool_use: true } : value };
}

function readChoice(choice: unknown): Choice {
  if (choice === undefined || choice === null) return { ok: true, value: undefined };
  if (!isRecord(choice)) {
    const type = MODES.get(choice);
    return type === undefined
      ? refused("tool_choice", "expected auto, none, required or a function")
      : { ok: true, value: { type } };
  }
  if (choice["type"] === "function" && isRecord(choice["function"])) {
    return { ok: true, value: { type: "tool", name: choice["function"]["name"] } };
  }
  const type = choice["type"];
  const isOther = type === "custom" || type === "allowed_tools";
  return isOther
    ? refused("tool_choice.type", "expected function: the API has no such choice")
    : { ok: true, value: choice };
}

function refused(field: string, expected: string): { ok: false; reason: Reason } {
  const param = `params.${field}`;
  const message = `${param}: ${expected} (the model is at an Anthropic upstream)`;
  return { ok: false, reason: { reason: "invalid_request", message, param } };
}
