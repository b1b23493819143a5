/** Counts what an answer's text comes to in a stream of its pieces, for an estimate of what a broken one used. */
import { stringEnd } from "./sse-json.ts";

const encoder = new TextEncoder();

/** UTF-8 bytes of the strings that begin where `piece` matches. `ascii` spares the look at each character. */
export function pieceBytes(text: string, piece: RegExp, ascii: boolean): number {
  let bytes = 0;
  piece.lastIndex = 0;
  while (piece.test(text)) {
    const start = piece.lastIndex;
    const end = stringEnd(text, start);
    bytes += stringBytes(text.slice(start, end), ascii);
    piece.lastIndex = end;
  }
  return bytes;
}

function stringBytes(raw: string, ascii: boolean): number {
  if (!raw.includes("\\")) return ascii ? raw.length : encoder.encode(raw).length;
  try {
    const text: unknown = JSON.parse(`"${raw}"`);
    return typeof text === "string" ? encoder.encode(text).length : raw.length;
  } catch {
    return raw.length;
  }
}
