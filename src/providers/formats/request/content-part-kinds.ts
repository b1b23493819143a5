/**
 * The table of content parts, for every API family: what bounds a part's tokens. An upstream refuses a kind that its family
 * does not have, at no cost.
 */
import { carrying, fieldTable, holds, opaque, PROMPT, type FieldGroup, type FieldTable } from "./field-table.ts";
import { ANNOTATION, CACHE_MARKS, CALLER, CITATION, EXTRA_CONTENT, REASONING_DETAIL } from "./inner-fields.ts";

export type PartKind = {
  /**
   * `text`: its bytes. `media`: what an image of its size counts as. `file`: its bound for a file, audio or video.
   * `parts`: the parts in its `content`. `document`: depends on its source. `thoughts`: its bytes, or the parts in
   * `thinking`.
   */
  bound: "text" | "media" | "file" | "parts" | "document" | "thoughts";
  fields: FieldTable;
  /** Paths of its data, whose bytes are not text and are not counted. */
  data?: readonly (readonly [string, ...string[]])[];
};

// Clients that assemble a stream send parts back with their index.
const MARKS = {
  citations: holds(CITATION),
  annotations: holds(ANNOTATION),
  extra_content: EXTRA_CONTENT,
  reasoning_details: holds(REASONING_DETAIL),
  ...opaque("logprobs"),
  ...CACHE_MARKS,
};
/** A part whose content is text, in any of these fields. `more`: what else it may have. */
const text = (content: string, more: FieldGroup = {}): PartKind => ({
  bound: "text",
  fields: carrying(fieldTable("type index id", content, MARKS, more), content),
});

/** OpenAI's clients keep what they have parsed beside the text. */
const PARSED = opaque("parsed");

const SOURCE = holds(fieldTable("type media_type data url file_id"));
const DOCUMENT_SOURCE = holds(fieldTable("type media_type data url file_id", { content: PROMPT }));
/** Whether a document or a search result is cited. */
const CITED = { citations: holds(fieldTable("enabled")) };

const media = (field: string, names: string): PartKind => ({ ...recording(field, names), bound: "media" });

/** Audio and video have any length, like files; only images have a bound for each one. */
const recording = (field: string, names: string): PartKind => ({
  bound: "file",
  // vLLM refers to a cached medium by its `uuid`.
  fields: fieldTable("type uuid", { [field]: holds(fieldTable(names)) }, CACHE_MARKS),
  data: [[field, "url"], [field, "data"], [field]],
});

export const PART_KINDS: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["text", text("text", PARSED)],
  ["input_text", text("text")],
  ["output_text", text("text", PARSED)],
  ["refusal", text("refusal text")],
  ["summary_text", text("text")],
  ["reasoning_text", text("text")],
  ["reference", text("reference_ids")],
  ["redacted_thinking", text("data")],
  [
    "tool_use",
    {
      bound: "text",
      fields: carrying(fieldTable("type id name index toolset_name", opaque("input"), CALLER, CACHE_MARKS), "name"),
    },
  ],
  [
    "thinking",
    { bound: "thoughts", fields: fieldTable("type signature closed index", { thinking: PROMPT }, CACHE_MARKS) },
  ],

  [
    "tool_result",
    { bound: "parts", fields: fieldTable("type tool_use_id is_error toolset_name", { content: PROMPT }, CACHE_MARKS) },
  ],
  [
    "search_result",
    { bound: "parts", fields: fieldTable("type source title", { content: PROMPT }, CITED, CACHE_MARKS) },
  ],
  [
    "document",
    {
      bound: "document",
      fields: fieldTable("type title context", { source: DOCUMENT_SOURCE }, CITED, CACHE_MARKS),
      data: [["source", "data"]],
    },
  ],

  [
    "image",
    {
      bound: "media",
      fields: fieldTable("type", { source: SOURCE }, CACHE_MARKS),
      data: [["source", "data"]],
    },
  ],
  ["image_url", media("image_url", "url detail format")],
  [
    "input_image",
    {
      bound: "media",
      fields: fieldTable("type image_url file_id detail", CACHE_MARKS),
      data: [["image_url"], ["file_id"]],
    },
  ],
  ["input_audio", recording("input_audio", "data format")],
  ["audio_url", recording("audio_url", "url")],
  ["video_url", recording("video_url", "url")],

  [
    "file",
    {
      bound: "file",
      fields: fieldTable("type", { file: holds(fieldTable("file_data file_id filename format")) }, CACHE_MARKS),
      data: [["file", "file_data"]],
    },
  ],
  [
    "input_file",
    {
      bound: "file",
      fields: fieldTable("type file_id file_data file_url filename detail", CACHE_MARKS),
      data: [["file_data"], ["file_url"]],
    },
  ],
  [
    "document_url",
    { bound: "file", fields: fieldTable("type document_url document_name", CACHE_MARKS), data: [["document_url"]] },
  ],
]);
