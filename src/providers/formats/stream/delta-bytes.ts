/** Measures the answer's text in the deltas of a stream, to estimate what a broken stream used. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** UTF-8 bytes of the JSON strings whose content begins where `deltaText`, a global expression, stops matching. */
export function deltaBytes(text: string, deltaText: RegExp): number {
  let bytes = 0;
  deltaText.lastIndex = 0;
  while (deltaText.test(text)) {
    const start = deltaText.lastIndex;
    const string = stringBytes(text, start);
    bytes += string.bytes;
    deltaText.lastIndex = string.end;
  }
  return bytes;
}

/**
 * Counts without decoding: most deltas are a word, and to parse and encode them would cost more than all else that is read
 * of the stream. The text was decoded for the search above, so this cannot use the grammar of bytes in `json`.
 */
function stringBytes(text: string, start: number): { bytes: number; end: number } {
  let bytes = 0;
  let at = start;
  while (at < text.length) {
    let unit = text.charCodeAt(at);
    if (unit === QUOTE) break;
    let length = 1;
    if (unit === BACKSLASH) {
      length = text[at + 1] === "u" ? 6 : 2;
      if (length === 6) unit = Number.parseInt(text.slice(at + 2, at + 6), 16);
    }
    bytes += unitBytes(unit);
    at += length;
  }
  return { bytes, end: Math.min(at, text.length) };
}

/** A character beyond the first 65,536 is two units, and four bytes. */
function unitBytes(unit: number): number {
  if (unit < 0x80) return 1;
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
}
