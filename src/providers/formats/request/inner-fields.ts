/** Tables of the inner objects of a request that are read. */
import {
  carrying,
  fieldTable,
  HARMLESS,
  holds,
  opaque,
  PROMPT,
  typed,
  type FieldRule,
  type FieldTable,
} from "./field-table.ts";
import { OLLAMA_OPTIONS, TEMPLATE_SWITCHES } from "./harmless-fields.ts";
import { CACHE_OPTION_TTL, CACHED_CONTENT, REASONING_MODE } from "./unreservable-fields.ts";

/** Fields that mark a part for a provider's cache: Anthropic's, and OpenAI's from GPT-5.6 on. */
export const CACHE_MARKS = {
  cache_control: { kind: "cache_mark" },
  prompt_cache_breakpoint: { kind: "cache_mark" },
} as const satisfies Record<string, FieldRule>;

/** The object of such a mark. */
export const CACHE_MARK = fieldTable("type mode ttl scope");

/** Citations in a text: Anthropic's, and Cohere's. */
export const CITATION = fieldTable(
  `type cited_text document_index document_title file_id start_char_index end_char_index start_page_number
  end_page_number start_block_index end_block_index url title encrypted_index source search_result_index start end text
  document_ids`,
);

/** Annotations of a model's answer. A router's `file` is not listed, because it holds images. */
export const ANNOTATION = annotation();

function annotation(): FieldTable {
  const file = holds(fieldTable("file_id filename container_id quote index start_index end_index"));
  return fieldTable("type index start_index end_index text url title content file_id filename container_id", {
    citation: holds(CITATION),
    url_citation: holds(fieldTable("url title content start_index end_index")),
    file_citation: file,
    file_path: file,
    container_file_citation: file,
  });
}

/** Google's signatures of thoughts, which clients send back. */
export const EXTRA_CONTENT = holds(fieldTable({ google: holds(fieldTable("thought_signature thought")) }));
/** What LiteLLM keeps of a provider's answer. */
const PROVIDER_FIELDS = holds(
  fieldTable("refusal reasoning_content reasoning thought_signature thought_signatures signature stop_reason", {
    thinking_blocks: holds(fieldTable("type thinking signature data", CACHE_MARKS)),
    citations: holds(CITATION),
    ...opaque("logprobs"),
  }),
);

/** A call that an assistant's message makes: Mistral's and Ollama's arguments may be objects. */
const CALLED_FUNCTION = fieldTable("name description index", { ...opaque("arguments parameters") });
const TOOL_CALL = carrying(
  typed(
    "function custom tool_call",
    fieldTable("id type index name thought_signature async", {
      function: holds(CALLED_FUNCTION),
      custom: holds(fieldTable("name input")),
      ...opaque("arguments args"),
      extra_content: EXTRA_CONTENT,
      provider_specific_fields: PROVIDER_FIELDS,
    }),
  ),
  "function custom name",
);

/** OpenRouter's reasoning, which clients send back: a detail with an id alone may name what a provider holds. */
export const REASONING_DETAIL = carrying(
  typed(
    "reasoning.text reasoning.summary reasoning.encrypted",
    fieldTable("type id format index text signature summary data"),
  ),
  "text signature summary data",
);

/** An image or a sound outside the content. */
export const MEDIA = fieldTable("type id index url detail data format media_type transcript expires_at", {
  image_url: holds(fieldTable("url detail")),
});

export const PARTS_TEXT = fieldTable("type text");

/** Content of a message, of which one with an id must have some. */
const MESSAGE_CONTENT = `
  content tool_calls function_call refusal audio images reasoning_content reasoning reasoning_details reasoning_text
  thinking thinking_blocks content_blocks
`;

/** A message of a conversation, as clients write it, and as they send back an answer. */
export const MESSAGE = carrying(
  typed(
    "message",
    fieldTable(
      `role name tool_call_id tool_name refusal reasoning_content reasoning reasoning_text thinking prefix partial id type
    status phase index weight finish_reason stop_reason stop_sequence`,
      {
        content: PROMPT,
        audio: { kind: "file", inside: MEDIA },
        images: { kind: "media", inside: MEDIA },
        annotations: holds(ANNOTATION),
        citations: holds(CITATION),
        tool_calls: holds(TOOL_CALL),
        function_call: holds(CALLED_FUNCTION),
        reasoning_details: holds(REASONING_DETAIL),
        thinking_blocks: holds(fieldTable("type thinking signature data", CACHE_MARKS)),
        content_blocks: PROMPT,
        extra_content: EXTRA_CONTENT,
        provider_specific_fields: PROVIDER_FIELDS,
        ...opaque("parsed"),
        ...CACHE_MARKS,
      },
    ),
  ),
  MESSAGE_CONTENT,
);

export const CALLER = { caller: holds(fieldTable("type tool_id caller_id")) } as const;
const OUTPUT = fieldTable("type id call_id name status namespace created_by", { output: PROMPT, ...CALLER });

/** Items of the Responses API, by type; a message's content and an output are read as content. */
export const ITEMS: ReadonlyMap<string, FieldTable> = new Map([
  ["message", fieldTable("type role id status phase", { content: PROMPT, ...CACHE_MARKS })],
  [
    "function_call",
    carrying(fieldTable("type id call_id name arguments status namespace async created_by", CALLER), "name"),
  ],
  [
    "custom_tool_call",
    carrying(fieldTable("type id call_id name input status namespace async created_by", CALLER), "name"),
  ],
  ["function_call_output", OUTPUT],
  ["custom_tool_call_output", OUTPUT],
  [
    "reasoning",
    fieldTable("type id encrypted_content status", { summary: holds(PARTS_TEXT), content: holds(PARTS_TEXT) }),
  ],
]);

const FUNCTION = fieldTable("name description strict", opaque("parameters"));

/** The grammar of a custom tool's input. */
const GRAMMAR = holds(fieldTable("type syntax definition", { grammar: holds(fieldTable("syntax definition")) }));

/** A tool that the client runs: OpenAI's with a wrapper, the Responses API's and Anthropic's without. */
export const TOOL = fieldTable(
  `type name description strict allowed_callers defer_loading eager_input_streaming async display_width_px
  display_height_px display_number enable_zoom max_characters`,
  {
    ...opaque("parameters input_schema output_schema input_examples"),
    format: GRAMMAR,
    function: holds(FUNCTION),
    custom: holds(fieldTable("name description", { format: GRAMMAR })),
    ...CACHE_MARKS,
  },
);

/** A namespace of tools; these are read like others. */
export const TOOL_NAMESPACE = fieldTable("type name description", { tools: PROMPT });

/** Which tool the model must call: one of those that the request sends. */
const NAMED = holds(fieldTable("name"));
const CHOSEN_TOOL = fieldTable("type name server_label", { function: NAMED, custom: NAMED });
const TOOL_CHOICE = fieldTable("type name mode server_label disable_parallel_tool_use", {
  function: NAMED,
  custom: NAMED,
  tools: holds(CHOSEN_TOOL),
  allowed_tools: holds(fieldTable("mode", { tools: holds(CHOSEN_TOOL) })),
});

const JSON_SCHEMA = fieldTable("name description strict", opaque("schema"));

/** The form of the answer; schemas and grammars are opaque. */
const RESPONSE_FORMAT = fieldTable(
  "type name description strict pattern regex",
  opaque("schema grammar value structures triggers format"),
  { json_schema: holds(JSON_SCHEMA) },
);

const REASONING = fieldTable("effort summary generate_summary max_tokens exclude enabled context", {
  mode: REASONING_MODE,
});

const GOOGLE = fieldTable("thought_tag_marker", {
  safety_settings: holds(fieldTable("category threshold method")),
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
  function_call: NAMED,
  tool_choice: holds(TOOL_CHOICE),
  reasoning: holds(REASONING),
  thinking: holds(fieldTable("type budget_tokens display keep clear_thinking block_binding")),
  output_config: holds(
    fieldTable("effort", { format: holds(RESPONSE_FORMAT), task_budget: holds(fieldTable("type total remaining")) }),
  ),
  output_format: holds(fieldTable("type name description strict", opaque("schema"))),
  diagnostics: holds(fieldTable("previous_message_id")),
  chat_template_kwargs: holds(fieldTable(TEMPLATE_SWITCHES, opaque("custom_tools"))),
  // At Vertex AI beside the other fields, at the Gemini API inside `extra_body`.
  google: holds(GOOGLE),
  extra_body: holds(fieldTable({ google: holds(GOOGLE) })),
  options: holds(fieldTable(OLLAMA_OPTIONS)),
  usage: holds(fieldTable("include")),
  prompt_cache_options: holds(fieldTable("mode comparison_response_id", { ttl: CACHE_OPTION_TTL })),
};

/** An input of multimodal embeddings. */
export const EMBEDDING_INPUT = typed(
  "text input_text image image_url image_base64 message",
  fieldTable("type text", {
    content: PROMPT,
    image: { kind: "media", inside: MEDIA },
    image_url: { kind: "media", inside: MEDIA },
    image_base64: { kind: "media", inside: MEDIA },
  }),
);

/** A document that the upstream puts into the prompt: Cohere's, and those of the templates of open models. */
const DOCUMENT = carrying(
  fieldTable("id doc_id title text content contents snippet source url author date", opaque("data metadata")),
  "title text content contents snippet data",
);

/** Fields whose texts the upstream puts into the prompt. */
export const COUNTED_TEXT = { documents: holds(DOCUMENT), suffix: HARMLESS } as const;
