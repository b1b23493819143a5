/** Where a number, word or string of a JSON text ends, read strictly. Takes the same bytes twice, the view for speed. */
import { BACKSLASH, QUOTE } from "./json-bytes.ts";

/** Where the scalar at `at` ends; the complement (`~`) of the faulty place if there is none. */
export function scalarEnd(bytes: Uint8Array, view: DataView, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return stringEnd(bytes, view, at + 1);
    case 0x74:
      return at + 4 <= bytes.length && view.getUint32(at) === 0x74727565 ? at + 4 : ~at;
    case 0x6e:
      return at + 4 <= bytes.length && view.getUint32(at) === 0x6e756c6c ? at + 4 : ~at;
    case 0x66:
      return at + 5 <= bytes.length && view.getUint32(at + 1) === 0x616c7365 ? at + 5 : ~at;
    default:
      return numberEnd(bytes, at);
  }
}

function numberEnd(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === 0x2d ? start + 1 : start;
  if (bytes[at] === 0x30) at += 1;
  else {
    const digits = at;
    at = skipDigits(bytes, at);
    if (at === digits) return ~at;
  }
  if (bytes[at] === 0x2e) {
    const digits = at + 1;
    at = skipDigits(bytes, digits);
    if (at === digits) return ~at;
  }
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const sign = bytes[at + 1];
    const digits = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
    at = skipDigits(bytes, digits);
    if (at === digits) return ~at;
  }
  return at;
}

function skipDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) break;
  }
  return at;
}

/** Where the string whose text starts at `from` ends, its quote included; the complement of the faulty place if nowhere. */
export function stringEnd(bytes: Uint8Array, view: DataView, from: number): number {
  const { length } = bytes;
  let at = from;
  while (at < length) {
    // Four bytes at once while none is a quote, a backslash, a control or beyond ASCII: the sign bit of each tells.
    while (at + 4 <= length) {
      const four = view.getInt32(at);
      const quote = (four ^ 0x22222222) - 0x01010101;
      const backslash = (four ^ 0x5c5c5c5c) - 0x01010101;
      if (((four | (four - 0x20202020) | quote | backslash) & 0x80808080) !== 0) break;
      at += 4;
    }
    const byte = bytes[at] ?? QUOTE;
    if (byte === QUOTE) return at < length ? at + 1 : ~length;
    if (byte < 0x20) return ~at;
    if (byte === BACKSLASH) {
      const end = escapeEnd(bytes, at);
      if (end < 0) return end;
      at = end;
    } else if (byte < 0x80) at += 1;
    for (let lead = bytes[at] ?? 0; lead >= 0x80; lead = bytes[at] ?? 0) {
      const end = sequenceEnd(bytes, at, lead);
      if (end < 0) return end;
      at = end;
    }
  }
  return ~length;
}

function escapeEnd(bytes: Uint8Array, at: number): number {
  switch (bytes[at + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 2;
    case 0x75:
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (!isHex(bytes[digit] ?? 0)) return digit < bytes.length ? ~at : ~bytes.length;
      }
      return at + 6;
    case undefined:
      return ~bytes.length;
    default:
      return ~at;
  }
}

function isHex(byte: number): boolean {
  const letter = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x66);
}

/** UTF-8 beyond ASCII: no overlong forms, no surrogates, nothing above U+10FFFF. */
function sequenceEnd(bytes: Uint8Array, at: number, lead: number): number {
  const second = bytes[at + 1] ?? 0;
  if (lead >= 0xc2 && lead <= 0xdf) return isContinuation(second) ? at + 2 : ~at;
  const third = bytes[at + 2] ?? 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const low = lead === 0xe0 ? 0xa0 : 0x80;
    const high = lead === 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && isContinuation(third) ? at + 3 : ~at;
  }
  if (lead < 0xf0 || lead > 0xf4) return ~at;
  const low = lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xf4 ? 0x8f : 0xbf;
  const rest = isContinuation(third) && isContinuation(bytes[at + 3] ?? 0);
  return second >= low && second <= high && rest ? at + 4 : ~at;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
