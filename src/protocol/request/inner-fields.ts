/** Tables of the inner objects of a request that are read. */
import { fieldTable, HARMLESS, PROMPT, type FieldRule, type FieldTable } from "./field-table.ts";
import { OLLAMA_OPTIONS, TEMPLATE_SWITCHES } from "./harmless-fields.ts";
import { CACHE_OPTION_TTL, CACHED_CONTENT, REASONING_MODE } from "./unreservable-fields.ts";

const holds = (inside: FieldTable): FieldRule => ({ kind: "harmless", inside });

/** Fields that mark a part for a provider's cache: Anthropic's, and OpenAI's from GPT-5.6 on. */
export const CACHE_MARKS = {
  cache_control: { kind: "cache_mark" },
  prompt_cache_breakpoint: { kind: "cache_mark" },
} as const satisfies Record<string, FieldRule>;

/** The object of such a mark. */
export const CACHE_MARK = fieldTable("type mode ttl scope");

/** Annotations of a model's answer. A router's `file` is not listed, because it holds images. */
const ANNOTATION = fieldTable(
  `type url_citation file_citation file_path container_file_citation index start_index end_index text url title
  content file_id filename container_id`,
);

/** A message of a conversation, as clients write it, and as they send back an answer. */
export const MESSAGE = fieldTable(
  `role name tool_call_id tool_calls tool_name function_call refusal reasoning_content reasoning
  reasoning_details reasoning_text thinking thinking_blocks prefix partial citations parsed id type status phase index
  weight provider_specific_fields extra_content finish_reason stop_reason stop_sequence`,
  {
    content: PROMPT,
    audio: { kind: "file" },
    images: { kind: "media" },
    annotations: holds(ANNOTATION),
    ...CACHE_MARKS,
  },
);

/** Items of the Responses API, by type; a message's content and an output are read as content. */
export const ITEMS: ReadonlyMap<string, FieldTable> = new Map([
  ["message", fieldTable("type role id status phase", { content: PROMPT, ...CACHE_MARKS })],
  ["function_call", fieldTable("type id call_id name arguments status namespace caller async created_by")],
  ["custom_tool_call", fieldTable("type id call_id name input status namespace caller async created_by")],
  ["function_call_output", fieldTable("type id call_id name status namespace caller created_by", { output: PROMPT })],
  [
    "custom_tool_call_output",
    fieldTable("type id call_id name status namespace caller created_by", { output: PROMPT }),
  ],
  ["reasoning", fieldTable("type id summary content encrypted_content status")],
]);

const FUNCTION = fieldTable("name description parameters strict");

/** A tool that the client runs: OpenAI's with a wrapper, the Responses API's and Anthropic's without. */
export const TOOL = fieldTable(
  `type name description parameters strict format input_schema output_schema input_examples allowed_callers
  defer_loading eager_input_streaming async display_width_px display_height_px display_number enable_zoom
  max_characters`,
  { function: holds(FUNCTION), custom: holds(fieldTable("name description format")), ...CACHE_MARKS },
);

const JSON_SCHEMA = fieldTable("name description schema strict");

/** The form of the answer; schemas and grammars are opaque. */
const RESPONSE_FORMAT = fieldTable(
  "type schema name description strict grammar pattern regex value structures triggers format",
  { json_schema: holds(JSON_SCHEMA) },
);

const REASONING = fieldTable("effort summary generate_summary max_tokens exclude enabled context", {
  mode: REASONING_MODE,
});

const GOOGLE = fieldTable("safety_settings thought_tag_marker", {
  thinking_config: holds(
    fieldTable("thinking_budget include_thoughts thinking_level thinkingBudget includeThoughts thinkingLevel"),
  ),
  cached_content: CACHED_CONTENT,
});

/** Top-level fields that hold objects, with the tables of these. */
export const HOLDERS: Readonly<Record<string, FieldRule>> = {
  stream_options: holds(fieldTable("include_usage include_obfuscation continuous_usage_stats")),
  response_format: holds(RESPONSE_FORMAT),
  text: holds(fieldTable("verbosity", { format: holds(RESPONSE_FORMAT) })),
  functions: holds(FUNCTION),
  reasoning: holds(REASONING),
  thinking: holds(fieldTable("type budget_tokens display keep clear_thinking block_binding")),
  output_config: holds(fieldTable("effort format task_budget")),
  output_format: holds(fieldTable("type schema name description strict")),
  chat_template_kwargs: holds(fieldTable(TEMPLATE_SWITCHES)),
  // At Vertex AI beside the other fields, at the Gemini API inside `extra_body`.
  google: holds(GOOGLE),
  extra_body: holds(fieldTable({ google: holds(GOOGLE) })),
  options: holds(fieldTable(OLLAMA_OPTIONS)),
  usage: holds(fieldTable("include")),
  prompt_cache_options: holds(fieldTable("mode comparison_response_id", { ttl: CACHE_OPTION_TTL })),
};

/** An input of multimodal embeddings. */
export const EMBEDDING_INPUT = fieldTable("type text", {
  content: PROMPT,
  image: { kind: "media" },
  image_url: { kind: "media" },
  image_base64: { kind: "media" },
});

/** Fields by which the upstream adds content that it stores to the prompt. */
export const COUNTED_TEXT = { documents: HARMLESS, suffix: HARMLESS } as const;
