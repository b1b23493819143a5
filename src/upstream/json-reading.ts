/**
 * What the readers of a request share: the bytes, what has been found in them so far, and how a value is read or
 * refused. Readers of a list stop at a fault, the others go on, for the first fault is the one that counts.
 */
import type { Unbounded } from "../call.ts";
import type { Dimension, Reason } from "../errors.ts";
import { keyAt } from "./json-key.ts";
import { member, readObject, TOO_MANY_MEMBERS, type JsonMember, type JsonObject, type JsonValue } from "./json-scan.ts";

/** Another price per token, or a charge beside the tokens. */
export const SPENDS_PRICE: readonly Dimension[] = ["usd"];
/** Prompt tokens that no byte of the request accounts for. */
export const SPENDS_PROMPT: readonly Dimension[] = ["usd", "prompt_tokens"];
/** Completions beyond the cap. */
export const SPENDS_COMPLETION: readonly Dimension[] = ["usd", "completion_tokens"];
/** Work of the provider's own of any kind. */
export const SPENDS_ALL: readonly Dimension[] = ["usd", "prompt_tokens", "completion_tokens"];

/** What has been found in a request so far. */
export type Reading = {
  readonly bytes: Uint8Array;
  refusal: Reason | null;
  unbounded: Unbounded[];
  /** Messages, input items or prompts. */
  messageCount: number;
  /** Prompts that each get completions of their own. */
  prompts: number;
  mediaParts: number;
  /** Prompt tokens given by number. */
  promptTokenIds: number;
  /** Bytes that no tokenizer reads as text: data of media, and numbers of tokens. */
  otherBytes: number;
};

export function newReading(bytes: Uint8Array): Reading {
  return {
    bytes,
    refusal: null,
    unbounded: [],
    messageCount: 0,
    prompts: 1,
    mediaParts: 0,
    promptTokenIds: 0,
    otherBytes: 0,
  };
}

/** Refuses the request because of one field; null = the whole body. */
export function refuse(reading: Reading, field: string | null, problem: string): void {
  reading.refusal ??= { reason: "invalid_request", message: `${field ?? "the body"}: ${problem}`, param: field };
}

/** Fields listed as unbounded: enough to tell, and a bound on what a hostile request makes of a list. */
const UNBOUNDED_LISTED_MAX = 8;

export function cannotBound(reading: Reading, entry: Unbounded): void {
  const { unbounded } = reading;
  const isNews = entry.spends.some((dimension) => !unbounded.some(({ spends }) => spends.includes(dimension)));
  if (isNews || unbounded.length < UNBOUNDED_LISTED_MAX) unbounded.push(entry);
}

/** The object at a place, or null. Refused where a name stands twice: what this reads, the upstream might not. */
export function objectAt(reading: Reading, value: JsonValue, field: string): JsonObject | null {
  if (value.kind !== "object") {
    refuse(reading, field, "expected an object");
    return null;
  }
  const object = readObject(reading.bytes, value.start);
  if (object === null) refuse(reading, field, TOO_MANY_MEMBERS);
  else if (object.duplicate !== null) refuse(reading, `${field}.${object.duplicate}`, TWICE);
  return object;
}

/** What is said of a field that stands more than once. */
export const TWICE = "stands more than once; expected each field once";

/** The text of a value, or null where it is no text. */
export function textOf(reading: Reading, value: JsonValue | null): string | null {
  return value?.kind === "text" ? keyAt(reading.bytes, value.start + 1, value.end - 1) : null;
}

/** A member that may be true, false or null; refused if it is anything else. */
export function booleanOf(reading: Reading, value: JsonMember | null, field: string): boolean | null {
  if (value === null || value.kind === "null") return null;
  if (value.kind !== "boolean") refuse(reading, field, "expected true or false");
  return reading.bytes[value.start] === 0x74;
}

/** A member that may be an integer from 1 to `max` or null; refused if it is anything else. */
export function countOf(reading: Reading, value: JsonMember, max: number): number | null {
  if (value.kind === "null") return null;
  const count = value.kind === "number" ? numberOf(reading.bytes, value) : Number.NaN;
  if (Number.isInteger(count) && count >= 1 && count <= max) return count;
  refuse(reading, value.name, `expected an integer from 1 to ${max}`);
  return null;
}

/** The number that a value of that kind writes. */
export function numberOf(bytes: Uint8Array, value: JsonValue): number {
  return Number(keyAt(bytes, value.start, value.end));
}

/** Notes a cache lifetime whose writes cost more than the price list says of them; absent and `5m` are the usual. */
export function readCacheControl(reading: Reading, holder: JsonObject, field: string): void {
  const control = member(holder, "cache_control");
  if (control === null || control.kind === "null") return;
  const place = field === "" ? "cache_control" : `${field}.cache_control`;
  const object = objectAt(reading, control, place);
  const ttl = object === null ? null : member(object, "ttl");
  if (ttl === null || ttl.kind === "null" || textOf(reading, ttl) === "5m") return;
  const why = "Writing to a cache that lives longer costs more than the price that was reserved.";
  cannotBound(reading, { field: `${place}.ttl`, why, spends: SPENDS_PRICE });
}
