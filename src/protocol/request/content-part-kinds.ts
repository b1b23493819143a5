/**
 * The table of content parts, for every API family: what bounds a part's tokens. An upstream refuses a kind that its family
 * does not have, at no cost.
 */
import { fieldTable, PROMPT, type FieldTable } from "./field-table.ts";
import { CACHE_MARKS } from "./inner-fields.ts";

export type PartKind = {
  /**
   * `text`: its bytes. `media`: the upstream's bound for an image. `file`: its bound for a file, audio or video.
   * `parts`: the parts in its `content`. `document`: depends on its source. `thoughts`: its bytes, or the parts in
   * `thinking`.
   */
  bound: "text" | "media" | "file" | "parts" | "document" | "thoughts";
  fields: FieldTable;
  /** Paths of its data, whose bytes are not text and are not counted. */
  data?: readonly (readonly [string, ...string[]])[];
  /** Inner objects that are read, by the name of their field. */
  inside?: Readonly<Record<string, FieldTable>>;
};

// Clients that assemble a stream send parts back with their index.
const MARKS = "citations annotations logprobs index";
const text = (names: string): PartKind => ({ bound: "text", fields: fieldTable("type", names, MARKS, CACHE_MARKS) });

const SOURCE = fieldTable("type media_type data url file_id");
const DOCUMENT_SOURCE = fieldTable("type media_type data url file_id", { content: PROMPT });

const media = (field: string, names: string): PartKind => ({ ...recording(field, names), bound: "media" });

/** Audio and video have any length, like files; only images have a bound for each one. */
const recording = (field: string, names: string): PartKind => ({
  bound: "file",
  // vLLM refers to a cached medium by its `uuid`.
  fields: fieldTable("type uuid", field, CACHE_MARKS),
  data: [[field, "url"], [field, "data"], [field]],
  inside: { [field]: fieldTable(names) },
});

export const PART_KINDS: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["text", text("text id parsed extra_content reasoning_details")],
  ["input_text", text("text")],
  ["output_text", text("text parsed")],
  ["refusal", text("refusal text")],
  ["summary_text", text("text")],
  ["reasoning_text", text("text")],
  ["reference", text("reference_ids")],
  ["redacted_thinking", text("data")],
  ["tool_use", text("id name input caller toolset_name")],
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
    { bound: "parts", fields: fieldTable("type source title citations", { content: PROMPT }, CACHE_MARKS) },
  ],
  [
    "document",
    {
      bound: "document",
      fields: fieldTable("type source title context citations", CACHE_MARKS),
      data: [["source", "data"]],
      inside: { source: DOCUMENT_SOURCE },
    },
  ],

  [
    "image",
    {
      bound: "media",
      fields: fieldTable("type source", CACHE_MARKS),
      data: [["source", "data"]],
      inside: { source: SOURCE },
    },
  ],
  ["image_url", media("image_url", "url detail format")],
  [
    "input_image",
    { bound: "media", fields: fieldTable("type image_url file_id detail", CACHE_MARKS), data: [["image_url"]] },
  ],
  ["input_audio", recording("input_audio", "data format")],
  ["audio_url", recording("audio_url", "url")],
  ["video_url", recording("video_url", "url")],

  [
    "file",
    {
      bound: "file",
      fields: fieldTable("type file", CACHE_MARKS),
      data: [["file", "file_data"]],
      inside: { file: fieldTable("file_data file_id filename format") },
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
