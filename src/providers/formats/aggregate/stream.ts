/**
 * Assembles an answer from the events of its stream, so that the code that reads JSON answers also decides how a streamed
 * attempt ended.
 */
import { ChatMerger } from "./chat.ts";
import { MessageMerger } from "./message.ts";
import { tryParseExact } from "../../../text/json/exact.ts";
import { isRecord } from "../../../text/json/record.ts";
import { EventSplitter } from "../../../text/sse/splitter.ts";
import { fieldsOf } from "../../../text/sse/fields.ts";
import { EventParser, isDoneMarker, isReadable } from "../stream/event-parser.ts";

/** What had arrived of a stream that ended early. Counts are the upstream's own, null if it had reported none. */
export type Arrived = { promptTokens: number | null; completionTokens: number | null; contentBytes: number };

export type Aggregated =
  /** The whole answer, or an error in its place, as the JSON text that a request for JSON would have got. */
  { kind: "answer"; text: string } | { kind: "truncated"; arrived: Arrived };

/** Families whose streams are assembled. */
export type AggregatedFamily = "chat" | "messages";

const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/**
 * Reads all bytes of a stream that arrived. `how`: whether the connection was closed in order. A stream without its last
 * event is whole only if it was, and if all choices have ended.
 */
export function aggregateStream(family: AggregatedFamily, bytes: Uint8Array, how: "clean" | "broken"): Aggregated {
  const parser = new EventParser({ family, usageChunk: "injected", costUsdOf: () => null });
  const merger = family === "chat" ? new ChatMerger() : new MessageMerger();
  const splitter = new EventSplitter(Number.POSITIVE_INFINITY);
  let error: Record<string, unknown> | null = null;
  const read = (event: Uint8Array): void => {
    const failedBefore = parser.facts.error !== null;
    parser.read(event);
    const json = jsonOf(event);
    if (json === null) return;
    if (parser.facts.error !== null && !failedBefore) error = errorFields(json);
    merger.add(json);
  };
  for (const piece of splitter.feed(bytes)) if (piece.kind === "event") read(piece.bytes);
  const { bytes: rest } = splitter.rest();
  // An event that lacks only its blank line is whole.
  if (how === "clean" && rest.length > 0 && isReadable(rest)) read(rest);
  const { facts, contentBytes } = parser;
  if (facts.error !== null) {
    return { kind: "answer", text: failedAnswer(error ?? { error: { message: facts.error.message } }, merger) };
  }
  if (facts.ended || (how === "clean" && parser.isWhole)) return { kind: "answer", text: merger.answer({}) };
  const { promptTokens = null, completionTokens = null } = facts.usage ?? {};
  return { kind: "truncated", arrived: { promptTokens, completionTokens, contentBytes } };
}

function jsonOf(event: Uint8Array): Record<string, unknown> | null {
  const text = utf8.decode(event);
  // Almost every event is one line of data. Only line ends follow it, which are white space in JSON too.
  const line = text.startsWith(DATA) ? text.slice(DATA.length).trimStart() : null;
  // Each stream has one, and what is no JSON costs as much to parse as several events: an exception, with its stack.
  if (line !== null && isDoneMarker(line)) return null;
  const json = line === null ? undefined : tryParseExact(line);
  if (json !== undefined) return isRecord(json) ? json : null;
  const { data } = fieldsOf(event);
  const read = data === null ? null : tryParseExact(utf8.decode(data));
  return isRecord(read) ? read : null;
}

const DATA = "data:";

/** The fields of an event that report its error, as in a JSON answer. */
function errorFields(json: Record<string, unknown>): Record<string, unknown> {
  const { error, choices } = json;
  if (isRecord(error) || typeof error === "string") return { error };
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (isRecord(choice) && isRecord(choice["error"])) return { choices: [{ error: choice["error"] }] };
  return { error: json };
}

/** The error in place of an answer, with the part of the answer that came before it, as in a JSON answer. */
function failedAnswer(error: Record<string, unknown>, merger: ChatMerger | MessageMerger): string {
  return merger.hasBegun ? merger.answer(error) : JSON.stringify(error);
}
