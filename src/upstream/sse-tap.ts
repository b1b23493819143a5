/**
 * Watches one streamed answer on its way to the client: bytes go on as they came, event by event, while usage, model,
 * errors and the end are read from them. Only what the contract lists is changed: a usage chunk that the client did not
 * ask for is taken out, a cost is written into the usage it does get, and a stream that breaks ends with an error event.
 */
import type { Usage } from "../call.ts";
import type { Reason } from "../errors.ts";
import { errorEvent, type StreamError } from "./sse-error.ts";
import { EventSplitter, SSE_EVENT_BYTES_MAX, type StreamPiece } from "./sse-events.ts";
import { EventWatch, type EventWatchOptions, isReadable } from "./sse-watch.ts";

export type StreamTapOptions = EventWatchOptions & {
  /** Name of the upstream, for the error of a stream that breaks. */
  upstream: string;
  /** Largest event that is read, bytes; larger ones pass unread. */
  eventBytesMax?: number;
};

export type StreamOutcome = {
  /** As last reported. It is exact if `complete`; what a broken stream reported may lack what came after. */
  usage: Usage | null;
  model: string | null;
  finishReason: string | null;
  /** Whether the stream ended as its protocol says, and no error cut its answer short. */
  complete: boolean;
  /** The first error that the upstream reported, unredacted. A stream that merely broke has none. */
  error: StreamError | null;
  /** Events with data that the upstream sent. */
  events: number;
  /** UTF-8 bytes of the answer's pieces: text, refusals, reasoning, arguments of calls. An estimate's ground, no more. */
  contentBytes: number;
};

/** First bytes of an event too large to be read, in which its type is looked for. */
const HEAD_BYTES = 512;
/** Ends what the client has of an event that never came to its end. */
const BLANK_LINE = new Uint8Array([10, 10]);

/** The tap of one stream. What `feed` returns may be views of the chunk, so send it before the chunk is used again. */
export class StreamTap {
  readonly #options: StreamTapOptions;
  readonly #splitter: EventSplitter;
  readonly #watch: EventWatch;
  readonly #headBytes: number;
  #stripped = false;

  constructor(options: StreamTapOptions) {
    const eventBytesMax = options.eventBytesMax ?? SSE_EVENT_BYTES_MAX;
    this.#options = options;
    this.#splitter = new EventSplitter(eventBytesMax);
    this.#watch = new EventWatch(options);
    this.#headBytes = Math.min(HEAD_BYTES, eventBytesMax);
  }

  /** Takes what came from the upstream; returns what goes to the client now. */
  feed(chunk: Uint8Array): Uint8Array[] {
    const out: Uint8Array[] = [];
    for (const piece of this.#splitter.feed(chunk)) {
      const bytes = this.#passed(piece);
      if (bytes !== null) push(out, bytes);
    }
    return out;
  }

  /**
   * Ends the stream, closed in order or broken off; returns its last bytes for the client and what it came to.
   * `reason` is told to the client if the stream was cut short; without one, that the upstream broke it off. Called once.
   */
  end(how: "clean" | "broken", reason?: Reason): { bytes: Uint8Array[]; outcome: StreamOutcome } {
    const { bytes: left, torn } = this.#splitter.rest();
    const bytes: Uint8Array[] = [];
    // An event that lacks only its blank line is whole for clients; a torn one would spoil the event that follows.
    if (how === "clean" && left.length > 0 && isReadable(left)) {
      const last = this.#watch.read(left);
      if (last !== null) bytes.push(last);
    }
    const { facts } = this.#watch;
    const ended = facts.ended || (how === "clean" && !torn && this.#watch.isWhole);
    if (!ended && facts.error?.heard !== true) {
      if (torn || bytes.length > 0) bytes.push(BLANK_LINE);
      bytes.push(this.#errorEvent(reason));
    }
    return { bytes, outcome: this.#outcome(ended) };
  }

  #errorEvent(reason: Reason | undefined): Uint8Array {
    const { family, upstream } = this.#options;
    const truncated: Reason = { reason: "upstream_truncated", upstream, message: `${upstream} broke off its answer` };
    return errorEvent(family, reason ?? truncated, this.#watch.nextSequenceNumber);
  }

  #outcome(ended: boolean): StreamOutcome {
    const { facts, events, contentBytes } = this.#watch;
    const { usage, model, finishReason, error } = facts;
    // The event that ends a failed response has its usage and its error; elsewhere an error comes in between.
    const complete = ended && (error === null || this.#options.family === "responses");
    const said = error === null ? null : { message: error.message, code: error.code };
    return { usage, model, finishReason, complete, error: said, events, contentBytes };
  }

  /** The bytes that go on of a piece, or null. */
  #passed(piece: StreamPiece): Uint8Array | null {
    if (piece.kind === "tail") return this.#stripped ? null : piece.bytes;
    if (piece.kind === "event") {
      const bytes = this.#watch.read(piece.bytes);
      this.#stripped = bytes === null;
      return bytes;
    }
    this.#stripped = false;
    if (piece.first) this.#watch.oversizeBegins(piece.bytes.subarray(0, this.#headBytes));
    if (piece.last) this.#watch.oversizeEnds();
    return piece.bytes;
  }
}

/** Adds bytes to go on; neighbours in one chunk become one view, so that a chunk of many events is one write. */
function push(out: Uint8Array[], bytes: Uint8Array): void {
  const last = out.at(-1);
  if (last !== undefined && last.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset) {
    out[out.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + bytes.length);
  } else {
    out.push(bytes);
  }
}
