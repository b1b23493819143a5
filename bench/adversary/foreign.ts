/** Elements, parts and fields of every API family, for places of every other one. */
import { arraysIn, memberOf, nameOf, objectsIn, treeOf, type ObjectTree } from "./json-text.ts";
import type { Random } from "./random.ts";

const PNG = "data:image/png;base64,iVBORw0KGgo=";

/** Elements of lists: messages, items, parts, tools, sources, results, documents. */
const ELEMENTS: readonly unknown[] = [
  // Messages, and what looks like one.
  { role: "user", content: "good men" },
  { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "look" } }] },
  { role: "assistant", content: null, tool_calls: [{ id: "c" }] },
  { role: "tool", tool_call_id: "c", content: "great light" },
  { role: "assistant", id: "msg_1", content: "" },
  { role: "assistant", id: "msg_1", content: [] },
  { role: "user", type: "item_reference", id: "msg_1", content: "x" },
  { role: "assistant", content: "x", audio: { id: "audio_1" } },
  { role: "assistant", content: "x", reasoning_details: [{ type: "reasoning.encrypted", id: "rs_1" }] },
  { role: "assistant", content: "x", thinking_blocks: [{ type: "thinking", id: "th_1" }] },
  { role: "assistant", content: "x", provider_specific_fields: { container: "c_1" } },
  // Items of the Responses API.
  { type: "item_reference", id: "msg_1" },
  { id: "msg_1" },
  { id: "msg_1", content: [] },
  { type: "message", id: "msg_1", role: "assistant", content: [] },
  { type: "message", role: "user", content: [{ type: "input_text", text: "good" }] },
  { type: "compaction", id: "cmp_1", encrypted_content: "x" },
  { type: "reasoning", id: "rs_1", summary: [] },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "" },
  { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "x" }], encrypted_content: " " },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA".repeat(40) },
  { type: "function_call", id: "fc_1", call_id: "c", name: "look", arguments: "{}" },
  { type: "function_call", id: "fc_1" },
  { type: "function_call_output", call_id: "c", output: "paper" },
  { type: "function_call_output", id: "fco_1", call_id: "c" },
  { type: "function_call_output", call_id: "c", output: [{ type: "item_reference", id: "msg_1" }] },
  { type: "custom_tool_call", id: "ctc_1", call_id: "c", name: "look", input: "x" },
  ...(
    "mcp_call mcp_list_tools mcp_approval_request mcp_approval_response file_search_call web_search_call " +
    "code_interpreter_call image_generation_call computer_call computer_call_output local_shell_call " +
    "local_shell_call_output shell_call_output apply_patch_call_output"
  )
    .split(" ")
    .map((type) => ({ type, id: "it_1", call_id: "c", status: "completed" })),
  // Blocks of Anthropic's messages.
  { type: "tool_use", id: "t_1", name: "look", input: { id: "x" } },
  { type: "tool_use", id: "t_1" },
  { type: "tool_result", tool_use_id: "t_1" },
  { type: "tool_result", tool_use_id: "t_1", content: [{ type: "tool_reference", tool_name: "look" }] },
  { type: "server_tool_use", id: "s_1", name: "web_search", input: {} },
  { type: "web_search_tool_result", tool_use_id: "s_1", content: [] },
  { type: "web_fetch_tool_result", tool_use_id: "s_1", content: { url: "https://a.example" } },
  { type: "code_execution_tool_result", tool_use_id: "s_1", content: {} },
  { type: "mcp_tool_use", id: "m_1", name: "a", server_name: "b", input: {} },
  { type: "mcp_tool_result", tool_use_id: "m_1", content: [] },
  { type: "container_upload", file_id: "file_1" },
  { type: "compaction", content: "x" },
  { type: "document", source: { type: "text", media_type: "text/plain", data: "x", file_id: "file_1" } },
  { type: "document", source: { type: "file", file_id: "file_1" } },
  { type: "document", source: { type: "content", content: [{ type: "item_reference", id: "a" }] } },
  { type: "search_result", source: "a", title: "b", content: [{ id: "msg_1", type: "text" }] },
  { type: "redacted_thinking", id: "th_1" },
  {
    type: "image",
    source: [
      { type: "file", file_id: "file_1" },
      { type: "file", file_id: "file_2" },
    ],
  },
  // Parts of chat completions and of responses.
  { type: "text", id: "msg_1" },
  { type: "text", text: [{ type: "item_reference", id: "msg_1" }] },
  { type: "text", text: { type: "item_reference", id: "msg_1" } },
  { type: "output_text", id: "msg_1", text: "" },
  { type: "image_url", image_url: [{ url: PNG }, { url: PNG }, { url: PNG }] },
  { type: "image_url", image_url: { url: PNG } },
  { type: "input_image", file_id: "file_1" },
  { type: "input_file", file_id: "file_1" },
  { type: "file", file: [{ file_id: "file_1" }, { file_id: "file_2" }] },
  { type: "file_reference", file_id: "file_1" },
  // Inputs of embeddings, and documents.
  { text: "good" },
  { image: PNG },
  { id: "doc_1" },
  { id: "doc_1", data: {} },
  [{ type: "item_reference", id: "msg_1" }],
  // Tools.
  ...["web_search", "code_interpreter", "mcp", "file_search", "mcp_toolset", "memory", "namespace"].map((type) => ({
    type,
    name: "look",
  })),
];

/** Fields of any object. */
const FIELDS: readonly (readonly [string, unknown])[] = [
  ["id", "msg_1"],
  ["item_id", "msg_1"],
  ["file_id", "file_1"],
  ["encrypted_content", ""],
  ["previous_response_id", "resp_1"],
  ["conversation", { id: "conv_1" }],
  ["prompt", { id: "pmpt_1", variables: {} }],
  ["container", "container_1"],
  ["mcp_servers", [{ type: "url", url: "https://m.example", name: "m" }]],
  ["cached_content", "cachedContents/1"],
  ["thread_id", "thread_1"],
  ["assistant_id", "asst_1"],
  ["file_ids", ["file_1"]],
  ["memory_id", "mem_1"],
  ["stored_messages", ["msg_1"]],
  ["documents", [{ id: "doc_1" }]],
  ["documents", [{ title: "One", text: "good" }]],
  ["thinking", { type: "enabled", budget_tokens: 9_000 }],
  ["reasoning", { max_tokens: 9_000 }],
  ["betas", ["web-everything-2026-01-01"]],
  ["messages", [{ type: "item_reference", id: "msg_1" }]],
  ["input", [{ type: "item_reference", id: "msg_1" }]],
  ["system", [{ type: "item_reference", id: "msg_1" }]],
  ["instructions", [{ type: "item_reference", id: "msg_1" }]],
  ["content", [{ type: "item_reference", id: "msg_1" }]],
  ["tool_calls", [{ id: "c" }]],
  ["annotations", [{ type: "item_reference", id: "msg_1" }]],
  ["citations", [{ type: "item_reference", id: "msg_1" }]],
  ["name", { type: "item_reference", id: "msg_1" }],
  ["user", { id: "user_1" }],
  ["stop", [{ id: "msg_1" }]],
  ["audio", { id: "audio_1" }],
  ["type", "item_reference"],
];

/** Values of the header `anthropic-beta`, billed and not. */
const BETAS = [
  "web-everything-2026-01-01",
  "prompt-caching-2024-07-31",
  "prompt-caching-2024-07-31,deep-memory-2026-05-05",
  "interleaved-thinking-2025-05-14",
];

/** Puts what is foreign to its place into the body. It replaces nothing, so that the marker stays. */
export function addForeign(random: Random, body: ObjectTree): void {
  for (let more = random.chance(0.8) ? 1 : random.integer(2, 3); more > 0; more -= 1) {
    const arrays = arraysIn(body);
    if (arrays.length > 0 && random.chance(0.7)) {
      const { items } = random.pick(arrays);
      items.splice(random.integer(0, items.length), 0, treeOf(random.pick(ELEMENTS)));
    } else {
      const [name, value] = random.pick(FIELDS);
      const { members } = random.pick(objectsIn(body));
      // Some readers take the later of two members of one name, which may hold no marker.
      if (members.some((member) => nameOf(member) === name)) continue;
      members.splice(random.integer(0, members.length), 0, memberOf(name, value));
    }
  }
}

export function foreignHeaders(random: Random): Record<string, string> {
  return random.chance(0.05) ? { "anthropic-beta": random.pick(BETAS) } : {};
}
