/** Reads an answer ahead of its passing: whole where all of it is needed, else to see that it does not begin with an error. */
import { joined } from "./body.ts";
import type { Source } from "./pass-pump.ts";

/** Largest error that is read whole, bytes. */
const ERROR_BYTES_MAX = 256 * 1024;

/** Answers that begin so are errors in a 200; routers put nothing before. */
const ERROR_HEAD = /^\s*\{\s*"(?:error"\s*:\s*(?:\{|"[^"])|object"\s*:\s*"error")/;
const HEAD_BYTES = 256;

/**
 * The whole answer, if it has at most `bytesMax` or begins with an error; else null, and what was read is in `head`, with
 * which the answer goes on. It waits for the first bytes at least, so an answer that breaks off before them rejects.
 */
export async function readAhead(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
): Promise<{ whole: Uint8Array } | { source: Source }> {
  const head: Uint8Array[] = [];
  let bytes = 0;
  let enough = bytesMax;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { whole: joined(head) };
    if (value.length === 0) continue;
    head.push(value);
    if (bytes === 0 && beginsWithError(value)) enough = Math.max(enough, ERROR_BYTES_MAX);
    bytes += value.length;
    if (bytes > enough) return { source: { head, reader } };
  }
}

/** It is in the first chunk or nowhere: white space that a server sends to keep a connection alive goes on at once. */
function beginsWithError(chunk: Uint8Array): boolean {
  return ERROR_HEAD.test(new TextDecoder().decode(chunk.subarray(0, HEAD_BYTES)));
}
