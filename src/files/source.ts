/**
 * Bytes that arrive in chunks. Each read returns bytes, the end, or the reason why no more will arrive: so a body that broke
 * off is never mistaken for one that ended.
 */
import type { Reason } from "../errors.ts";
import { SOURCE_READ_BYTES } from "../limits.ts";

/** The result of one read. The bytes may be a view of a larger buffer and must not be written to. */
export type Read = { kind: "bytes"; bytes: Uint8Array } | { kind: "end" } | { kind: "fault"; reason: Reason };

/** For one reader, one read at a time. After `end` or `fault` every further read returns the same. */
export type ByteSource = { read(): Promise<Read> };

const END: Read = { kind: "end" };

/** The bytes of a stream, which is locked. `cancel` stops its sender. */
export type StreamSource = ByteSource & { cancel(): Promise<void> };

/** Reads a stream. If it errors, as a request's body does when its client leaves, the read is a fault with that message. */
export function streamSource(stream: ReadableStream<Uint8Array>, brokenMessage: string): StreamSource {
  const reader = chunkReader(stream);
  let last: Read | null = null;
  return {
    async read() {
      while (last === null) {
        try {
          const { done, value } = await reader.read();
          if (!done && value.length > 0) return { kind: "bytes", bytes: value };
          if (done) last = END;
        } catch {
          last = { kind: "fault", reason: { reason: "invalid_request", message: brokenMessage, param: null } };
        }
      }
      return last;
    },
    async cancel() {
      last ??= END;
      // A broken stream cannot be cancelled, and need not be.
      await reader.cancel().catch(() => {});
    },
  };
}

/** Several sources in a row; each is opened when the one before it has ended. */
export function chainSources(openings: Iterable<() => ByteSource | Promise<ByteSource>>): ByteSource {
  const rest = openings[Symbol.iterator]();
  let current: ByteSource | null = null;
  return {
    async read() {
      for (;;) {
        const read: Read = current === null ? END : await current.read();
        if (read.kind !== "end") return read;
        const opening = rest.next();
        if (opening.done) return END;
        current = await opening.value();
      }
    },
  };
}

type ChunkReader = {
  read(): Promise<{ done: false; value: Uint8Array } | { done: true; value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
};

/** The runtime's own streams fill a buffer that the reader provides; without a buffer they return chunks of 4 KB. */
function chunkReader(stream: ReadableStream<Uint8Array>): ChunkReader {
  const byob = byobReader(stream);
  if (byob === null) return stream.getReader();
  return { read: () => byob.read(new Uint8Array(SOURCE_READ_BYTES)), cancel: () => byob.cancel() };
}

function byobReader(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}
