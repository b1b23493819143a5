/** Splits bytes into lines at `\n` only: U+2028 can occur inside JSON strings. It holds one line at a time. */
import { Failure } from "../failure.ts";

/** Longest line, bytes: far above the largest request of any server, and little memory. */
const LINE_BYTES_MAX = 32 * 1024 * 1024;

/** Longest line of what the gateway sends, such as an answer, bytes: below the longest string of Node. */
export const SENT_LINE_BYTES_MAX = 256 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;

/**
 * `number` counts from 1, as in editors; `start` is the offset of the first byte in the file. `bytes` is the content without the line
 * end and without a byte order mark; `isEnded`: whether it has a line end.
 */
export type Line = { number: number; start: number; bytes: Buffer; isEnded: boolean };

/**
 * The lines of a file, without blank lines.
 * @throws {Failure} for a line longer than `bytesMax`; the message has its number.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax: number = LINE_BYTES_MAX,
): AsyncGenerator<Line> {
  let pieces: Buffer[] = [];
  let lineBytes = 0;
  let start = 0;
  let number = 1;
  const take = (piece: Buffer) => {
    pieces.push(piece);
    lineBytes += piece.length;
    if (lineBytes > bytesMax) throw new Failure(`Line ${number} is longer than ${bytesMax} bytes.`);
  };
  const end = (isEnded: boolean) => {
    const bytes = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces);
    const line = contentOf(bytes, { start, number, isEnded });
    start += lineBytes + 1;
    number += 1;
    pieces = [];
    lineBytes = 0;
    return line;
  };
  for await (const piece of chunks) {
    const chunk = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let lf = chunk.indexOf(LF); lf !== -1; lf = chunk.indexOf(LF, from)) {
      take(chunk.subarray(from, lf));
      from = lf + 1;
      const line = end(true);
      if (line !== null) yield line;
    }
    if (from < chunk.length) take(chunk.subarray(from));
  }
  const last = end(false);
  if (last !== null) yield last;
}

function contentOf(bytes: Buffer, { start, number, isEnded }: Omit<Line, "bytes">): Line | null {
  const first = start === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const last = bytes.length > first && bytes.at(-1) === CR ? bytes.length - 1 : bytes.length;
  const content = bytes.subarray(first, last);
  const isBlank = content.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR);
  return isBlank ? null : { number, start: start + first, bytes: content, isEnded };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A line's text.
 * @throws {Failure} if it is not UTF-8.
 */
export function textOfLine({ bytes, number }: Line): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Failure(`Line ${number} is not UTF-8 text.`);
  }
}
