/**
 * The state that the readers of a request share: its bytes, the findings so far, and functions to read or refuse a value.
 * After a refusal, readers of lists stop; others may continue, because only the first refusal counts.
 */
import type { ImageFacts, UnreservableField } from "../../../call.ts";
import { fieldMessage, type Reason } from "../../../errors.ts";
import {
  IMAGES_MEASURED_MAX,
  NAME_CHARS_MAX,
  UNRESERVABLE_LISTED_MAX,
  UNRESERVABLE_NAME_CHARS_MAX,
  UNRESERVABLE_NOTED_MAX,
} from "../../../limits.ts";
import { keyAt } from "../../../text/json/key.ts";
import {
  numberOf,
  readObject,
  TOO_MANY_MEMBERS,
  type JsonMember,
  type JsonObject,
  type JsonValue,
} from "../../../text/json/scan.ts";
import { SPENDS_ALL } from "./field-table.ts";

/** The findings in a request so far. */
export type ScanContext = {
  readonly bytes: Uint8Array;
  refusal: Reason | null;
  unbounded: UnreservableField[];
  /** Fields noted so far, repeated ones included. */
  notedCount: number;
  /** Messages, input items or prompts. */
  messageCount: number;
  /** Prompts, each of which gets its own completions. */
  prompts: number;
  mediaParts: number;
  /** What is known of those images, by size and detail. */
  images: ImageFacts[];
  fileParts: number;
  /** Prompt tokens that the bytes do not bound: sent as numbers, or added by the provider. */
  promptTokenIds: number;
  /** Bytes that no tokenizer reads as text: media data and token numbers. */
  otherBytes: number;
  /** Whether tools are sent. */
  tools: boolean;
  /** The most expensive cache lifetime that is marked; null = no mark. */
  cacheTtl: "5m" | "1h" | null;
};

export function newScan(bytes: Uint8Array): ScanContext {
  return {
    bytes,
    refusal: null,
    unbounded: [],
    notedCount: 0,
    messageCount: 0,
    prompts: 1,
    mediaParts: 0,
    images: [],
    fileParts: 0,
    promptTokenIds: 0,
    otherBytes: 0,
    tools: false,
    cacheTtl: null,
  };
}

/** Refuses the request because of one field; null = the whole body. */
export function refuse(scan: ScanContext, field: string | null, problem: string): void {
  scan.refusal ??= { reason: "invalid_request", message: fieldMessage(field, problem), param: field };
}

/** An unreservable field, before its path is cut for storage. */
export type Noted = Omit<UnreservableField, "allowedBy"> & {
  /**
   * The name by which `allow_params` can allow the field; null = never. Default: the field's path without the indexes of
   * list elements.
   */
  allowedBy?: string | null;
};

/** Notes a field that limits refuse. Equal entries are noted once. */
export function noteUnreservable(scan: ScanContext, { field, why, spends, allowedBy }: Noted): void {
  if (hasNotedEnough(scan)) return;
  scan.notedCount += 1;
  if (hasNotedEnough(scan)) {
    scan.unbounded = [...scan.unbounded, { field: shortName(field), why: TOO_MANY, spends: SPENDS_ALL }];
    return;
  }
  const name = allowedBy === undefined ? placeOf(field) : allowedBy;
  const entry: UnreservableField = { field: field.slice(0, NAME_CHARS_MAX).toWellFormed(), why, spends };
  // A name too long to be compared cannot be allowed.
  if (name !== null && name.length <= UNRESERVABLE_NAME_CHARS_MAX) entry.allowedBy = name;
  scan.unbounded = withEntry(scan.unbounded, entry);
}

/** Whether the list is full: then every limit refuses the request, and further entries change nothing. */
export function hasNotedEnough(scan: ScanContext): boolean {
  return scan.notedCount > UNRESERVABLE_NOTED_MAX;
}

/** Counts an image with what is known of it. One that has no room in the list counts as one of which nothing is known. */
export function noteImage(scan: ScanContext, image: ImageFacts): void {
  scan.mediaParts += 1;
  const { width, height, detail } = image;
  const same = scan.images.find((each) => each.width === width && each.height === height && each.detail === detail);
  if (same !== undefined) same.count = (same.count ?? 1) + 1;
  else if (scan.images.length < IMAGES_MEASURED_MAX) scan.images.push({ ...image });
}

/** The path of a field without the indexes of list elements, as in `allow_params`. */
function placeOf(field: string): string {
  return field.replace(/\[\d+\]/g, "");
}

/** The reason of the first entry above the bound. It cannot be allowed, so no field hides behind the listed ones. */
const TOO_MANY = `It is one of more fields that no reservation covers than a request may have.`;

function withEntry(entries: UnreservableField[], entry: UnreservableField): UnreservableField[] {
  if (entries.length > UNRESERVABLE_LISTED_MAX) return entries;
  const isKnown = entries.some(
    ({ allowedBy, spends }) =>
      allowedBy === entry.allowedBy && entry.spends.every((dimension) => spends.includes(dimension)),
  );
  if (isKnown) return entries;
  const isListed = entries.length < UNRESERVABLE_LISTED_MAX;
  return [...entries, isListed ? entry : { field: entry.field, why: TOO_MANY, spends: SPENDS_ALL }];
}

/** Merges the entries of two parts of one request. */
export function mergeUnreservable(
  first: readonly UnreservableField[],
  second: readonly UnreservableField[],
): readonly UnreservableField[] {
  if (second.length === 0) return first;
  return second.reduce(withEntry, [...first]);
}

/** The object of a value; null if it is not one. Refuses a repeated name, because the upstream may read the other member. */
export function objectAt(scan: ScanContext, value: JsonValue, field: string): JsonObject | null {
  if (value.kind !== "object") {
    refuse(scan, field, "expected an object");
    return null;
  }
  const object = readObject(scan.bytes, value.start);
  if (object === null) refuse(scan, field, TOO_MANY_MEMBERS);
  else if (object.duplicate !== null) refuse(scan, `${field}.${shortName(object.duplicate)}`, TWICE);
  return object;
}

/** The message about a repeated field. */
export const TWICE = "appears more than once; expected each field once";

/** A client's field name, cut for a message. */
export function shortName(name: string): string {
  return name.slice(0, NAME_CHARS_MAX).toWellFormed();
}

/** The text of a value; null if it is not a text. */
export function textOf(scan: ScanContext, value: JsonValue | null): string | null {
  return value?.kind === "text" ? keyAt(scan.bytes, value.start + 1, value.end - 1) : null;
}

/** A member that must be true, false or null; refuses any other value. */
export function booleanOf(scan: ScanContext, value: JsonMember | null, field: string): boolean | null {
  if (value === null || value.kind === "null") return null;
  if (value.kind !== "boolean") refuse(scan, field, "expected true or false");
  return scan.bytes[value.start] === 0x74;
}

/** A member that must be an integer from 1 to `max` or null; refuses any other value. */
export function countOf(scan: ScanContext, value: JsonMember, max: number): number | null {
  if (value.kind === "null") return null;
  const count = value.kind === "number" ? numberOf(scan.bytes, value) : Number.NaN;
  if (Number.isInteger(count) && count >= 1 && count <= max) return count;
  refuse(scan, value.name, `expected an integer from 1 to ${max}`);
  return null;
}
