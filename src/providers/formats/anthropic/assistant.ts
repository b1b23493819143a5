/**
 * Translates the messages of tools for Anthropic's Messages API, as JSON texts: an assistant's message with calls and thoughts becomes
 * blocks, a result becomes a block of the user's. Inputs of calls and signed thoughts are sent as they came.
 */
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Where a message cannot be translated: a field of it, and what was expected there. */
export type Fault = { field: string; expected: string };
/** Blocks as JSON texts. */
export type Blocks = { ok: true; blocks: readonly string[] } | ({ ok: false } & Fault);

/** Fields of an assistant's message beside its content that are translated, or say what another field says too. */
export const ASSISTANT_FIELDS: ReadonlySet<string> = new Set(
  "tool_calls thinking_blocks content_blocks reasoning refusal annotations".split(" "),
);
/** Fields of a tool's result beside its content. */
export const RESULT_FIELDS: ReadonlySet<string> = new Set(["tool_call_id", "name"]);

/**
 * The blocks of an assistant's message: signed thoughts first, then the text, then the calls. A message with `content_blocks` is sent as
 * these. `textBlocks`: those of its content.
 */
export function assistantBlocks(message: Fields, textBlocks: readonly unknown[]): Blocks {
  const calls = callsOf(message["tool_calls"]);
  if (!calls.ok) return calls;
  const { content_blocks: whole, thinking_blocks: thoughts, reasoning, refusal, annotations } = message;
  if (hasValue(whole)) return blocksAsTheyCame(whole, calls.byId);
  if (hasValue(annotations)) {
    return { ok: false, field: "annotations", expected: "content_blocks beside them: the API has no annotations" };
  }
  if (hasValue(reasoning) && !hasValue(thoughts)) {
    return { ok: false, field: "reasoning", expected: "thinking_blocks beside it: the API takes signed thoughts only" };
  }
  const signed = blocksOf(thoughts, "thinking_blocks");
  if (!signed.ok) return signed;
  const refused = textBlocks.length === 0 && typeof refusal === "string" && refusal !== "" ? [refusal] : [];
  const texts = [...textBlocks, ...refused.map((text) => ({ type: "text", text }))];
  return {
    ok: true,
    blocks: [...signed.blocks, ...texts.map((block) => JSON.stringify(block)), ...calls.byId.values()],
  };
}

/** The block of a tool's result; `content` is a text, or parts that the API takes. */
export function resultBlock(message: Fields, content: unknown): Blocks {
  const { tool_call_id: id } = message;
  if (typeof id !== "string") return { ok: false, field: "tool_call_id", expected: "the id of the call" };
  return { ok: true, blocks: [JSON.stringify({ type: "tool_result", tool_use_id: id, content })] };
}

type Calls = { ok: true; byId: ReadonlyMap<unknown, string> } | ({ ok: false } & Fault);

/** The calls as blocks, in their order. */
function callsOf(calls: unknown): Calls {
  const byId = new Map<unknown, string>();
  if (!hasValue(calls)) return { ok: true, byId };
  if (!Array.isArray(calls)) return { ok: false, field: "tool_calls", expected: "a list of calls" };
  for (const [index, call] of calls.entries()) {
    const field = `tool_calls[${index}]`;
    const called = isRecord(call) ? call["function"] : undefined;
    if (!isRecord(call) || !isRecord(called)) return { ok: false, field: `${field}.function`, expected: "a function" };
    const { name, arguments: args } = called;
    const input = inputJson(args);
    if (input === null) {
      return { ok: false, field: `${field}.function.arguments`, expected: "the JSON text of an object" };
    }
    byId.set(call["id"], `{"type":"tool_use","id":${text(call["id"])},"name":${text(name)},"input":${input}}`);
  }
  return { ok: true, byId };
}

/** The arguments of a call as they came; null if they are no object. */
function inputJson(args: unknown): string | null {
  if (args === undefined || args === null || args === "") return "{}";
  if (typeof args !== "string") return isRecord(args) ? JSON.stringify(args) : null;
  return isRecord(tryParse(args)) ? args : null;
}

/** The whole content of an earlier answer. Its calls are written with their arguments, which have lost no digits. */
function blocksAsTheyCame(whole: unknown, callById: ReadonlyMap<unknown, string>): Blocks {
  const read = blocksOf(whole, "content_blocks");
  if (!read.ok || !Array.isArray(whole)) return read;
  const blocks = whole.map((block: unknown, index) => {
    const call = isRecord(block) && block["type"] === "tool_use" ? callById.get(block["id"]) : undefined;
    return call ?? read.blocks[index] ?? "";
  });
  return { ok: true, blocks };
}

function blocksOf(list: unknown, field: string): Blocks {
  if (!hasValue(list)) return { ok: true, blocks: [] };
  if (!Array.isArray(list)) return { ok: false, field, expected: "a list of blocks" };
  const odd = list.findIndex((block) => !isRecord(block) || typeof block["type"] !== "string");
  if (odd !== -1) return { ok: false, field: `${field}[${odd}]`, expected: "a block with a type" };
  return { ok: true, blocks: list.map((block) => JSON.stringify(block)) };
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function text(value: unknown): string {
  return JSON.stringify(typeof value === "string" ? value : "");
}
