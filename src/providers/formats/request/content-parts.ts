/** Reads the parts of messages: some are text, others are bounded by the upstream's configuration. */
import { CONTENT_LEVELS_MAX } from "../../../limits.ts";
import { valueEnd } from "../../../text/json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  valueAtPath,
  type JsonObject,
  type JsonValue,
} from "../../../text/json/scan.ts";
import { PART_KINDS, type PartKind } from "./content-part-kinds.ts";
import { SPENDS_PROMPT } from "./field-table.ts";
import { allowedType, hasValue, noteForm, readFields } from "./fields.ts";
import { readImage } from "./images.ts";
import { noteUnreservable, objectAt, refuse, textOf, type ScanContext } from "./scan-context.ts";

/** Reads the content of a message or of a tool's result: a text, an array of parts, or null. */
export function readContent(scan: ScanContext, content: JsonValue, field: string, level = 0): void {
  if (content.kind === "text" || content.kind === "null") return;
  if (content.kind !== "array") return refuse(scan, field, "expected a text, an array of parts or null");
  if (level === CONTENT_LEVELS_MAX) {
    const why = `Content within content is read to ${CONTENT_LEVELS_MAX} levels.`;
    return noteUnreservable(scan, { field, why, spends: SPENDS_PROMPT, allowedBy: null });
  }
  const { bytes } = scan;
  let index = 0;
  for (let at = firstElement(bytes, content.start); at !== -1 && scan.refusal === null; index++) {
    const end = readPart(scan, at, `${field}[${index}]`, level);
    at = nextElement(bytes, end);
  }
}

/** Reads the part that begins at `start`; returns the index behind it. */
function readPart(scan: ScanContext, start: number, field: string, level: number): number {
  const { bytes } = scan;
  const kind = kindAt(bytes, start);
  if (kind !== "object") {
    if (kind !== "text") refuse(scan, field, "expected an object with a type");
    return valueEnd(bytes, start);
  }
  const part = objectAt(scan, { kind, start, end: start }, field);
  if (part === null) return valueEnd(bytes, start);
  const partKind = kindOf(scan, part, field);
  if (partKind === null) return part.end;
  readFields(scan, part, partKind.fields, field);
  readBound(scan, part, { partKind, field, level });
  return part.end;
}

/** The kind of a part; null if unknown: then its bytes count, and it is noted as unreservable, because it could be anything. */
function kindOf(scan: ScanContext, part: JsonObject, field: string): PartKind | null {
  const typeField = member(part, "type");
  // Some upstreams accept a text part without a type.
  const isBareText = typeField === null && textOf(scan, member(part, "text")) !== null;
  const type = isBareText ? "text" : textOf(scan, typeField);
  const known = type === null ? undefined : PART_KINDS.get(type);
  if (known !== undefined) return known;
  const why = "The gateway does not know parts of this type, so nothing bounds their tokens.";
  const place = typeField === null ? field : `${field}.type`;
  noteUnreservable(scan, { field: place, why, spends: SPENDS_PROMPT, allowedBy: allowedType(field, type) });
  return null;
}

type PartPlace = { partKind: PartKind; field: string; level: number };

function readBound(scan: ScanContext, part: JsonObject, { partKind, field, level }: PartPlace): void {
  switch (partKind.bound) {
    case "text":
      return;
    case "thoughts": {
      const thoughts = member(part, "thinking");
      if (thoughts !== null) readContent(scan, thoughts, `${field}.thinking`, level + 1);
      return;
    }
    case "parts": {
      const content = member(part, "content");
      if (content !== null) readContent(scan, content, `${field}.content`, level + 1);
      return;
    }
    case "document":
      return readDocument(scan, part, { partKind, field, level });
    case "media":
      readImage(scan, part, partKind.data ?? []);
      return readData(scan, part, { partKind, field, level });
    case "file":
      scan.fileParts += 1;
      return readData(scan, part, { partKind, field, level });
  }
}

/** Reads the data of a part, which is one medium or file: a list may be as many as it has elements. */
function readData(scan: ScanContext, part: JsonObject, { partKind, field }: PartPlace): void {
  for (const [name] of partKind.data ?? []) {
    if (member(part, name)?.kind === "array") return noteForm(scan, `${field}.${name}`, "one medium or file");
  }
  dropData(scan, part, partKind);
}

/** Excludes the data of a part from the bytes that count as text. Its other bytes are counted, to be safe. */
function dropData(scan: ScanContext, part: JsonObject, { data = [] }: PartKind): void {
  for (const path of data) {
    const found = valueAtPath(scan.bytes, part, path);
    if (found?.kind === "text") scan.otherBytes += found.end - found.start;
  }
}

/** Reads a document, which is a text, parts of its own, or a file. */
function readDocument(scan: ScanContext, part: JsonObject, place: PartPlace): void {
  const { partKind, field, level } = place;
  const source = member(part, "source");
  const object = source === null ? null : objectAt(scan, source, `${field}.source`);
  const type = object === null ? null : textOf(scan, member(object, "type"));
  const content = object === null ? null : member(object, "content");
  if (content !== null) readContent(scan, content, `${field}.source.content`, level + 1);
  const isText = type === "text" || type === "content";
  // A source that says it is a text may name a file beside it.
  const namesFile = object !== null && ["url", "file_id"].some((name) => hasValue(scan.bytes, member(object, name)));
  if (namesFile) scan.fileParts += 1;
  if (isText) return;
  if (type === "base64" || type === "url" || type === "file") {
    if (!namesFile) scan.fileParts += 1;
    return dropData(scan, part, partKind);
  }
  const why = "The gateway does not know documents from such a source, so nothing bounds their tokens.";
  noteUnreservable(scan, { field: `${field}.source`, why, spends: SPENDS_PROMPT });
}
