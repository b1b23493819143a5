/**
 * Reads the copy of a stream whose original the runtime relays. Its reads are rare, because each wakes JavaScript, and ask
 * for a single byte: a read that waits for more would hold back the original as well.
 */
import {
  COPY_LOOK_BYTES,
  COPY_LOOK_FIRST_MS,
  COPY_LOOK_MS,
  COPY_READ_BYTES,
  COPY_WAITING_BYTES,
} from "../../limits.ts";
import type { StartTimer } from "../exchange.ts";

export type LateCopyOptions = {
  /** Takes what has arrived. Its memory is reused afterwards. */
  feed: (chunk: Uint8Array) => void;
  timer: StartTimer;
  /** Resolves when the original is over: then the copy is read to its end without a pause. */
  over: Promise<unknown>;
};

/** Feeds the copy to its end, and says whether it ended in order. Never rejects, unless `feed` throws. */
export async function readLate(
  copy: ReadableStream<Uint8Array>,
  { feed, timer, over }: LateCopyOptions,
): Promise<"clean" | "broken"> {
  const look = looker(copy.getReader({ mode: "byob" }), feed);
  const pauses = new Pauses(timer, over);
  for (let delayMs = COPY_LOOK_FIRST_MS; ;) {
    await pauses.pause(delayMs);
    const seen = await look();
    if (seen.end !== null) return seen.end;
    delayMs = nextDelayMs(delayMs, seen.bytes);
  }
}

/** The next pause: shorter if more than a look's share has arrived in this one, at most twice as long, and bounded. */
export function nextDelayMs(delayMs: number, bytes: number): number {
  return Math.ceil(Math.min(COPY_LOOK_MS, 2 * delayMs, (delayMs * COPY_LOOK_BYTES) / Math.max(1, bytes)));
}

/** Pauses that end at once when the original is over. */
class Pauses {
  readonly #timer: StartTimer;
  #isOver = false;
  #wake: () => void = () => undefined;

  constructor(timer: StartTimer, over: Promise<unknown>) {
    this.#timer = timer;
    const end = (): void => {
      this.#isOver = true;
      this.#wake();
    };
    over.then(end, end);
  }

  pause(ms: number): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.#timer(ms, resolve);
      this.#wake = () => {
        stop();
        resolve();
      };
    });
  }
}

type Look = { bytes: number; end: "clean" | "broken" | null };

/**
 * Looks at what has arrived: reads until one read leaves room in its buffer. A read that finds nothing waits, and takes the
 * next bytes from the upstream on its own account, even if the client reads no further: so the first one is small.
 */
function looker(reader: ReadableStreamBYOBReader, feed: (chunk: Uint8Array) => void): () => Promise<Look> {
  let waiting: Uint8Array = new Uint8Array(COPY_WAITING_BYTES);
  return async () => {
    let bytes = 0;
    let view = waiting;
    for (;;) {
      const room = view.length;
      let read: ReadableStreamReadResult<Uint8Array>;
      try {
        read = await reader.read(view);
      } catch {
        return { bytes, end: "broken" };
      }
      if (read.done) return { bytes, end: "clean" };
      const { value } = read;
      feed(value);
      const isFirst = bytes === 0;
      bytes += value.length;
      // The read has taken the memory of its view, and handed it back in its result.
      const memory: Uint8Array = new Uint8Array(value.buffer);
      if (isFirst) waiting = memory;
      if (value.length < room) return { bytes, end: null };
      view = isFirst ? new Uint8Array(COPY_READ_BYTES) : memory;
    }
  };
}
