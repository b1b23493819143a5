/**
 * An upper bound of the tokens of a text, for every tokenizer that merges byte pairs and was trained on English among
 * other things, from one pass over its UTF-8 bytes: about 0.35 tokens a byte for English, 1 for bytes that are not words.
 *
 * Every byte counts as a token, but for two facts, which tables.json records for all tokenizers that it was derived from:
 *
 * - Some 4,000 words are one token after a space, and at most two otherwise, where only ASCII or general punctuation
 *   touches them: tokenizers cut there, so no other text changes it.
 * - Two neighbouring tokens of one word are always those that the tokenizer makes of their bytes alone. If no tokenizer
 *   splits "ch" into "c" and "h", these are never neighbours, whatever surrounds them. So any other word counts as the
 *   largest number of pieces into which it can be cut without such neighbours: about 0.55 a letter.
 *
 * Both hold for each word by itself, not on average: no text can use up what the text before it saved. Bytes that a
 * tokenizer adds by normalising (normalised-bytes.ts) count one token each on top.
 */
import { escapedCode, jsonNormalisedGrowth, normalisedGrowth } from "./normalised-bytes.ts";
import { PieceCount } from "./pieces.ts";
import tables from "./tables.json" with { type: "json" };
import { BARE, CAPITAL, HASH_SEED, hashStep, SUFFIXED, SUFFIXES, WORD_LETTERS_MAX, WordSet } from "./words.ts";

const SPACE = 32;
const APOSTROPHE = 39;
const BACKSLASH = 92;
const LETTER_A = 97;
const LETTER_U = 117;
const LETTER_Z = 122;
/** Letters after an apostrophe that some tokenizers cut off as a contraction: 's, 'll. */
const CONTRACTION_LETTERS = 2;
/** Letters of the longest word of the table with the longest ending. A longer run of letters is not such a word. */
const RUN_LETTERS_MAX = WORD_LETTERS_MAX + 3;

/** Last bytes of –, —, “, ” and …, whose first two are E2 80: like ASCII punctuation, they are cut off a word. */
const PUNCTUATION_ENDS: readonly number[] = [0x93, 0x94, 0x9c, 0x9d, 0xa6];
const RIGHT_QUOTE_END = 0x99;

/** First bytes of U+0300 to U+036F, the marks that are written on Latin letters. */
const MARK_LEADS: readonly number[] = [0xcc, 0xcd];

/** Bytes of a `\\uXXXX` escape within JSON within JSON: two backslashes, `u` and four digits. */
const CODE_BYTES_MAX = 7;
/** A byte that begins no character: nothing is known about it, not even that a tokenizer cuts a word there. */
const UNKNOWN = 0xff;

/** The characters that JSON writes as a backslash and a letter. */
const ESCAPES = new Map([..."bfnrt"].map((letter, at) => [letter.charCodeAt(0), "\b\f\n\r\t".charCodeAt(at)]));

/** `SUFFIXES` by their last letter, a to z. */
const SUFFIXES_BY_LAST = Array.from({ length: 26 }, (_, letter) =>
  SUFFIXES.filter((suffix) => suffix.charCodeAt(suffix.length - 1) === LETTER_A + letter),
);

const encoder = new TextEncoder();
/** Reused, because a batch scans ten thousand prompts: its content means nothing between two scans. */
const buffer = new Uint8Array(16_384);
/** Unpacked at the first scan. */
let words: WordSet | null = null;

/** The most tokens that a text can be. `growth`: bytes that normalising can add to it. */
export function textTokensMax(text: string, growth = normalisedGrowth(text)): number {
  const count = countingTextTokens(text, growth, Infinity);
  for (;;) {
    const step = count.next();
    if (step.done === true) return step.value;
  }
}

/** The same, with a pause behind each `sliceChars`. */
export function* countingTextTokens(text: string, growth: number, sliceChars: number): Generator<void, number, void> {
  const scan = new TextScan();
  let bytes = 0;
  let kept = 0;
  let sliceEnd = sliceChars;
  for (let at = 0; at < text.length;) {
    const { read, written } = encoder.encodeInto(at === 0 ? text : text.slice(at), buffer.subarray(kept));
    at += read;
    bytes += written;
    kept = scan.take(kept + written, at === text.length);
    if (at < sliceEnd || at === text.length) continue;
    // Others use `buffer` in the pause.
    const lastWord = buffer.slice(0, kept);
    yield;
    buffer.set(lastWord);
    sliceEnd = at + sliceChars;
  }
  return Math.min(scan.tokens, bytes) + growth;
}

/**
 * The most tokens that the texts in JSON can be, together with its punctuation. An escaped character counts with all bytes
 * of its escape, because an upstream may write it as JSON again; so does a `\\u` escape in JSON within JSON.
 */
export function jsonTokensMax(
  json: Uint8Array,
  from = 0,
  to = json.length,
  growth = jsonNormalisedGrowth(json, from, to),
): number {
  const count = countingJsonTokens(json, { from, to, growth, sliceBytes: Infinity });
  for (;;) {
    const step = count.next();
    if (step.done === true) return step.value;
  }
}

/** The same, with a pause behind each `sliceBytes`. */
export function* countingJsonTokens(
  json: Uint8Array,
  { from, to, growth, sliceBytes }: { from: number; to: number; growth: number; sliceBytes: number },
): Generator<void, number, void> {
  const scan = new TextScan();
  let escapes = 0;
  let kept = 0;
  let sliceEnd = from + sliceBytes;
  for (let at = from; at < to;) {
    while (at < to && kept + CODE_BYTES_MAX < buffer.length) {
      const byte = json[at++] ?? 0;
      const next = byte === BACKSLASH ? (json[at] ?? LETTER_U) : LETTER_U;
      const codeAt = next === BACKSLASH ? at + 1 : at;
      if (byte === BACKSLASH && escapedCode(json, codeAt) !== null) {
        const end = codeAt + CODE_BYTES_MAX - 2;
        buffer.fill(UNKNOWN, kept, kept + end - at + 1);
        kept += end - at + 1;
        at = end;
      } else if (next === LETTER_U) buffer[kept++] = byte;
      else {
        buffer[kept++] = ESCAPES.get(next) ?? next;
        escapes++;
        at++;
      }
    }
    kept = scan.take(kept, at >= to);
    if (at < sliceEnd || at >= to) continue;
    // Others use `buffer` in the pause.
    const lastWord = buffer.slice(0, kept);
    yield;
    buffer.set(lastWord);
    sliceEnd = at + sliceBytes;
  }
  return Math.min(scan.tokens + escapes, to - from) + growth;
}

/** Counts the tokens of a text whose bytes arrive in pieces, as `textTokensMax` does, without what normalising adds. */
export class TokenMeter {
  readonly #scan = new TextScan();
  /** A last word that may continue. */
  #kept = new Uint8Array();

  /** The most tokens of what is counted so far: all bytes but those of a last word that may continue. */
  get tokens(): number {
    return this.#scan.tokens;
  }

  /** Counts the next bytes. */
  add(bytes: Uint8Array): void {
    buffer.set(this.#kept);
    let kept = this.#kept.length;
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + buffer.length - kept);
      buffer.set(part, kept);
      at += part.length;
      kept = this.#scan.take(kept + part.length, false);
    }
    // Others use `buffer` before the next bytes arrive.
    this.#kept = buffer.slice(0, kept);
  }

  /** The most tokens of the whole text. Call it once, after the last bytes. */
  end(): number {
    buffer.set(this.#kept);
    this.#scan.take(this.#kept.length, true);
    return this.#scan.tokens;
  }
}

/** One scan of a text, which passes through `buffer` part by part. */
class TextScan {
  readonly #words = (words ??= new WordSet(tables.words));
  readonly #pieces = new PieceCount();
  /** The three bytes before the next one; -1 = the text begins there. */
  #last = -1;
  #last2 = -1;
  #last3 = -1;

  /** Letters that the mark after them may turn into a letter of more bytes. */
  #marked = 0;

  get tokens(): number {
    return this.#pieces.most + this.#marked;
  }

  /**
   * Counts the first `length` bytes of `buffer`. A last word that may continue is moved to the start of `buffer` instead;
   * returns its length.
   */
  take(length: number, isLast: boolean): number {
    const bytes = buffer;
    let from = 0;
    for (let at = 0; at < length;) {
      const first = (bytes[at] ?? 0) | 32;
      if (first < LETTER_A || first > LETTER_Z) {
        at++;
        continue;
      }
      let hash = hashStep(HASH_SEED, first);
      let end = at + 1;
      for (; end < length; end++) {
        const letter = bytes[end] ?? 0;
        if ((letter | 32) < LETTER_A || (letter | 32) > LETTER_Z) break;
        hash = hashStep(hash, letter);
      }
      if (from < at) this.#countOther(from, at);
      // The three bytes after a word decide whether it ends there.
      if (!isLast && end + 3 > length && end - at <= RUN_LETTERS_MAX) {
        bytes.copyWithin(0, at, length);
        return length - at;
      }
      this.#countLetters(at, end, end < length && isCutAfter(end) ? hash : null);
      from = end;
      at = end;
    }
    if (from < length) this.#countOther(from, length);
    return 0;
  }

  /** Counts bytes that are not letters. */
  #countOther(from: number, to: number): void {
    // "m" and U+0301 are three bytes, and so is the letter that NFC makes of them: then no rule applies to that "m".
    if (MARK_LEADS.includes(buffer[from] ?? 0) && isLetter(this.#last)) this.#marked++;
    this.#pieces.add(buffer, from, to);
    const size = to - from;
    this.#last3 = (size > 2 ? buffer[to - 3] : size === 2 ? this.#last : this.#last2) ?? 0;
    this.#last2 = (size > 1 ? buffer[to - 2] : this.#last) ?? 0;
    this.#last = buffer[to - 1] ?? 0;
  }

  /** Counts a run of letters. `hash` is that of a word; null if no word can end there. */
  #countLetters(from: number, to: number, hash: number | null): void {
    const afterSpace = this.#last === SPACE && this.#last2 !== SPACE && this.#last2 !== -1;
    const isWord = hash !== null && to - from <= RUN_LETTERS_MAX && (afterSpace || this.#isCutBefore());
    const tokens = isWord ? this.#wordTokens(from, to, hash, afterSpace) : 0;
    if (tokens > 0) this.#pieces.addWord(tokens, afterSpace);
    else this.#pieces.add(buffer, from, to, this.#isAfterApostrophe() ? CONTRACTION_LETTERS : 0);
    this.#last = buffer[to - 1] ?? 0;
    this.#last2 = 0;
    this.#last3 = 0;
  }

  #isAfterApostrophe(): boolean {
    return this.#last === APOSTROPHE || (this.#last === RIGHT_QUOTE_END && this.#last2 === 0x80);
  }

  /** Whether tokenizers cut between a word and the bytes before it, which are not one space. */
  #isCutBefore(): boolean {
    if (this.#last === -1) return false;
    if (this.#last < 0x80) return this.#last !== APOSTROPHE;
    return this.#last2 === 0x80 && this.#last3 === 0xe2 && PUNCTUATION_ENDS.includes(this.#last);
  }

  /** Tokens of a run of letters, if it is a word of the table; else 0. */
  #wordTokens(from: number, to: number, hash: number, afterSpace: boolean): number {
    const isCapital = (buffer[from] ?? 0) < LETTER_A;
    const facts = this.#words.factsOf(buffer, from, to, hash);
    if (facts >= 0) {
      if (afterSpace) return isCapital && (facts & CAPITAL) === 0 ? 2 : 1;
      return isCapital || (facts & BARE) === 0 ? 2 : 1;
    }
    if (!this.#hasStem(from, to)) return 0;
    if (!afterSpace) return 5;
    return isCapital ? 4 : 3;
  }

  /** Whether a run of letters is a word of the table and one of the endings that it takes. */
  #hasStem(from: number, to: number): boolean {
    for (const suffix of SUFFIXES_BY_LAST[(buffer[to - 1] ?? 0) - LETTER_A] ?? []) {
      const stemEnd = to - suffix.length;
      if (stemEnd <= from || !endsWith(suffix, stemEnd)) continue;
      let hash = hashStep(HASH_SEED, (buffer[from] ?? 0) | 32);
      for (let at = from + 1; at < stemEnd; at++) hash = hashStep(hash, buffer[at] ?? 0);
      const facts = this.#words.factsOf(buffer, from, stemEnd, hash);
      if (facts >= 0 && (facts & SUFFIXED) !== 0) return true;
    }
    return false;
  }
}

function isLetter(byte: number): boolean {
  return (byte | 32) >= LETTER_A && (byte | 32) <= LETTER_Z;
}

/** Whether `suffix` is in `buffer` at `at`. */
function endsWith(suffix: string, at: number): boolean {
  for (let index = 0; index < suffix.length; index++) {
    if (buffer[at + index] !== suffix.charCodeAt(index)) return false;
  }
  return true;
}

/** Whether tokenizers cut between the bytes at `at` and a word before them. */
function isCutAfter(at: number): boolean {
  if ((buffer[at] ?? 0) < 0x80) return true;
  const end = buffer[at + 2] ?? 0;
  return buffer[at] === 0xe2 && buffer[at + 1] === 0x80 && (end === RIGHT_QUOTE_END || PUNCTUATION_ENDS.includes(end));
}
