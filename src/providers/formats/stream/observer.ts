/**
 * Observes one streamed answer on its way to the client, as a TransformStream that only looks: bytes leave as they came,
 * event by event, while usage, model, errors and the end are read from them. It changes only what the contract lists: a
 * usage chunk that the client did not ask for is removed, a cost is added to the usage that the client gets, and a stream
 * that breaks ends with an error event. A stream that `passes` keeps all of its events, and its cost is in a comment behind
 * them.
 */
import type { Usage } from "../../../call.ts";
import type { Reason } from "../../../errors.ts";
import { EventSplitter, SSE_EVENT_BYTES_MAX, type StreamPiece } from "../../../text/sse/splitter.ts";
import { costComment } from "../usage/stream-cost.ts";
import { errorEvent, type StreamError } from "./error.ts";
import { EventParser, type EventParserOptions, isReadable } from "./event-parser.ts";

export type StreamObserverOptions = EventParserOptions & {
  /** Name of the upstream, for the error of a stream that breaks. */
  upstream: string;
  /** Largest event that is read, bytes; a larger one is forwarded unread. */
  eventBytesMax?: number;
};

export type StreamOutcome = {
  /** As last reported. Exact if `complete`; in a broken stream, a later report may be missing. */
  usage: Usage | null;
  model: string | null;
  /** The upstream's id of the answer: of responses only. */
  id: string | null;
  finishReason: string | null;
  /** Whether the stream ended as its protocol requires, and no error cut its answer short. */
  complete: boolean;
  /** The first error that the upstream reported, unredacted; null if the stream only broke. */
  error: StreamError | null;
  /** Events with data that the upstream sent. */
  events: number;
  /** UTF-8 bytes of the answer's deltas: text, refusals, reasoning, arguments of calls; 0 if not counted. Good for an estimate only. */
  contentBytes: number;
};

/** First bytes of an event too large to be read, in which its type is looked for. */
const HEAD_BYTES = 512;
const LF = 0x0a;
const CR = 0x0d;
/** Ends an event that the client has in part. */
const BLANK_LINE = new Uint8Array([10, 10]);

/** The observer of one stream. What `feed` returns may be views of the chunk: send it before the chunk is reused. */
export class StreamObserver {
  readonly #options: StreamObserverOptions;
  readonly #splitter: EventSplitter;
  readonly #parser: EventParser;
  readonly #eventBytesMax: number;
  readonly #headBytes: number;
  #isLastRemoved = false;
  #isReleased = false;

  constructor(options: StreamObserverOptions) {
    const eventBytesMax = options.eventBytesMax ?? SSE_EVENT_BYTES_MAX;
    this.#options = options;
    this.#splitter = new EventSplitter(eventBytesMax);
    this.#parser = new EventParser(options);
    this.#eventBytesMax = eventBytesMax;
    this.#headBytes = Math.min(HEAD_BYTES, eventBytesMax);
  }

  /** Takes a chunk from the upstream; returns what to send to the client now. */
  feed(chunk: Uint8Array): Uint8Array[] {
    const deltas = this.#deltasOf(chunk);
    if (deltas > 0 && deltas === chunk.length) return [chunk];
    const out: Uint8Array[] = [];
    if (deltas > 0) push(out, chunk.subarray(0, deltas));
    for (const piece of this.#splitter.feed(chunk.subarray(deltas))) {
      const bytes = this.#forwarded(piece);
      if (bytes !== null) push(out, bytes);
    }
    return out;
  }

  /**
   * Releases the rest of a stream that passes, once its first event with data was no error: returns what `feed` has kept
   * back of the next one. Null before. What `feed` returns afterwards is a copy of what has gone to the client.
   */
  release(): Uint8Array | null {
    const { facts, events } = this.#parser;
    const isDue = this.#options.passes === true && events > 0 && facts.error === null;
    if (!isDue || this.#isReleased || this.#splitter.isInPart) return null;
    this.#isReleased = true;
    return this.#splitter.kept();
  }

  /** The outcome, once the protocol's last event has been read and reported usage; null until then. */
  get early(): StreamOutcome | null {
    const { ended, usage } = this.#parser.facts;
    return ended && usage !== null ? this.#outcome(true) : null;
  }

  /**
   * Ends the stream, which was closed in order or broke off; returns the last bytes to send, and the outcome. If the answer
   * was cut short, an error event reports `reason` to the client; without a reason, that the upstream broke off. Call it
   * once.
   */
  end(how: "clean" | "broken", reason?: Reason): { bytes: Uint8Array[]; outcome: StreamOutcome } {
    const { bytes: left, isPartial } = this.#splitter.rest();
    const bytes: Uint8Array[] = [];
    // An event that lacks only its blank line is whole for clients; half an event would spoil the event that follows.
    if (how === "clean" && left.length > 0 && isReadable(left)) {
      const last = this.#parser.read(left);
      if (last !== null && !this.#isReleased) bytes.push(last);
    }
    const { facts } = this.#parser;
    const ended = facts.ended || (how === "clean" && !isPartial && this.#parser.isWhole);
    const added = this.#added(ended, reason);
    const inEvent = isPartial || bytes.length > 0 || (this.#isReleased && left.length > 0);
    if (added !== null && inEvent) bytes.push(BLANK_LINE);
    if (added !== null) bytes.push(added);
    return { bytes, outcome: this.#outcome(ended) };
  }

  /** What is added to the stream's end: an error unless the client has one, or the cost of a stream that passes. */
  #added(ended: boolean, reason: Reason | undefined): Uint8Array | null {
    const { error, usage } = this.#parser.facts;
    if (!ended) return error?.isNoticed === true ? null : this.#errorEvent(reason);
    if (this.#options.passes !== true || usage === null) return null;
    const costUsd = this.#options.costUsdOf(usage);
    return costUsd === null ? null : costComment(costUsd);
  }

  #errorEvent(reason: Reason | undefined): Uint8Array {
    const { family, upstream } = this.#options;
    const truncated: Reason = { reason: "upstream_truncated", upstream, message: `${upstream} broke off its answer` };
    return errorEvent(family, reason ?? truncated, this.#parser.nextSequenceNumber);
  }

  #outcome(ended: boolean): StreamOutcome {
    const { facts, events, contentBytes } = this.#parser;
    const { usage, model, id, finishReason } = facts;
    // The event that ends a failed response holds its usage and its error; in other families an error comes in between.
    const complete = ended && (facts.error === null || this.#options.family === "responses");
    const error = facts.error === null ? null : { message: facts.error.message, code: facts.error.code };
    return { usage, model, id, finishReason, complete, error, events, contentBytes };
  }

  /** Reads the whole events at the beginning of a chunk that are nothing but deltas; returns their length, bytes. */
  #deltasOf(chunk: Uint8Array): number {
    if (!this.#splitter.isBetweenEvents || chunk.includes(CR)) return 0;
    let end = chunk.lastIndexOf(LF);
    while (end > 0 && chunk[end - 1] !== LF) end = chunk.lastIndexOf(LF, end - 1);
    if (end < 1 || end >= this.#eventBytesMax) return 0;
    const isWhole = end + 1 === chunk.length;
    const length = this.#parser.readDeltas(isWhole ? chunk : chunk.subarray(0, end + 1));
    if (length > 0) this.#isLastRemoved = false;
    return length;
  }

  /** The bytes to send in place of a piece; null if there are none. */
  #forwarded(piece: StreamPiece): Uint8Array | null {
    if (piece.kind === "tail") return this.#isLastRemoved ? null : piece.bytes;
    if (piece.kind === "event") {
      const bytes = this.#parser.read(piece.bytes);
      this.#isLastRemoved = bytes === null;
      return bytes;
    }
    this.#isLastRemoved = false;
    if (piece.first) this.#parser.beginOversize(piece.bytes.subarray(0, this.#headBytes));
    if (piece.last) this.#parser.endOversize();
    return piece.bytes;
  }
}

/** Adds bytes to send. Neighbours in one chunk become one view, so that a chunk of many events is one write. */
function push(out: Uint8Array[], bytes: Uint8Array): void {
  const last = out.at(-1);
  if (last !== undefined && last.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset) {
    out[out.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + bytes.length);
  } else {
    out.push(bytes);
  }
}
