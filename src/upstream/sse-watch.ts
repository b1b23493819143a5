/** Reads the events of one stream, whole ones only, and says what of each goes on to the client. */
import type { Usage } from "../call.ts";
import { isRecord } from "./record.ts";
import { ChatReader, type UsageChunk } from "./sse-chat.ts";
import { withCost } from "./sse-cost.ts";
import { type ReportedError, reportedError, type StreamFamily } from "./sse-error.ts";
import { MessagesReader } from "./sse-messages.ts";
import { pieceBytes } from "./sse-pieces.ts";
import type { FamilyReader, StreamFacts } from "./sse-reader.ts";
import { ResponsesReader } from "./sse-responses.ts";
import { fieldsOf, hasData, isComment } from "./sse-text.ts";

export type EventWatchOptions = {
  family: StreamFamily;
  /** Of chat and text completions: who asked for the usage chunk. Only an injected one is taken out again. */
  usageChunk: UsageChunk;
  /** Price of a usage, USD; null where none is known: then no cost is written. */
  costUsdOf: (usage: Usage) => number | null;
  /** Cleans the text of an event that reports an error, where the upstream may quote the provider's key. */
  redact?: (eventText: string) => string;
};

const SEQUENCE_NUMBER = /"sequence_number"\s*:\s*(\d{1,15})/;

/** Lenient, because a broken character is the client's to judge; a byte order mark is kept, so that places hold. */
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
const encoder = new TextEncoder();

export class EventWatch {
  readonly #options: EventWatchOptions;
  readonly #reader: FamilyReader;
  readonly facts: StreamFacts = { usage: null, model: null, finishReason: null, ended: false, error: null };
  /** Events with data. */
  events = 0;
  /** UTF-8 bytes of the answer's pieces. */
  contentBytes = 0;
  #lastText = "";
  #oversizeEnds = false;

  constructor(options: EventWatchOptions) {
    this.#options = options;
    this.#reader = readerOf(options);
  }

  /** Whether the answer is whole if the connection is closed in order now. */
  get isWhole(): boolean {
    return this.facts.error === null && this.#reader.isWhole(this.facts);
  }

  /** The number of the next event of a Responses stream. */
  get nextSequenceNumber(): number {
    const last = SEQUENCE_NUMBER.exec(this.#lastText)?.[1];
    return last === undefined ? this.events : Number(last) + 1;
  }

  /** Notes that an event too large to be read has begun; whether it is the last shows in its first characters. */
  oversizeBegins(head: Uint8Array): void {
    this.events++;
    this.#lastText = utf8.decode(head);
    this.#oversizeEnds = this.#reader.endsWith(this.#lastText);
  }

  oversizeEnds(): void {
    if (this.#oversizeEnds) this.facts.ended = true;
  }

  /** Reads a whole event; returns the bytes that go on in its place, or null where it is taken out. */
  read(bytes: Uint8Array): Uint8Array | null {
    const text = utf8.decode(bytes);
    if (!hasData(text)) return bytes;
    this.events++;
    this.#lastText = text;
    const { telling, piece } = this.#reader;
    this.contentBytes += pieceBytes(text, piece);
    const namesModel = this.facts.model === null && text.includes('"model"');
    return namesModel || telling.test(text) ? this.#telling(bytes, text) : bytes;
  }

  #telling(bytes: Uint8Array, text: string): Uint8Array | null {
    const { facts } = this;
    const { name, data } = fieldsOf(bytes);
    if (data === null) return bytes;
    const said = utf8.decode(data).trim();
    if (isDone(said)) {
      if (this.#reader.endsAtDone) facts.ended = true;
      return bytes;
    }
    const json = parsed(said);
    // An event that calls itself an error is one even if it holds bare words.
    const isError = this.#noteError(reportedError(this.#options.family, name, json ?? { message: said }));
    const clean = isError ? this.#redacted(bytes, text) : bytes;
    if (!isRecord(json)) return clean;
    const { strip, usagePath } = this.#reader.read(json, facts);
    if (strip) return null;
    const costUsd = usagePath === null || facts.usage === null ? null : this.#options.costUsdOf(facts.usage);
    if (usagePath === null || costUsd === null) return clean;
    const place = clean === bytes ? data : fieldsOf(clean).data;
    return place === null ? clean : withCost(clean, place, usagePath, costUsd);
  }

  /** Keeps the first error's words: what follows it are often consequences. */
  #noteError(error: ReportedError | null): boolean {
    if (error === null) return false;
    const first = this.facts.error ?? error;
    this.facts.error = { ...first, heard: first.heard || error.heard };
    return true;
  }

  #redacted(bytes: Uint8Array, text: string): Uint8Array {
    const clean = this.#options.redact?.(text) ?? text;
    return clean === text ? bytes : encoder.encode(clean);
  }
}

function readerOf({ family, usageChunk }: EventWatchOptions): FamilyReader {
  switch (family) {
    case "chat":
    case "completions":
      return new ChatReader(family, usageChunk);
    case "responses":
      return new ResponsesReader();
    case "messages":
      return new MessagesReader();
  }
}

/** Whether an event that lacks its end is whole but for that: its JSON is complete, or no client hears of it. */
export function isReadable(bytes: Uint8Array): boolean {
  const { data } = fieldsOf(bytes);
  if (data === null) return isComment(utf8.decode(bytes));
  const said = utf8.decode(data).trim();
  return isDone(said) || parsed(said) !== undefined;
}

/** Clients look at the first characters only. */
function isDone(said: string): boolean {
  return said.startsWith("[DONE]");
}

function parsed(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return undefined;
  }
}
