/** Parses the whole events of one stream, and decides how each is changed on its way to the client. */
import type { Usage } from "../../../call.ts";
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";
import { fieldsOf, hasData, isComment } from "../../../text/sse/fields.ts";
import { ChatReader, type UsageChunk } from "./chat.ts";
import { addCost } from "../usage/stream-cost.ts";
import { deltaBytes } from "./delta-bytes.ts";
import { type ReportedError, reportedError, type StreamFamily } from "./error.ts";
import type { FamilyReader, StreamFacts } from "./family.ts";
import { LastText } from "./last-text.ts";
import { MessagesReader } from "./messages.ts";
import { ResponsesReader } from "./responses.ts";

export type EventParserOptions = {
  family: StreamFamily;
  /** Of chat and text completions: who requested the usage chunk. Only an injected chunk is removed. */
  usageChunk: UsageChunk;
  /** Price of a usage, USD; null if unknown: then no cost is added. */
  costUsdOf: (usage: Usage) => number | null;
  /** Whether the client gets all events as they came, so that none is removed and no cost is added. Absent = no. */
  passes?: boolean;
  /** Whether to count the bytes of the answer's deltas, which takes as long as all else; absent = yes. */
  countsContent?: boolean;
  /** Cleans the text of an event that reports an error, in which the upstream may quote the provider's key. */
  redact?: (eventText: string) => string;
  /** Shared with those who read the same bytes; absent = nobody does. */
  texts?: LastText;
};

const BYTE_ORDER_MARK = "\uFEFF";
const BLANK_LINE = "\n\n";
const SEQUENCE_NUMBER = /"sequence_number"\s*:\s*(\d{1,15})/;

/** Lenient, because a broken character is for the client to judge; a byte order mark is kept, so that indexes hold. */
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
const encoder = new TextEncoder();

export class EventParser {
  readonly #options: EventParserOptions;
  readonly #reader: FamilyReader;
  readonly #texts: LastText;
  readonly #facts: StreamFacts = {
    usage: null,
    model: null,
    id: null,
    finishReason: null,
    ended: false,
    error: null,
  };
  #events = 0;
  #contentBytes = 0;
  #lastText = "";
  #isOversizeLast = false;

  constructor(options: EventParserOptions) {
    this.#options = options;
    this.#texts = options.texts ?? new LastText();
    this.#reader = readerOf(options);
  }

  get facts(): Readonly<StreamFacts> {
    return this.#facts;
  }

  /** Events with data. */
  get events(): number {
    return this.#events;
  }

  /** UTF-8 bytes of the answer's deltas; 0 if they are not counted. */
  get contentBytes(): number {
    return this.#contentBytes;
  }

  /** Whether the answer is whole if the connection closes in order now. */
  get isWhole(): boolean {
    return this.#facts.error === null && this.#reader.isWhole(this.#facts);
  }

  /** The number of the next event of a Responses stream. */
  get nextSequenceNumber(): number {
    const last = SEQUENCE_NUMBER.exec(this.#lastText)?.[1];
    return last === undefined ? this.#events : Number(last) + 1;
  }

  /** Notes that an event too large to be read has begun; its first characters show whether it is the last. */
  beginOversize(head: Uint8Array): void {
    this.#events++;
    this.#lastText = utf8.decode(head);
    this.#isOversizeLast = this.#reader.isLastEvent(this.#lastText);
  }

  endOversize(): void {
    if (this.#isOversizeLast) this.#facts.ended = true;
  }

  /**
   * Reads several whole events at once, with lines that end in LF, up to the first that may report more than a delta: most
   * batches have none, and one search through all costs a fraction of one per event. Returns the length of those read, bytes.
   */
  readDeltas(bytes: Uint8Array): number {
    const text = this.#texts.of(bytes);
    if (text.startsWith(BYTE_ORDER_MARK)) return 0;
    if (this.#facts.model === null && text.includes('"model"')) return 0;
    const reportAt = text.search(this.#reader.mayReport);
    if (reportAt === -1) {
      this.#noteDeltas(text);
      return bytes.length;
    }
    const before = text.lastIndexOf(BLANK_LINE, reportAt - 1);
    // Only in ASCII is an index in the text one in the bytes.
    if (reportAt === 0 || before === -1 || text.length !== bytes.length) return 0;
    const end = before + BLANK_LINE.length;
    this.#noteDeltas(text.slice(0, end));
    return end;
  }

  #noteDeltas(text: string): void {
    this.#countContent(text);
    for (let start = 0; start < text.length;) {
      const blank = text.indexOf(BLANK_LINE, start);
      const end = blank === -1 ? text.length : blank + BLANK_LINE.length;
      const event = text.slice(start, end);
      if (hasData(event)) {
        this.#events++;
        this.#lastText = event;
      }
      start = end;
    }
  }

  #countContent(text: string): void {
    if (this.#options.countsContent !== false) this.#contentBytes += deltaBytes(text, this.#reader.deltaText);
  }

  /** Reads a whole event. Returns the bytes to send in its place; null if the event is removed. */
  read(bytes: Uint8Array): Uint8Array | null {
    const text = this.#texts.of(bytes);
    if (!hasData(text)) return bytes;
    this.#events++;
    this.#lastText = text;
    const { mayReport } = this.#reader;
    this.#countContent(text);
    const namesModel = this.#facts.model === null && text.includes('"model"');
    return namesModel || mayReport.test(text) ? this.#parse(bytes, text) : bytes;
  }

  #parse(bytes: Uint8Array, text: string): Uint8Array | null {
    const facts = this.#facts;
    const { name, data } = fieldsOf(bytes);
    if (data === null) return bytes;
    const dataText = utf8.decode(data).trim();
    if (isDoneMarker(dataText)) {
      if (this.#reader.endsAtDone) facts.ended = true;
      return bytes;
    }
    const json = tryParse(dataText);
    // An event that is named an error is one even if its data is bare words.
    const error = reportedError(this.#options.family, name, json ?? { message: dataText });
    if (error !== null) this.#noteError(error);
    const clean = error === null ? bytes : this.#redacted(bytes, text);
    if (!isRecord(json)) return clean;
    const { isRemoved, usagePath } = this.#reader.read(json, facts);
    if (this.#options.passes === true) return clean;
    if (isRemoved) return null;
    const costUsd = usagePath === null || facts.usage === null ? null : this.#options.costUsdOf(facts.usage);
    if (usagePath === null || costUsd === null) return clean;
    const cleanData = clean === bytes ? data : fieldsOf(clean).data;
    return cleanData === null ? clean : addCost(clean, cleanData, usagePath, costUsd);
  }

  /** Keeps the words of the first error: what follows it is often a consequence. */
  #noteError(error: ReportedError): void {
    const first = this.#facts.error ?? error;
    this.#facts.error = { ...first, isNoticed: first.isNoticed || error.isNoticed };
  }

  #redacted(bytes: Uint8Array, text: string): Uint8Array {
    const clean = this.#options.redact?.(text) ?? text;
    return clean === text ? bytes : encoder.encode(clean);
  }
}

function readerOf({ family, usageChunk }: EventParserOptions): FamilyReader {
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

/** Whether an event without its closing blank line is whole otherwise: its JSON is complete, or it is a comment. */
export function isReadable(bytes: Uint8Array): boolean {
  const { data } = fieldsOf(bytes);
  if (data === null) return isComment(utf8.decode(bytes));
  const dataText = utf8.decode(data).trim();
  return isDoneMarker(dataText) || tryParse(dataText) !== undefined;
}

/** Whether the data of an event marks the end of a stream; it is no JSON. Clients compare the first characters only. */
export function isDoneMarker(dataText: string): boolean {
  return dataText.startsWith("[DONE]");
}
