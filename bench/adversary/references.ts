/** What an upstream adds to the prompt that resolves whatever names something it holds, wherever that stands. */
import { itemsOf, member, numberOf, textOf, type KeyPolicy, type Value } from "./lenient-json.ts";

/** Prompt tokens of each thing that it holds. */
const STORED_TOKENS = 20_000;

/** Types of elements that name what is stored, or the work that a provider did, in any family. */
const STORED_TYPES = new Set(
  (
    "item_reference compaction mcp_call mcp_list_tools mcp_approval_request mcp_approval_response file_search_call " +
    "web_search_call code_interpreter_call image_generation_call computer_call computer_call_output local_shell_call " +
    "local_shell_call_output shell_call_output apply_patch_call_output container_upload tool_reference " +
    "server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result mcp_tool_use " +
    "mcp_tool_result file_reference"
  ).split(" "),
);

/** Fields that name what is stored. */
const STORED_FIELDS = new Set(
  (
    "previous_response_id conversation container cached_content cachedContent thread thread_id assistant_id file_ids " +
    "vector_store_ids mcp_servers stored_messages memory_id session"
  ).split(" "),
);

/** Fields with JSON of the client's own, in which nothing is resolved. */
const OPAQUE = new Set(
  "metadata parameters input_schema output_schema arguments schema logit_bias structured_outputs guided_json".split(
    " ",
  ),
);

/** Fields of which one makes an element with an id whole. */
const CONTENT =
  "content text output arguments input name function custom data summary signature thinking refusal tool_calls reasoning audio file image_url source snippet title url reasoning_content function_call".split(
    " ",
  );

/** Features that bill without any field. */
const BILLED_BETAS = ["web-everything-2026-01-01", "deep-memory-2026-05-05"];

export type Resolved = { promptTokens: number; notes: string[] };

export function resolved(body: Value, betas: string, keys: KeyPolicy): Resolved {
  const notes: string[] = [];
  visit(body, "", notes, keys);
  const names = [betas, ...itemsOf(member(body, "betas", keys)).map((value) => textOf(value) ?? "")].join(",");
  for (const beta of BILLED_BETAS) if (names.includes(beta)) notes.push(`the feature ${beta}`);
  return { promptTokens: STORED_TOKENS * notes.length, notes: notes.map((note) => `${note}: resolved`) };
}

/** Thoughts up to a budget, which it bills beside the cap. */
export function thoughtsOf(body: Value, cap: number, keys: KeyPolicy): number {
  const budgets = [
    member(member(body, "thinking", keys), "budget_tokens", keys),
    member(member(body, "reasoning", keys), "max_tokens", keys),
  ];
  return budgets.reduce((most, value) => {
    const budget = numberOf(value) ?? 0;
    return budget >= cap ? Math.max(most, Math.min(60_000, Math.floor(budget))) : most;
  }, 0);
}

function visit(value: Value, place: string, notes: string[], keys: KeyPolicy): void {
  if (value.kind === "array") return value.items.forEach((item, at) => visit(item, `${place}[${at}]`, notes, keys));
  if (value.kind !== "object") return;
  if (place !== "" && isReference(value, keys)) notes.push(place);
  for (const [name, inner] of value.members) {
    if (OPAQUE.has(name) || inner.kind === "null") continue;
    // Arguments of a tool's call are the client's own.
    if (name === "input" && member(value, "name", keys) !== undefined) continue;
    const isStored = STORED_FIELDS.has(name) || (name === "prompt" && inner.kind === "object");
    if (isStored) notes.push(`${place}.${name}`);
    else visit(inner, `${place}.${name}`, notes, keys);
  }
}

function isReference(object: Value, keys: KeyPolicy): boolean {
  const type = textOf(member(object, "type", keys)) ?? "";
  if (STORED_TYPES.has(type)) return true;
  const id = textOf(member(object, "id", keys)) ?? "";
  if (id === "") return false;
  if (type === "reasoning") return (textOf(member(object, "encrypted_content", keys)) ?? "").trim() === "";
  return !CONTENT.some((name) => isWhole(member(object, name, keys)));
}

function isWhole(value: Value | undefined): boolean {
  if (value === undefined || value.kind === "null") return false;
  if (value.kind === "string") return value.text.trim() !== "";
  if (value.kind === "array") return value.items.length > 0;
  return value.kind !== "object" || value.members.length > 0;
}
