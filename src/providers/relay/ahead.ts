/** Reads the beginning of an answer before it is relayed: all of it if that is needed, else enough to see that it is no error. */
import { beginsAsFailure } from "../formats/response/fields.ts";
import { joined } from "../read-body.ts";
import type { Source } from "./pump.ts";

/** Largest error that is read whole, bytes. */
const ERROR_BYTES_MAX = 256 * 1024;

/**
 * The whole answer, if it has at most `bytesMax`, begins with an error or is neither a JSON object nor a stream of events;
 * else a source whose `head` is what was read. Rejects if the answer breaks off before its first bytes.
 */
export async function readAhead(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { bytesMax, isEvents }: { bytesMax: number; isEvents: boolean },
): Promise<{ whole: Uint8Array } | { source: Source }> {
  const head: Uint8Array[] = [];
  let bytes = 0;
  let enough = bytesMax;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { whole: joined(head) };
    if (value.length === 0) continue;
    head.push(value);
    // Only the first chunk counts: white space that a server sends to keep a connection alive is sent on at once.
    if (bytes === 0 && !isEvents && beginsAsFailure(value)) enough = Math.max(enough, ERROR_BYTES_MAX);
    bytes += value.length;
    if (bytes > enough) return { source: { head, reader } };
  }
}
