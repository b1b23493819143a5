/** Reads the fields of an object by its table, and notes unknown ones and those that spend beyond a reservation. */
import { keyAt, spells } from "../../../text/json/key.ts";
import { UNRESERVABLE_NAME_CHARS_MAX } from "../../../limits.ts";
import { QUOTE, valueEnd } from "../../../text/json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  readObject,
  type JsonMember,
  type JsonObject,
  type JsonValue,
} from "../../../text/json/scan.ts";
import { UNRESERVABLE_LISTED_MAX } from "../../../limits.ts";
import { unlistedBetas } from "./betas.ts";
import {
  foldCase,
  similarName,
  SPENDS_ALL,
  SPENDS_PRICE,
  SPENDS_PROMPT,
  type FieldRule,
  type FieldTable,
  type Unreservable,
} from "./field-table.ts";
import { hiddenMark } from "./hidden-marks.ts";
import { CACHE_MARK } from "./inner-fields.ts";
import {
  hasNotedEnough,
  noteUnreservable,
  objectAt,
  refuse,
  shortName,
  textOf,
  type ScanContext,
} from "./scan-context.ts";

/** Reads every field of an object but prompts, caps and multipliers, which have their own readers. `path` "" = the body. */
export function readFields(scan: ScanContext, object: JsonObject, table: FieldTable, path: string): void {
  for (const field of object.members) {
    const rule = table.rules.get(field.name);
    if (rule === undefined) readUnknown(scan, field, table, path);
    else if (!isPlainly(rule, field)) {
      readKnown(scan, field, rule, path === "" ? field.name : `${path}.${field.name}`);
    }
  }
  if (table.types !== undefined) readType(scan, object, table.types, path);
  if (table.carries !== undefined && isReference(scan, object, table.carries)) noteReference(scan, path);
}

/** Whether nothing more is to be read: true of most fields of most requests. */
function isPlainly(rule: FieldRule, { kind }: JsonMember): boolean {
  const isSingle = kind !== "object" && kind !== "array";
  if (rule.kind !== "harmless") return rule.kind === "opaque" && isSingle;
  return rule.addsTokens === undefined && isSingle;
}

/** Notes an object of another type than those that its place is for. */
function readType(scan: ScanContext, object: JsonObject, types: ReadonlySet<string>, path: string): void {
  const field = member(object, "type");
  if (field === null || field.kind === "null") return;
  const type = textOf(scan, field);
  if (type !== null && types.has(type)) return;
  const why = `The gateway knows no element of this type here, so nothing bounds its tokens; expected ${[...types].join(" or ")}.`;
  noteUnreservable(scan, { field: `${path}.type`, why, spends: SPENDS_PROMPT, allowedBy: allowedType(path, type) });
}

/** The name that allows elements of a type: `messages.item_reference`. */
export function allowedType(path: string, type: string | null): string | null {
  if (type === null || type.length > UNRESERVABLE_NAME_CHARS_MAX) return null;
  return `${path.replace(/\[\d+\]/g, "")}.${shortName(type)}`;
}

/** Whether an object has an id, and none of the fields that would be its content. */
function isReference({ bytes }: ScanContext, object: JsonObject, carries: readonly string[]): boolean {
  const id = member(object, "id");
  return id !== null && id.kind !== "null" && !carries.some((name) => hasValue(bytes, member(object, name)));
}

/** Whether a field holds anything: not null, nor a blank text, nor an empty list or object. */
export function hasValue(bytes: Uint8Array, value: JsonValue | null): boolean {
  if (value === null || value.kind === "null") return false;
  if (value.kind === "text") return keyAt(bytes, value.start + 1, value.end - 1).trim() !== "";
  if (value.kind === "array") return firstElement(bytes, value.start) !== -1;
  return value.kind !== "object" || (readObject(bytes, value.start)?.members.length ?? 1) > 0;
}

/** Notes an object that may stand for something of any length that the upstream holds. */
export function noteReference(scan: ScanContext, field: string): void {
  const why = "It has an id and no content, so it may name what the upstream holds, and its length is not known here.";
  noteUnreservable(scan, { field, why, spends: SPENDS_PROMPT });
}

function readKnown(scan: ScanContext, field: JsonMember, rule: FieldRule, place: string): void {
  switch (rule.kind) {
    case "harmless":
      if (rule.addsTokens !== undefined && !isHarmless(scan.bytes, field, ["false"])) {
        scan.promptTokenIds += rule.addsTokens;
      }
      if (rule.inside !== undefined) readInside(scan, field, rule.inside, place);
      else if (!isPlain(scan.bytes, field)) noteForm(scan, place, "a plain value or a list of plain values");
      break;
    case "betas":
      readBetas(scan, field, place);
      break;
    case "price":
    case "unreservable":
      if (isHarmless(scan.bytes, field, rule.harmless ?? [])) break;
      if (hasOnlyHarmless(scan, field, rule)) {
        noteHiddenMark(scan, field);
        break;
      }
      noteUnreservable(scan, { field: place, why: rule.why, spends: rule.spends });
      if (rule.isPlain === true && !isPlain(scan.bytes, field)) noteForm(scan, place, "names of models");
      break;
    case "cache_mark":
      readCacheMark(scan, field, place);
      break;
    case "media":
      readInside(scan, field, rule.inside, place);
      if (field.kind !== "null") scan.mediaParts += elementCount(scan.bytes, field);
      break;
    case "file":
      readInside(scan, field, rule.inside, place);
      if (field.kind !== "null") scan.fileParts += elementCount(scan.bytes, field);
      break;
    case "opaque":
      noteHiddenMark(scan, field);
      break;
    case "prompt":
    case "cap":
    case "multiplies":
      break;
  }
}

/** The objects in a field: its value, or the elements of its list. */
function readInside(scan: ScanContext, field: JsonValue, table: FieldTable, place: string): void {
  if (field.kind === "object") {
    const object = objectAt(scan, field, place);
    if (object !== null) readFields(scan, object, table, place);
    return;
  }
  if (field.kind !== "array") return;
  const { bytes } = scan;
  let index = 0;
  for (let at = firstElement(bytes, field.start); at !== -1 && scan.refusal === null; index++) {
    const end = valueEnd(bytes, at);
    const kind = kindAt(bytes, at);
    if (kind === "object") readInside(scan, { kind, start: at, end }, table, `${place}[${index}]`);
    else if (kind === "array") noteForm(scan, `${place}[${index}]`, "an object");
    at = nextElement(bytes, end);
  }
}

/** Whether a value is no object and holds none: a list of plain values is plain. */
export function isPlain(bytes: Uint8Array, value: JsonValue): boolean {
  if (value.kind !== "array") return value.kind !== "object";
  for (let at = firstElement(bytes, value.start); at !== -1; at = nextElement(bytes, valueEnd(bytes, at))) {
    const kind = kindAt(bytes, at);
    if (kind === "object" || kind === "array") return false;
  }
  return true;
}

/** Notes a known field with a value of a form that no provider documents. */
export function noteForm(scan: ScanContext, field: string, expected: string): void {
  const why = `The gateway does not know this form of the field; expected ${expected}.`;
  noteUnreservable(scan, { field, why, spends: SPENDS_ALL });
}

/** Reads beta features in the body, where some servers take what Anthropic takes in a header. */
function readBetas(scan: ScanContext, field: JsonMember, place: string): void {
  const { bytes } = scan;
  if (field.kind === "null") return;
  if (field.kind === "text") return noteBetas(scan, place, textOf(scan, field) ?? "");
  if (field.kind !== "array" || !isPlain(bytes, field)) return noteForm(scan, place, "a list of names");
  for (let at = firstElement(bytes, field.start); at !== -1;) {
    const end = valueEnd(bytes, at);
    noteBetas(scan, place, keyAt(bytes, bytes[at] === 0x22 ? at + 1 : at, bytes[at] === 0x22 ? end - 1 : end));
    at = nextElement(bytes, end);
  }
}

function noteBetas(scan: ScanContext, field: string, names: string): void {
  for (const entry of unlistedBetas(names, field)) noteUnreservable(scan, entry);
}

/** Notes an unknown name. Servers ignore a null, unless the name folds to a known field that has a value. */
function readUnknown(scan: ScanContext, { name, kind }: JsonMember, table: FieldTable, path: string): void {
  if (hasNotedEnough(scan)) return;
  const place = path === "" ? shortName(name) : `${path}.${shortName(name)}`;
  const folded = table.folded().get(foldCase(name));
  if (folded !== undefined) {
    // Refused without a limit too: besides what a run may spend, the gateway promises which models it may use.
    if (path === "" && folded === "model") return refuse(scan, place, MODEL_IN_ANOTHER_CASE);
    const why = `Some servers read it as ${folded}, whatever its case; write ${folded}.`;
    return noteUnreservable(scan, { field: place, why, spends: SPENDS_ALL, allowedBy: null });
  }
  if (kind === "null") return;
  // No more than these are listed.
  const similar = scan.notedCount < UNRESERVABLE_LISTED_MAX ? similarName(name, table.rules.keys()) : null;
  const hint = similar === null ? "" : ` Did you mean ${similar}?`;
  noteUnreservable(scan, { field: place, why: `The gateway does not know this field.${hint}`, spends: SPENDS_ALL });
}

const MODEL_IN_ANOTHER_CASE = "some servers read it as model, whatever its case; name the model in model only";

function isHarmless(bytes: Uint8Array, { kind, start, end }: JsonValue, harmless: readonly string[]): boolean {
  if (kind === "null") return true;
  if (kind !== "array") return isListed(bytes, start, end, harmless);
  // A list does not count as false, even if empty: servers differ in how they read it.
  if (harmless.includes("false")) return false;
  for (let at = firstElement(bytes, start); at !== -1;) {
    const elementEnd = valueEnd(bytes, at);
    if (!isListed(bytes, at, elementEnd, harmless)) return false;
    at = nextElement(bytes, elementEnd);
  }
  return true;
}

/** Whether an object holds nothing but the list of `harmlessList`, and that nothing but elements of its table. */
function hasOnlyHarmless(scan: ScanContext, field: JsonValue, { harmlessList }: Unreservable): boolean {
  const { bytes } = scan;
  if (harmlessList === undefined || field.kind !== "object") return false;
  const [list, ...others] = readObject(bytes, field.start)?.members ?? [];
  if (list?.name !== harmlessList.name || list.kind !== "array" || others.length > 0) return false;
  for (let at = firstElement(bytes, list.start); at !== -1; at = nextElement(bytes, valueEnd(bytes, at))) {
    const element = kindAt(bytes, at) === "object" ? readObject(bytes, at) : null;
    if (element === null || element.duplicate !== null || !isOf(scan, element, harmlessList.element)) return false;
  }
  return true;
}

/** Whether an object has a type of the table, and only its fields. */
function isOf(scan: ScanContext, { members }: JsonObject, { rules, types }: FieldTable): boolean {
  const type = textOf(scan, members.find(({ name }) => name === "type") ?? null);
  if (type === null || types?.has(type) === false) return false;
  return members.every((each) => {
    const rule = rules.get(each.name);
    return rule?.kind === "opaque" || (rule !== undefined && isPlainly(rule, each));
  });
}

function isListed(bytes: Uint8Array, start: number, end: number, harmless: readonly string[]): boolean {
  if (harmless.length === 0) return false;
  if (bytes[start] === QUOTE) return harmless.includes(keyAt(bytes, start + 1, end - 1));
  // An object with an escape in it is no text that could be decoded.
  return harmless.some((value) => spells(bytes, start, end, value));
}

/**
 * Notes a mark for the provider's cache. Anthropic's cache lives 5 minutes or an hour, at different prices; OpenAI's 30
 * minutes, at the price of Anthropic's shorter one. Other lifetimes have no known price.
 */
function readCacheMark(scan: ScanContext, field: JsonMember, place: string): void {
  if (field.kind === "null") return;
  const mark = objectAt(scan, field, place);
  if (mark === null) return;
  readFields(scan, mark, CACHE_MARK, place);
  const ttl = member(mark, "ttl");
  const lifetime = ttl === null || ttl.kind === "null" ? "5m" : (textOf(scan, ttl) ?? "");
  if (lifetime === "1h") scan.cacheTtl = "1h";
  else if (lifetime === "5m" || (lifetime === "30m" && field.name !== "cache_control")) scan.cacheTtl ??= "5m";
  else {
    const why = "The price of writing to a cache for so long is not known here; expected 5m or 1h.";
    noteUnreservable(scan, { field: `${place}.ttl`, why, spends: SPENDS_PRICE });
  }
}

function noteHiddenMark(scan: ScanContext, value: JsonValue): void {
  const lifetime = hiddenMark(scan.bytes, value);
  if (lifetime === "1h") scan.cacheTtl = "1h";
  else if (lifetime === "5m") scan.cacheTtl ??= "5m";
}

function elementCount(bytes: Uint8Array, value: JsonValue): number {
  if (value.kind !== "array") return 1;
  let count = 0;
  for (let at = firstElement(bytes, value.start); at !== -1; at = nextElement(bytes, valueEnd(bytes, at))) count += 1;
  return count;
}
