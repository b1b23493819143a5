/** Counts what an answer's text comes to in a stream of its pieces, for an estimate of what a broken one used. */

const BACKSLASH = 0x5c;

/** UTF-8 bytes of the JSON strings that begin where `piece`, a global expression, matches. */
export function pieceBytes(text: string, piece: RegExp): number {
  let bytes = 0;
  piece.lastIndex = 0;
  while (piece.test(text)) {
    const start = piece.lastIndex;
    const end = stringEnd(text, start);
    bytes += stringBytes(text, start, end);
    piece.lastIndex = end;
  }
  return bytes;
}

/** Counts in place: most pieces are a word, for which parsing and encoding cost more than all else that is read. */
function stringBytes(text: string, start: number, end: number): number {
  let bytes = 0;
  let at = start;
  while (at < end) {
    let unit = text.charCodeAt(at);
    let length = 1;
    if (unit === BACKSLASH) {
      length = text[at + 1] === "u" ? 6 : 2;
      if (length === 6) unit = Number.parseInt(text.slice(at + 2, at + 6), 16);
    }
    bytes += unitBytes(unit);
    at += length;
  }
  return bytes;
}

/** A character beyond the first 65,536 is two units, and four bytes. */
function unitBytes(unit: number): number {
  if (unit < 0x80) return 1;
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
}

/** Index of the quote that ends the string whose content starts at `from`; the text's length if it is not there. */
function stringEnd(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (end !== -1 && isEscaped(text, end, from)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number, from: number): boolean {
  let first = at;
  while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}
