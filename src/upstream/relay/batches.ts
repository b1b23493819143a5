/**
 * Reads a stream of bytes in batches: a read returns all that has arrived, not one chunk of the connection. To read a
 * chunk costs the same whatever it holds, and a stream is hundreds of small ones.
 *
 * The runtime gathers what arrives in a copy only while something reads the original. So the original runs, in the
 * runtime, into a reader that counts: it takes a window of bytes, and the next one when the copy has been read.
 */
import { BATCH_PAUSE_MS, BATCH_WINDOW_BYTES } from "../../limits.ts";
import type { RelayDeps } from "./types.ts";

/** What is read from: a reader of a stream, or of its batches. */
export type ChunkReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

type BatchDeps = Pick<RelayDeps, "pipe" | "now"> & {
  /** Times the pauses in which batches are gathered. */
  lookTimer: RelayDeps["lookTimer"];
};

/**
 * A reader of the stream's batches; a reader of its chunks where the runtime gathers none (only workerd does). A value that
 * was read is valid until the next read.
 */
export function batchReaderOf(stream: ReadableStream<Uint8Array>, deps: BatchDeps): ChunkReader {
  if (!canGather(stream)) return stream.getReader();
  return pausing(gathering(stream, deps), deps);
}

/**
 * The reader, which pauses before it reads from a stream that has just been read twice in little time: without pauses, a read
 * finds one chunk, however fast they come.
 */
export function pausing(reader: ChunkReader, { now, lookTimer }: Omit<BatchDeps, "pipe">): ChunkReader {
  let lastMs = Number.NEGATIVE_INFINITY;
  let isFast = false;
  return {
    read: async () => {
      if (isFast) await new Promise<void>((resolve) => void lookTimer(BATCH_PAUSE_MS, resolve));
      const read = await reader.read();
      const nowMs = now();
      isFast = nowMs - lastMs < 2 * BATCH_PAUSE_MS;
      lastMs = nowMs;
      return read;
    },
    cancel: (reason) => reader.cancel(reason),
  };
}

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

function gathering(stream: ReadableStream<Uint8Array>, { pipe }: Pick<BatchDeps, "pipe">): ChunkReader {
  const [original, copy] = stream.tee();
  const { readable, writable } = pipe();
  // A stream that breaks breaks its copy as well, where it is noticed.
  original.pipeTo(writable).catch(() => undefined);
  const window = new Window(readable.getReader({ mode: "byob" }));
  const reader = copy.getReader({ mode: "byob" });
  let memory: Uint8Array = new Uint8Array(BATCH_WINDOW_BYTES);
  return {
    read: async () => {
      window.open();
      const read = await reader.read(memory);
      if (read.done) return { done: true, value: undefined };
      memory = new Uint8Array(read.value.buffer);
      window.taken(read.value.length);
      return read;
    },
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

  constructor(reader: ReadableStreamBYOBReader) {
    this.#reader = reader;
  }

  taken(bytes: number): void {
    this.#ahead -= bytes;
  }

  open(): void {
    if (this.#isOpen || this.#ahead > 0) return;
    this.#isOpen = true;
    void this.#drain();
  }

  cancel(reason: unknown): Promise<void> {
    return this.#reader.cancel(reason);
  }

  async #drain(): Promise<void> {
    try {
      const { done, value } = await this.#reader.readAtLeast(BATCH_WINDOW_BYTES, this.#memory);
      if (done || value === undefined) return;
      this.#memory = new Uint8Array(value.buffer);
      this.#ahead += value.length;
      this.#isOpen = false;
    } catch {
      // The stream broke: its copy says so.
    }
  }
}
