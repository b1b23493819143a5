/**
 * Finds among the parts of messages those whose tokens do not follow from their bytes: images, sounds, files, and kinds
 * that are unknown here. Their data is not text, so its bytes are taken off the prompt.
 */
import { firstElement, kindAt, member, nextElement, valueAtPath, valueEnd, type JsonObject } from "./json-scan.ts";
import { objectAt, readCacheControl, refuse, textOf, type Reading } from "./json-reading.ts";
import type { JsonValue } from "./json-scan.ts";

/** Types of parts that are read as the text they hold, or that the model itself made. */
const TEXT_PARTS = new Set([
  "text",
  "input_text",
  "output_text",
  "refusal",
  "summary_text",
  "reasoning_text",
  "thinking",
  "redacted_thinking",
  "tool_use",
]);

/** Parts that hold parts, in their `content`. */
const NESTING_PARTS = new Set(["tool_result", "search_result"]);

/** Where parts of known kinds hold their data. What else stands in them is counted as text, to be safe. */
const DATA_PATHS: ReadonlyMap<string, readonly (readonly string[])[]> = new Map([
  ["image_url", [["image_url", "url"], ["image_url"]]],
  ["video_url", [["video_url", "url"]]],
  ["audio_url", [["audio_url", "url"]]],
  ["input_audio", [["input_audio", "data"]]],
  ["file", [["file", "file_data"]]],
  ["input_image", [["image_url"]]],
  ["input_file", [["file_data"], ["file_url"]]],
  ["image", [["source", "data"]]],
  ["document", [["source", "data"]]],
]);

/** Levels of parts within parts that are followed; whatever lies deeper counts as one unknown part. */
const LEVELS_MAX = 4;

/** Reads the content of a message, or of a tool's answer: a text, an array of parts, or null. */
export function readContent(reading: Reading, content: JsonValue, field: string, level = 0): void {
  if (content.kind === "text" || content.kind === "null") return;
  if (content.kind !== "array") return refuse(reading, field, "expected a text, an array of parts or null");
  const { bytes } = reading;
  let index = 0;
  for (let at = firstElement(bytes, content.start); at !== -1 && reading.refusal === null; index++) {
    const end = readPart(reading, at, `${field}[${index}]`, level);
    at = nextElement(bytes, end);
  }
}

/** Reads the part that begins at `start` and returns where it ends. */
function readPart(reading: Reading, start: number, field: string, level: number): number {
  const { bytes } = reading;
  const kind = kindAt(bytes, start);
  if (kind !== "object") {
    if (kind !== "text") refuse(reading, field, "expected an object with a type");
    return valueEnd(bytes, start);
  }
  const part = objectAt(reading, { kind, start, end: start }, field);
  if (part === null) return valueEnd(bytes, start);
  readCacheControl(reading, part, field);
  const typeField = member(part, "type");
  const type = textOf(reading, typeField);
  // A part of no type that holds text is what some upstreams take for a text part.
  if (typeField === null && textOf(reading, member(part, "text")) !== null) return part.end;
  if (type !== null && TEXT_PARTS.has(type)) return part.end;
  const content = type !== null && NESTING_PARTS.has(type) ? member(part, "content") : null;
  if (content !== null && level < LEVELS_MAX) readContent(reading, content, `${field}.content`, level + 1);
  else if (type !== "tool_result" || content !== null) readMedia(reading, part, { type, field });
  return part.end;
}

type PartPlace = { type: string | null; field: string };

function readMedia(reading: Reading, part: JsonObject, { type, field }: PartPlace): void {
  reading.mediaParts += 1;
  const { bytes } = reading;
  if (type === null) return;
  if (type === "document" && !isEncoded(reading, part, field)) return;
  for (const path of DATA_PATHS.get(type) ?? []) {
    const data = valueAtPath(bytes, part, path);
    if (data?.kind === "text") reading.otherBytes += data.end - data.start;
  }
}

/** A document may be a text, which is read as one; only as encoded data it is none. */
function isEncoded(reading: Reading, part: JsonObject, field: string): boolean {
  const source = member(part, "source");
  const object = source === null ? null : objectAt(reading, source, `${field}.source`);
  return object !== null && textOf(reading, member(object, "type")) === "base64";
}
