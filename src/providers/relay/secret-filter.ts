/** Finds one secret in bytes that come in pieces: in plain, or with JSON escapes. */
import { SECRETS_PREPARED_MAX } from "../../limits.ts";
import { ESCAPE_BACKSLASHES_MAX, REDACTED, SHORT_ESCAPED } from "../redact.ts";
import type { Found } from "../formats/stream/split-secret.ts";
import { joined } from "../read-body.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
/** What stands in place of a secret: this very array. */
const BLANK: Uint8Array = encoder.encode(REDACTED);
const NOTHING = new Uint8Array(0);

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const DIGIT_0 = 0x30;
const HEX_DIGITS = 4;
/** Bytes behind an escape that are looked at for another one. */
const LOOK_BYTES = 16;

/** What stands at an index: not the secret, its beginning up to the end of the bytes, or the whole of it. */
const NO_MATCH = 0;
const BEGINS = -1;

/** What a search for one secret knows of it before it begins. */
type Wanted = {
  bytes: Uint8Array;
  /** Its bytes, as a set: other bytes are never part of it. */
  has: Uint8Array;
  /** Where the byte is that is searched for: the one that is likely to be the rarest in an answer. */
  anchor: number;
  isShortEscaped: boolean;
};

/** One for each secret that was searched for: every answer of an upstream has the same. */
const wanted = new Map<string, Wanted>();

function wantedOf(secret: string): Wanted {
  const known = wanted.get(secret);
  if (known !== undefined) return known;
  const bytes = encoder.encode(secret);
  const has = new Uint8Array(256);
  for (const byte of bytes) has[byte] = 1;
  const fresh = { bytes, has, anchor: anchorOf(bytes), isShortEscaped: SHORT_ESCAPED.test(secret) };
  // Tokens that are fetched are new every hour.
  if (wanted.size >= SECRETS_PREPARED_MAX) wanted.clear();
  wanted.set(secret, fresh);
  return fresh;
}

/**
 * Blanks one secret. What may be its beginning at the end of a piece is withheld until the next. It delays no event of a stream: an
 * event ends in a line end, a secret does not.
 */
export class SecretFilter {
  readonly #secret: Uint8Array;
  readonly #has: Uint8Array;
  readonly #anchor: number;
  readonly #isShortEscaped: boolean;
  #withheld: Uint8Array = NOTHING;

  constructor(secret: string) {
    const { bytes, has, anchor, isShortEscaped } = wantedOf(secret);
    this.#secret = bytes;
    this.#has = has;
    this.#anchor = anchor;
    this.#isShortEscaped = isShortEscaped;
  }

  feed(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
    if (this.#withheld.length === 0 && pieces.every((piece) => this.#isFree(piece))) return pieces;
    const out: Uint8Array[] = [];
    for (const piece of pieces) {
      if (piece.length > 0) this.#filter(this.#withheld.length === 0 ? piece : joined([...this.end(), piece]), out);
    }
    return out;
  }

  end(): Uint8Array[] {
    const withheld = this.#withheld;
    this.#withheld = NOTHING;
    return withheld.length === 0 ? [] : [withheld];
  }

  /** Whether bytes have nothing of the secret, as most have: their end in no character of it. */
  #isFree(bytes: Uint8Array): boolean {
    if (bytes.length === 0 || this.#has[bytes[bytes.length - 1] ?? 0] === 1) return false;
    const { length } = this.#secret;
    const anchorByte = this.#secret[this.#anchor] ?? 0;
    for (let at = bytes.indexOf(anchorByte); at !== -1; at = bytes.indexOf(anchorByte, at + 1))
      if (this.#matchesPlain(bytes, at - this.#anchor, length)) return false;
    return !this.#mayEscape(bytes);
  }

  #filter(bytes: Uint8Array, out: Uint8Array[]): void {
    const from = this.#mayEscape(bytes) ? this.#blankEscaped(bytes, out) : this.#blankPlain(bytes, out);
    if (from === 0) out.push(bytes);
    else if (from < bytes.length) out.push(bytes.subarray(from));
  }

  /** Blanks the secret in bytes without an escape of any of its characters. Returns where the rest begins. */
  #blankPlain(bytes: Uint8Array, out: Uint8Array[]): number {
    const { length } = this.#secret;
    const anchorByte = this.#secret[this.#anchor] ?? 0;
    let from = 0;
    for (let at = bytes.indexOf(anchorByte); at !== -1;) {
      const start = at - this.#anchor;
      if (start >= from && this.#matchesPlain(bytes, start, length)) {
        if (start > from) out.push(bytes.subarray(from, start));
        out.push(BLANK);
        from = start + length;
        at = bytes.indexOf(anchorByte, from);
      } else at = bytes.indexOf(anchorByte, at + 1);
    }
    // What may be the secret's beginning stands at the very end, in bytes that are all the secret's.
    let first = bytes.length;
    while (first > from && bytes.length - first < length - 1 && this.#has[bytes[first - 1] ?? 0] === 1) first -= 1;
    for (let start = first; start < bytes.length; start++) {
      if (this.#matchesPlain(bytes, start, bytes.length - start)) return this.#withhold(bytes, from, start, out);
    }
    return from;
  }

  /** As `#blankPlain`, of bytes that may have such escapes: it looks at each byte, and few answers have any. */
  #blankEscaped(bytes: Uint8Array, out: Uint8Array[]): number {
    const first = this.#secret[0];
    let from = 0;
    for (let at = 0; at < bytes.length;) {
      const byte = bytes[at];
      const end = byte === first || byte === BACKSLASH ? this.#matchEscaped(bytes, at) : NO_MATCH;
      if (end === BEGINS) return this.#withhold(bytes, from, at, out);
      if (end === NO_MATCH) {
        at += 1;
        continue;
      }
      if (at > from) out.push(bytes.subarray(from, at));
      out.push(BLANK);
      from = at = end;
    }
    return from;
  }

  #withhold(bytes: Uint8Array, from: number, start: number, out: Uint8Array[]): number {
    if (start > from) out.push(bytes.subarray(from, start));
    this.#withheld = bytes.slice(start);
    return bytes.length;
  }

  /** Whether as many bytes from an index on equal the secret's first. */
  #matchesPlain(bytes: Uint8Array, start: number, length: number): boolean {
    for (let index = 0; index < length; index++) if (bytes[start + index] !== this.#secret[index]) return false;
    return true;
  }

  /** The index behind the secret if it stands at an index, each character in plain or escaped; or `NO_MATCH`, or `BEGINS`. */
  #matchEscaped(bytes: Uint8Array, start: number): number {
    let at = start;
    for (const byte of this.#secret) {
      if (at >= bytes.length) return BEGINS;
      const next =
        bytes[at] === BACKSLASH && byte !== BACKSLASH ? endOfEscape(bytes, at, byte) : endOfPlain(bytes, at, byte);
      if (next <= NO_MATCH) return next;
      at = next;
    }
    return at;
  }

  /** Whether the bytes have an escape of one of the secret's characters, or end in what may become one. */
  #mayEscape(bytes: Uint8Array): boolean {
    for (let at = bytes.indexOf(BACKSLASH); at !== -1; at = nextEscape(bytes, at + 1)) {
      const letter = bytes[at + 1];
      if (letter === undefined) return true;
      if (letter === LETTER_U) {
        const code = codeAt(bytes, at + 2);
        if (code === BEGINS || this.#has[code] === 1) return true;
      } else if (this.#isShortEscaped && this.#has[letter] === 1) return true;
    }
    return false;
  }
}

/** Where the first of a secret is in a text, and how much of the text's end may be the beginning of one. */
export function lookForSecret(secret: string, text: string): Found {
  const filter = new SecretFilter(secret);
  const pieces = filter.feed([encoder.encode(text)]);
  const tail = charsOf(filter.end());
  const blank = pieces.indexOf(BLANK);
  if (blank === -1) return { start: Infinity, end: Infinity, tail };
  const behind = charsOf(pieces.slice(blank + 1)) + tail;
  return { start: charsOf(pieces.slice(0, blank)), end: text.length - behind, tail };
}

function charsOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + decoder.decode(piece).length, 0);
}

/** The next backslash; -1 = there is none. Escapes come together, as in code, where a call of `indexOf` costs more than a look. */
function nextEscape(bytes: Uint8Array, from: number): number {
  const end = Math.min(bytes.length, from + LOOK_BYTES);
  for (let at = from; at < end; at++) if (bytes[at] === BACKSLASH) return at;
  return end === bytes.length ? -1 : bytes.indexOf(BACKSLASH, end);
}

/** A backslash of a secret is itself escaped: any number of them stands for one. */
function endOfPlain(bytes: Uint8Array, at: number, byte: number): number {
  if (bytes[at] !== byte) return NO_MATCH;
  let end = at + 1;
  if (byte === BACKSLASH) while (bytes[end] === BACKSLASH && end - at < ESCAPE_BACKSLASHES_MAX) end += 1;
  return end;
}

/** The index behind an escape of a byte: backslashes, and the byte itself or its code; or `NO_MATCH`, or `BEGINS`. */
function endOfEscape(bytes: Uint8Array, start: number, byte: number): number {
  let at = start + 1;
  while (bytes[at] === BACKSLASH && at - start < ESCAPE_BACKSLASHES_MAX) at += 1;
  const letter = bytes[at];
  if (letter === undefined) return BEGINS;
  if (letter === LETTER_U) {
    const code = codeAt(bytes, at + 1);
    if (code === BEGINS) return BEGINS;
    return code === byte ? at + 1 + HEX_DIGITS : NO_MATCH;
  }
  return letter === byte && SHORT_ESCAPED.test(String.fromCharCode(byte)) ? at + 1 : NO_MATCH;
}

/** The code that four hexadecimal digits name; `NO_MATCH` for other bytes and for codes above those of a secret, or `BEGINS`. */
function codeAt(bytes: Uint8Array, start: number): number {
  const second = bytes[start + 1];
  // The codes of most alphabets are above those of a secret.
  if (second !== undefined && second !== DIGIT_0) return NO_MATCH;
  let code = 0;
  for (let index = 0; index < HEX_DIGITS; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) return BEGINS;
    const digit = digitOf(byte);
    if (digit === null || (index < 2 && digit !== 0)) return NO_MATCH;
    code = code * 16 + digit;
  }
  return code;
}

function digitOf(byte: number): number | null {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : null;
}

/** The place of the byte that is likely to be the rarest in JSON of any language: capitals, then digits, then others. */
function anchorOf(secret: Uint8Array): number {
  let best = 0;
  for (let index = 1; index < secret.length; index++) {
    if (rarity(secret[index] ?? 0) > rarity(secret[best] ?? 0)) best = index;
  }
  return best;
}

const RARE = "jqxzkvwybpgfumcdlhrsnioate";

function rarity(byte: number): number {
  const character = String.fromCharCode(byte);
  if (/[QXZJKVW]/.test(character)) return 4;
  if (/[A-Z]/.test(character)) return 3;
  if (/[0-9]/.test(character)) return 1;
  const place = RARE.indexOf(character);
  return place === -1 ? 0 : 2 - place / RARE.length;
}
