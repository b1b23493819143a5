/** Reads a JSON answer that is in memory without parsing it whole: most of it may be embeddings. */
import { ANSWER_FIELDS, CHOICE_PREFIX, factsIn, FIELD_BYTES_MAX, usageIn, type AnswerFacts } from "./fields.ts";
import type { Endpoint } from "../../../call.ts";
import { firstElement, kindAt, member, readObject, scanObject, type JsonObject } from "../../../text/json/scan.ts";

/**
 * `ok`: whether the body is a JSON object, which is `object`: to look for more in it, the body need not be read again. If it is none,
 * nothing is known, not even whether it is an error.
 */
export type JsonAnswer = AnswerFacts & ({ ok: true; object: JsonObject } | { ok: false });

const NOTHING: JsonAnswer = { ok: false, usage: null, model: null, finishReason: null, id: null, hasError: false };

/** Reads the whole body of a 200 of that endpoint. Of a repeated field the last counts. */
export function readJsonAnswer(endpoint: Endpoint, bytes: Uint8Array): JsonAnswer {
  const scan = scanObject(bytes);
  if (!scan.ok) return NOTHING;
  const { object } = scan;
  const fields = new Map<string, Uint8Array>();
  const choice = firstChoice(bytes, object);
  for (const field of ANSWER_FIELDS[endpoint]) {
    const isOfChoice = field.startsWith(CHOICE_PREFIX);
    const inside = isOfChoice ? choice : object;
    const found = inside === null ? null : member(inside, isOfChoice ? field.slice(CHOICE_PREFIX.length) : field);
    if (found === null) continue;
    const { start, end } = found;
    fields.set(field, bytes.subarray(start, Math.min(end, start + FIELD_BYTES_MAX)));
  }
  const usage = member(object, "usage");
  const read = usage === null ? null : usageIn(endpoint, bytes.subarray(usage.start, usage.end));
  return { ok: true, object, ...factsIn(endpoint, fields, read) };
}

function firstChoice(bytes: Uint8Array, object: JsonObject): JsonObject | null {
  const choices = member(object, "choices");
  const at = choices?.kind === "array" ? firstElement(bytes, choices.start) : -1;
  return at !== -1 && kindAt(bytes, at) === "object" ? readObject(bytes, at) : null;
}
