/**
 * Bytes that come piece by piece. A source says at each read that there are bytes, that they are all read, or why no
 * more will come: so a body that broke off can never be taken for one that ended.
 */
import type { Reason } from "../errors.ts";
import { SOURCE_READ_BYTES } from "../limits.ts";

/** What one read found. The bytes may be a view of a larger buffer and must not be written to. */
export type Read = { kind: "bytes"; bytes: Uint8Array } | { kind: "end" } | { kind: "fault"; reason: Reason };

/** One reader, one read at a time. After `end` or `fault` every further read says the same. */
export type ByteSource = { read(): Promise<Read> };

const END: Read = { kind: "end" };

/** The bytes of a stream, which this takes over. `cancel` tells its sender that no more is wanted. */
export type StreamSource = ByteSource & { cancel(): Promise<void> };

/** Reads a stream. One that errors, as a request's body does when its client leaves, is a fault with that message. */
export function streamSource(stream: ReadableStream<Uint8Array>, brokenMessage: string): StreamSource {
  const reader = pieceReader(stream);
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
      // A stream that has broken refuses to be cancelled, and needs no telling.
      await reader.cancel().catch(() => {});
    },
  };
}

/** One source after another; each is opened when the one before it has ended. */
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

type PieceReader = {
  read(): Promise<{ done: false; value: Uint8Array } | { done: true; value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
};

/** The runtime's own streams fill a buffer that they are lent; without one they hand out pieces of 4 KB. */
function pieceReader(stream: ReadableStream<Uint8Array>): PieceReader {
  const lent = lendingReader(stream);
  if (lent === null) return stream.getReader();
  return { read: () => lent.read(new Uint8Array(SOURCE_READ_BYTES)), cancel: () => lent.cancel() };
}

function lendingReader(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}
