/**
 * Reads a stream that must be edited: chunk by chunk while it is slow, in batches once it is not. To read and write a chunk
 * costs the same for one event as for many, and a stream is hundreds of small ones.
 *
 * The runtime gathers what arrives in a copy only while something reads the original. So the original runs, in the
 * runtime, into a reader that counts: it takes a window of bytes, and the next one when the copy has been read.
 */
import {
  BATCH_FIRST_READS,
  BATCH_MANY_EVENTS,
  BATCH_PAUSE_MS,
  BATCH_PAUSE_MS_MAX,
  BATCH_RETRY_READS,
  BATCH_STREAMS_PER_MS,
  BATCH_WINDOW_BYTES,
} from "../../limits.ts";
import type { StartTimer } from "../exchange.ts";

/** What is read from: a reader of a stream, or of its batches. */
export type ChunkReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** The streams that one isolate edits at the same time: the more there are, the longer each of them waits for a batch. */
export class EditedStreams {
  #count = 0;

  /** The pause before the next batch of each, ms. */
  get pauseMs(): number {
    return Math.min(BATCH_PAUSE_MS_MAX, Math.max(BATCH_PAUSE_MS, Math.ceil(this.#count / BATCH_STREAMS_PER_MS)));
  }

  /** Whether they are so many that reading each chunk of each may take all of the isolate's time. */
  get areMany(): boolean {
    return this.#count >= BATCH_STREAMS_PER_MS;
  }

  /** Counts one more; call what it returns at the stream's end, once or more often. */
  begin(): () => void {
    this.#count += 1;
    let left = 1;
    return () => {
      this.#count -= left;
      left = 0;
    };
  }
}

export type BatchDeps = {
  /** Makes a pipe in which the runtime moves bytes. */
  pipe: () => { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> };
  now: () => number;
  /** Times the pauses in which batches are gathered. */
  lookTimer: StartTimer;
  edited: EditedStreams;
};

/**
 * A reader of the stream's chunks, or of batches of them. Where the runtime gathers none (only workerd does), of its chunks. A value that was read is valid until the next read.
 */
export function batchReaderOf(stream: ReadableStream<Uint8Array>, deps: BatchDeps): ChunkReader {
  const chunks = canGather(stream) ? bytesReader(stream) : null;
  if (chunks === null) return stream.getReader();
  return pausing(chunks, { ...deps, gather: () => gathering(stream, chunks, deps) });
}

type Result = ReadableStreamReadResult<Uint8Array>;

type PauseDeps = Omit<BatchDeps, "pipe"> & {
  /** The reader of batches, in place of the reader of chunks. */
  gather: () => ChunkReader;
};

/**
 * Reads chunk by chunk, and tries now and then whether a pause gathers several events; while it does, it pauses before each read.
 * Whether events come fast cannot be seen from the time between two reads alone: in a busy isolate, that time is long.
 */
export function pausing(chunks: ChunkReader, { gather, now, lookTimer, edited }: PauseDeps): ChunkReader {
  const end = edited.begin();
  let reader = chunks;
  let lastMs = Number.NEGATIVE_INFINITY;
  let isDense = false;
  /** Whether the last batch had so many events that the next one may be gathered for twice as long. */
  let hadMany = false;
  /** Reads before the next try. */
  let left = BATCH_FIRST_READS;
  const noted = (result: Result): Result => {
    const nowMs = now();
    isDense = nowMs - lastMs < 2 * edited.pauseMs;
    lastMs = nowMs;
    if (result.done) end();
    else left -= 1;
    return result;
  };
  const failed = (error: unknown): never => {
    end();
    throw error;
  };
  const readBatch = async (): Promise<Result> => {
    if (reader === chunks) reader = gather();
    const pauseMs = hadMany ? 2 * edited.pauseMs : edited.pauseMs;
    await new Promise<void>((resolve) => void lookTimer(pauseMs, resolve));
    const result = await reader.read().then(noted, failed);
    if (result.done) return result;
    const events = eventsIn(result.value, BATCH_MANY_EVENTS);
    hadMany = events === BATCH_MANY_EVENTS;
    left = events < 2 ? BATCH_RETRY_READS : 0;
    return result;
  };
  return {
    // A promise less than an async function would make of each chunk.
    read: () => (left <= 0 && (isDense || edited.areMany) ? readBatch() : reader.read().then(noted, failed)),
    cancel: async (reason) => {
      end();
      await reader.cancel(reason);
    },
  };
}

/** How many events begin in bytes that begin with one, counted up to a number: one more than have a blank line before more bytes. */
function eventsIn(bytes: Uint8Array, most: number): number {
  let events = 1;
  for (let lf = bytes.indexOf(LF); lf !== -1 && events < most; lf = bytes.indexOf(LF, lf + 1))
    if (bytes[lf + 1] === LF && lf + 2 < bytes.length) events += 1;
  return events;
}

const LF = 0x0a;

/** Whether the stream's bytes are the runtime's own: a stream that JavaScript feeds has no reader of bytes. */
function canGather(stream: ReadableStream<Uint8Array>): boolean {
  if (typeof ReadableStreamBYOBReader === "undefined") return false;
  if (!("readAtLeast" in ReadableStreamBYOBReader.prototype)) return false;
  try {
    stream.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** A reader into the same memory, over and over. */
type BytesReader = ChunkReader & { releaseLock: () => void };

function bytesReader(stream: ReadableStream<Uint8Array>): BytesReader {
  const reader = stream.getReader({ mode: "byob" });
  let memory: Uint8Array = new Uint8Array(BATCH_WINDOW_BYTES);
  const taken = (read: Result): Result => {
    if (read.done) return { done: true, value: undefined };
    memory = new Uint8Array(read.value.buffer);
    return read;
  };
  return {
    read: () => reader.read(memory).then(taken),
    cancel: (reason) => reader.cancel(reason),
    releaseLock: () => reader.releaseLock(),
  };
}

function gathering(
  stream: ReadableStream<Uint8Array>,
  chunks: BytesReader,
  { pipe }: Pick<BatchDeps, "pipe">,
): ChunkReader {
  chunks.releaseLock();
  const [original, copy] = stream.tee();
  const { readable, writable } = pipe();
  // A stream that breaks breaks its copy as well, where it is noticed.
  original.pipeTo(writable).catch(() => undefined);
  const window = new Window(readable.getReader({ mode: "byob" }));
  const reader = bytesReader(copy);
  const taken = (read: Result): Result => {
    if (!read.done) window.taken(read.value.length);
    return read;
  };
  return {
    read: () => reader.read().then(taken),
    cancel: async (reason) => {
      await Promise.all([reader.cancel(reason), window.cancel(reason)]);
    },
  };
}

/** How far the original may run ahead of what was read of the copy: one window. */
class Window {
  readonly #reader: ReadableStreamBYOBReader;
  #memory: Uint8Array = new Uint8Array(BATCH_WINDOW_BYTES);
  #isOpen = false;
  /** Bytes of the original beyond those of the copy. */
  #ahead = 0;

  /** It is open at once: the first batch is gathered before it is read. */
  constructor(reader: ReadableStreamBYOBReader) {
    this.#reader = reader;
    this.#open();
  }

  /** Notes what was read of the copy. */
  taken(bytes: number): void {
    this.#ahead -= bytes;
    this.#open();
  }

  cancel(reason: unknown): Promise<void> {
    return this.#reader.cancel(reason);
  }

  #open(): void {
    if (this.#isOpen || this.#ahead > 0) return;
    this.#isOpen = true;
    void this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      const { done, value } = await this.#reader.readAtLeast(BATCH_WINDOW_BYTES, this.#memory);
      if (done || value === undefined) return;
      this.#memory = new Uint8Array(value.buffer);
      this.#ahead += value.length;
      this.#isOpen = false;
      this.#open();
    } catch {
      // The stream broke: its copy says so.
    }
  }
}
