/** Reads the stream of an answer to its end, and keeps the part that has arrived, for attempts that are stopped before. */
import { STREAM_BYTES_MAX, STREAM_FIRST_BYTES, STREAM_READ_BYTES } from "../limits.ts";
import type { AggregatedFamily } from "./formats/aggregate/stream.ts";
import { joined } from "./read-body.ts";

/** The part of an answer's body that has arrived so far. */
export class StreamProgress {
  /** The family of the stream; null before it begins. */
  family: AggregatedFamily | null = null;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** All bytes that have arrived, as one. */
  taken(): Uint8Array {
    return joined(this.#chunks);
  }

  /**
   * Reads to the end. `too_large` once more than `STREAM_BYTES_MAX` bytes have arrived; the rest of it is cancelled.
   * @param begun Called when the first bytes have come.
   * @param keepsPart Whether the bytes before a break must be known. Each chunk is then read as it arrives, which costs
   *   several times as much: the runtime gathers chunks at a hundredth of the cost of handing each one over.
   */
  async read(response: Response, keepsPart: boolean, begun?: () => void): Promise<"clean" | "broken" | "too_large"> {
    if (response.body === null) return "clean";
    const source = chunksOf(response.body, keepsPart);
    for (;;) {
      let chunk: Uint8Array | null;
      try {
        chunk = await source.next();
      } catch {
        return "broken";
      }
      if (chunk === null) return "clean";
      if (this.#bytes === 0) begun?.();
      this.#chunks.push(chunk);
      this.#bytes += chunk.byteLength;
      if (this.#bytes <= STREAM_BYTES_MAX) continue;
      await source.cancel().catch(() => undefined);
      return "too_large";
    }
  }
}

/** The chunks of a body, one by one; null = its end. */
type Chunks = { next: () => Promise<Uint8Array | null>; cancel: () => Promise<void> };

function chunksOf(body: ReadableStream<Uint8Array>, keepsPart: boolean): Chunks {
  return (keepsPart ? null : gatheredChunks(body)) ?? singleChunks(body.getReader());
}

function singleChunks(reader: ReadableStreamDefaultReader<Uint8Array>): Chunks {
  const next = async (): Promise<Uint8Array | null> => {
    const { done, value } = await reader.read();
    return done ? null : value;
  };
  return { next, cancel: () => reader.cancel() };
}

/** The reader of a stream of bytes; null for a stream that JavaScript feeds, such as the simulated upstream's. */
function byobReaderOf(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}

/** The first bytes, chunks of `STREAM_READ_BYTES` and the rest, gathered by the runtime; null if it cannot (only workerd can). */
function gatheredChunks(body: ReadableStream<Uint8Array>): Chunks | null {
  if (typeof ReadableStreamBYOBReader === "undefined" || !("readAtLeast" in ReadableStreamBYOBReader.prototype)) {
    return null;
  }
  const reader = byobReaderOf(body);
  if (reader === null) return null;
  let hasBegun = false;
  const next = async (): Promise<Uint8Array | null> => {
    // The first read ends with the first byte, whose time is measured.
    const [bytes, least] = hasBegun ? [STREAM_READ_BYTES, STREAM_READ_BYTES] : [STREAM_FIRST_BYTES, 1];
    hasBegun = true;
    const { done, value } = await reader.readAtLeast(least, new Uint8Array(bytes));
    return done || value === undefined ? null : value;
  };
  return { next, cancel: () => reader.cancel() };
}
