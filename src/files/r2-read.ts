/** Reads objects of R2: as an HTTP answer whose body the runtime streams, and page by page for code that processes them. */
import { FILE_PAGE_BYTES } from "../limits.ts";
import { requestedRange } from "./range.ts";
import type { ByteSource, Read } from "./source.ts";

/** The answer: status, headers of the content, and a body; `unsatisfiable` is a 416 without its body. */
export type ContentAnswer =
  | { kind: "content"; status: 200 | 206; headers: Record<string, string>; body: ReadableStream<Uint8Array> | null }
  | { kind: "unsatisfiable"; headers: Record<string, string> }
  | { kind: "missing" };

/** The parts of a request that the answer depends on. */
export type ContentRequest = { method: string; range: string | null; ifRange: string | null };

/** Answers GET and HEAD. A range applies to GET only, and only if `If-Range` is missing or names this object's etag. */
export async function answerContent(bucket: R2Bucket, key: string, request: ContentRequest): Promise<ContentAnswer> {
  const isHead = request.method === "HEAD";
  if (!isHead && request.range === null) {
    const object = await bucket.get(key);
    return object === null ? { kind: "missing" } : whole(object, object.body);
  }
  const object = await bucket.head(key);
  if (object === null) return { kind: "missing" };
  if (isHead) return whole(object, null);
  const isMeant = request.ifRange === null || request.ifRange === object.httpEtag;
  const requested = requestedRange(isMeant ? request.range : null, object.size);
  if (requested.kind === "unsatisfiable") {
    return { kind: "unsatisfiable", headers: { "content-range": `bytes */${object.size}`, "accept-ranges": "bytes" } };
  }
  if (requested.kind === "whole") {
    const read = await bucket.get(key);
    return read === null ? { kind: "missing" } : whole(read, read.body);
  }
  const { firstByte, lastByte } = requested;
  const length = lastByte - firstByte + 1;
  const read = await bucket.get(key, { range: { offset: firstByte, length } });
  if (read === null) return { kind: "missing" };
  const headers = { ...headersOf(read, length), "content-range": `bytes ${firstByte}-${lastByte}/${object.size}` };
  return { kind: "content", status: 206, headers, body: read.body };
}

function whole(object: R2Object, body: ReadableStream<Uint8Array> | null): ContentAnswer {
  return { kind: "content", status: 200, headers: headersOf(object, object.size), body };
}

function headersOf(object: R2Object, length: number): Record<string, string> {
  return {
    "content-type": object.httpMetadata?.contentType ?? "application/octet-stream",
    "content-length": String(length),
    "accept-ranges": "bytes",
    etag: object.httpEtag,
    "last-modified": object.uploaded.toUTCString(),
  };
}

export type PagesFrom = {
  key: string;
  /** The object's size. */
  sizeBytes: number;
  /** The first index, from 0 to the size. */
  offset: number;
  /** Default 1 MiB. */
  pageBytes?: number;
};

/**
 * The object from an offset on, one read of R2 for each page: nothing stays open between two pages, however long the
 * caller works on one. A missing object is the fault `not_found`; a failure of R2 is an exception, after which the same
 * page may be read once more.
 */
export function pageSource(
  bucket: R2Bucket,
  { key, sizeBytes, offset, pageBytes = FILE_PAGE_BYTES }: PagesFrom,
): ByteSource {
  let next = offset;
  return {
    async read(): Promise<Read> {
      if (next >= sizeBytes) return { kind: "end" };
      const length = Math.min(pageBytes, sizeBytes - next);
      const object = await bucket.get(key, { range: { offset: next, length } });
      if (object === null) return { kind: "fault", reason: { reason: "not_found", what: "the file's content" } };
      const bytes = new Uint8Array(await object.arrayBuffer());
      if (bytes.length !== length) throw new Error(`R2 gave ${bytes.length} of ${length} bytes at ${next} of ${key}`);
      next += length;
      return { kind: "bytes", bytes };
    },
  };
}
