/** Forms as bytes, cut into chunks as a network cuts them, and what the reader found in them. */
import type { FormReader } from "../../src/files/multipart.ts";
import { streamSource } from "../../src/files/source.ts";
import type { ByteSource } from "../../src/files/source.ts";
import type { Reason } from "../../src/errors.ts";

const encoder = new TextEncoder();

export function bytesOf(...pieces: (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const encoded = pieces.map((piece) => (typeof piece === "string" ? encoder.encode(piece) : piece));
  const bytes = new Uint8Array(encoded.reduce((sum, piece) => sum + piece.length, 0));
  let offset = 0;
  for (const piece of encoded) {
    bytes.set(piece, offset);
    offset += piece.length;
  }
  return bytes;
}

/** The bytes as a stream, in chunks that are this long in turn. */
export function streamOf(bytes: Uint8Array, chunkLengths: readonly number[] = [65_536]): ReadableStream<Uint8Array> {
  let offset = 0;
  let turn = 0;
  return new ReadableStream({
    pull(controller) {
      if (offset >= bytes.length) return controller.close();
      const length = chunkLengths[turn++ % chunkLengths.length] ?? bytes.length;
      controller.enqueue(bytes.slice(offset, offset + length));
      offset += length;
    },
  });
}

export function sourceOf(bytes: Uint8Array, chunkLengths?: readonly number[]): ByteSource {
  return streamSource(streamOf(bytes, chunkLengths), "the stream broke");
}

/** Everything a source yields, or the fault that ended it. */
export async function readAll(source: ByteSource): Promise<{ bytes: Uint8Array; fault: Reason | null }> {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const read = await source.read();
    if (read.kind === "bytes") pieces.push(read.bytes.slice());
    else return { bytes: bytesOf(...pieces), fault: read.kind === "fault" ? read.reason : null };
  }
}

export type Found =
  | { field: string; value: string }
  | { file: string; filename: string | null; contentType: string | null; bytes: Uint8Array }
  | { fault: Reason };

/** All that a reader finds, in order; a fault comes last. */
export async function findAll(reader: FormReader): Promise<Found[]> {
  const found: Found[] = [];
  for (;;) {
    const part = await reader.next();
    if (part.kind === "end") return found;
    if (part.kind === "fault") return [...found, { fault: part.reason }];
    if (part.kind === "field") found.push({ field: part.name, value: part.value });
    else {
      const { name, filename, contentType } = part;
      const { bytes, fault } = await readAll(part.body);
      found.push(fault === null ? { file: name, filename, contentType, bytes } : { fault });
      if (fault !== null) return found;
    }
  }
}
