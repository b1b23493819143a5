/** Assembles a chat completion from the chunks of its stream: the object that a request without a stream would get. */
import { isExactNumber } from "../../../text/json/exact.ts";
import { isRecord } from "../../../text/json/record.ts";

type Fields = Record<string, unknown>;

/** Fields that are not merged: the deltas of the choices, and OpenAI's padding against eavesdroppers. */
const OF_CHUNKS = new Set(["choices", "obfuscation"]);

/** Merges chunks in their order. */
export class ChatMerger {
  readonly #fields: Fields = {};
  readonly #choices = new Map<number, { message: Fields; rest: Fields }>();

  add(chunk: Fields): void {
    for (const [name, value] of Object.entries(chunk)) {
      // A null does not replace a value of an earlier chunk.
      if (!OF_CHUNKS.has(name) && (value !== null || !(name in this.#fields))) this.#fields[name] = value;
    }
    const choices: unknown[] = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    for (const choice of choices) if (isRecord(choice)) this.#addChoice(choice);
  }

  /** Whether a part of an answer has arrived. */
  get hasBegun(): boolean {
    return this.#choices.size > 0;
  }

  /** The whole completion as JSON text, with further fields. */
  answer(more: Fields): string {
    const choices = [...this.#choices.entries()]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { message, rest }]) => ({ index, message: wholeMessage(message), ...rest }));
    return JSON.stringify({ ...this.#fields, object: "chat.completion", choices, ...more });
  }

  #addChoice(choice: Fields): void {
    const index = typeof choice["index"] === "number" ? choice["index"] : 0;
    let known = this.#choices.get(index);
    if (known === undefined) {
      known = { message: { role: "assistant", content: null }, rest: { logprobs: null, finish_reason: null } };
      this.#choices.set(index, known);
    }
    for (const [name, value] of Object.entries(choice)) {
      if (name === "delta" && isRecord(value)) mergeDelta(known.message, value);
      else if (name === "logprobs") known.rest[name] = merged(known.rest[name], value);
      else if (name !== "index" && name !== "delta" && value !== null) known.rest[name] = value;
    }
  }
}

/**
 * Adds a delta to a message: texts and lists are appended, tool calls are identified by their `index`, objects are merged
 * in the same way, and of any other value the last one counts.
 */
function mergeDelta(message: Fields, delta: Fields): void {
  for (const [name, value] of Object.entries(delta)) {
    if (name === "role") message[name] = value ?? message[name];
    else if (name === "tool_calls" && Array.isArray(value)) message[name] = mergedCalls(message[name], value);
    else if (name === "reasoning_details" && Array.isArray(value)) message[name] = mergedDetails(message[name], value);
    else message[name] = merged(message[name], value);
  }
}

/** Merges two values, in place if possible: lists grow with each token. */
function merged(known: unknown, more: unknown): unknown {
  if (more === null || more === undefined) return known ?? null;
  if (typeof known === "string" && typeof more === "string") return known + more;
  if (isExactNumber(known) || isExactNumber(more)) return more;
  if (Array.isArray(known) && Array.isArray(more)) {
    for (const each of more) known.push(each);
    return known;
  }
  if (!isRecord(known) || !isRecord(more)) return more;
  for (const [name, value] of Object.entries(more)) known[name] = merged(known[name], value);
  return known;
}

/** Fields of a call that are whole in each delta: they are not joined. */
const WHOLE = new Set(["id", "type", "name", "index"]);

/** The calls of a message with the deltas of a chunk. A delta with another id is another call, whatever its index. */
function mergedCalls(known: unknown, deltas: readonly unknown[]): Fields[] {
  const calls: Fields[] = Array.isArray(known) ? known : [];
  for (const delta of deltas) {
    if (!isRecord(delta)) continue;
    const call = calls.findLast(({ index }) => index === delta["index"]);
    const isSame = call !== undefined && (isAbsent(delta["id"]) || call["id"] === delta["id"]);
    if (isSame) mergeCall(call, delta);
    else calls.push(delta);
  }
  return calls;
}

function mergeCall(call: Fields, delta: Fields): void {
  for (const [name, value] of Object.entries(delta)) {
    const known = call[name];
    if (isRecord(known) && isRecord(value)) mergeCall(known, value);
    else if (!WHOLE.has(name)) call[name] = merged(known, value);
    else if (!isAbsent(value)) call[name] = value;
  }
}

/** Fields of OpenRouter's reasoning details that arrive in pieces; of the others the last one counts. */
const IN_PIECES = new Set(["text", "summary", "data"]);

/** The details of reasoning with those of a chunk: pieces of one have its type and its `index`. One without an index is whole. */
function mergedDetails(known: unknown, deltas: readonly unknown[]): unknown[] {
  const details: unknown[] = Array.isArray(known) ? known : [];
  for (const delta of deltas) {
    const isPiece = isRecord(delta) && typeof delta["index"] === "number";
    const detail = isPiece
      ? details.findLast((each) => isRecord(each) && each["index"] === delta["index"] && each["type"] === delta["type"])
      : undefined;
    if (!isPiece || !isRecord(detail)) {
      details.push(delta);
      continue;
    }
    for (const [name, value] of Object.entries(delta)) {
      if (IN_PIECES.has(name)) detail[name] = merged(detail[name], value);
      else if (!isAbsent(value)) detail[name] = value;
    }
  }
  return details;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** The `index` of the deltas is not part of a whole call. */
function wholeMessage(message: Fields): Fields {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  const whole = calls.filter(isRecord).map(({ index: _index, ...call }) => call);
  return { ...message, tool_calls: whole };
}
