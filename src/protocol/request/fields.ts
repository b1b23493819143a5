/** Reads the fields of an object by its table, and notes unknown ones and those that spend beyond a reservation. */
import { keyAt } from "../../json/key.ts";
import { valueEnd } from "../../json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  type JsonMember,
  type JsonObject,
  type JsonValue,
} from "../../json/scan.ts";
import { foldCase, similarName, SPENDS_ALL, SPENDS_PRICE, type FieldRule, type FieldTable } from "./field-table.ts";
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
    else if (rule.kind !== "harmless" || rule.inside !== undefined || rule.addsTokens !== undefined) {
      readKnown(scan, field, rule, path === "" ? field.name : `${path}.${field.name}`);
    }
  }
}

function readKnown(scan: ScanContext, field: JsonMember, rule: FieldRule, place: string): void {
  switch (rule.kind) {
    case "harmless":
      if (rule.addsTokens !== undefined && !isHarmless(scan.bytes, field, ["false"])) {
        scan.promptTokenIds += rule.addsTokens;
      }
      if (rule.inside !== undefined) readInside(scan, field, rule.inside, place);
      break;
    case "price":
    case "unreservable":
      if (isHarmless(scan.bytes, field, rule.harmless ?? [])) break;
      noteUnreservable(scan, { field: place, why: rule.why, spends: rule.spends });
      break;
    case "cache_mark":
      readCacheMark(scan, field, place);
      break;
    case "media":
      if (field.kind !== "null") scan.mediaParts += elementCount(scan.bytes, field);
      break;
    case "file":
      if (field.kind !== "null") scan.fileParts += elementCount(scan.bytes, field);
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
    // A list within a list is not read: no field of this kind has one.
    if (kindAt(bytes, at) === "object")
      readInside(scan, { kind: "object", start: at, end }, table, `${place}[${index}]`);
    at = nextElement(bytes, end);
  }
}

/** Notes an unknown name. Servers ignore a null, unless the name folds to a known field that has a value. */
function readUnknown(scan: ScanContext, { name, kind }: JsonMember, table: FieldTable, path: string): void {
  if (hasNotedEnough(scan)) return;
  const place = path === "" ? shortName(name) : `${path}.${shortName(name)}`;
  const folded = table.folded.get(foldCase(name));
  if (folded !== undefined) {
    // Refused without a limit too: besides what a run may spend, the gateway promises which models it may use.
    if (path === "" && folded === "model") return refuse(scan, place, MODEL_IN_ANOTHER_CASE);
    const why = `Some servers read it as ${folded}, whatever its case; write ${folded}.`;
    return noteUnreservable(scan, { field: place, why, spends: SPENDS_ALL, allowedBy: null });
  }
  if (kind === "null") return;
  const similar = similarName(name, table.rules.keys());
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

function isListed(bytes: Uint8Array, start: number, end: number, harmless: readonly string[]): boolean {
  if (harmless.length === 0) return false;
  const isText = bytes[start] === 0x22;
  return harmless.includes(isText ? keyAt(bytes, start + 1, end - 1) : keyAt(bytes, start, end));
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

function elementCount(bytes: Uint8Array, value: JsonValue): number {
  if (value.kind !== "array") return 1;
  let count = 0;
  for (let at = firstElement(bytes, value.start); at !== -1; at = nextElement(bytes, valueEnd(bytes, at))) count += 1;
  return count;
}
