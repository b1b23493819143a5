/**
 * The index of a context: for every block of 1,024 code points its bytes, the bytes that normalising can add, and its
 * tokens. So a range of code points is found and measured without reading the text: 6 bytes a block, 600 KB for 100 MB.
 */
import { CONTEXT_BLOCK_CHARS, CONTEXT_CUT_TOKENS } from "../limits.ts";
import { normalisedGrowth } from "../text/tokens/normalised-bytes.ts";
import { TokenMeter } from "../text/tokens/text-bound.ts";

/** Numbers of a block: bytes, growth, tokens. The largest is the growth of 1,024 code points, at most 30 bytes each. */
const NUMBERS = 3;

/** What is wrong with a text. `atChar` = the code point, counted from 0. */
export type TextFault = { message: string };

/** Reads a text as its bytes arrive, and keeps no more of it than a block. */
export class TextIndexer {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #meter = new TokenMeter();
  /** The bytes of the block that is not complete: a code point has at most four, and one more begins the next block. */
  readonly #block = new Uint8Array(CONTEXT_BLOCK_CHARS * 4 + 4);
  #length = 0;
  #blockChars = 0;
  #blocks: number[] = [];
  #chars = 0;
  #bytes = 0;
  #growth = 0;
  #meteredTokens = 0;

  /** Takes the next bytes, which may end within a character. Null, or why the text is refused. */
  push(bytes: Uint8Array): TextFault | null {
    let from = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      if (((bytes[at] ?? 0) & 0xc0) === 0x80) continue;
      if (this.#blockChars === CONTEXT_BLOCK_CHARS) {
        const fault = this.#take(bytes.subarray(from, at)) ?? this.#endBlock();
        if (fault !== null) return fault;
        from = at;
      }
      this.#blockChars += 1;
    }
    return this.#take(bytes.subarray(from));
  }

  /** Takes bytes of the block. */
  #take(bytes: Uint8Array): TextFault | null {
    if (this.#length + bytes.length > this.#block.length) return NOT_UTF8;
    this.#block.set(bytes, this.#length);
    this.#length += bytes.length;
    return null;
  }

  /** The whole text has arrived. */
  end(): TextFault | { chars: number; bytes: number; tokensMax: number; index: Uint8Array } {
    const fault = this.#length === 0 ? null : this.#endBlock();
    if (fault !== null) return fault;
    const tokens = this.#meter.end();
    // What the meter had kept back belongs to the last block.
    const last = this.#blocks.length - 1;
    if (last >= 0) this.#blocks[last] = (this.#blocks[last] ?? 0) + tokens - this.#meteredTokens;
    const tokensMax = Math.min(tokens, this.#bytes) + this.#growth;
    return { chars: this.#chars, bytes: this.#bytes, tokensMax, index: packed(this.#blocks) };
  }

  #endBlock(): TextFault | null {
    const block = this.#block.subarray(0, this.#length);
    let text: string;
    try {
      text = this.#decoder.decode(block);
    } catch {
      return NOT_UTF8;
    }
    const nulAt = text.indexOf("\0");
    if (nulAt !== -1) return { message: "contains a NUL character; expected text without NUL" };
    const isAscii = this.#length === this.#blockChars;
    const growth = isAscii ? 0 : normalisedGrowth(text);
    this.#meter.add(block);
    this.#blocks.push(this.#length, growth, this.#meter.tokens - this.#meteredTokens);
    this.#meteredTokens = this.#meter.tokens;
    this.#chars += this.#blockChars;
    this.#bytes += this.#length;
    this.#growth += growth;
    this.#length = 0;
    this.#blockChars = 0;
    return null;
  }
}

const NOT_UTF8: TextFault = { message: "is not UTF-8; expected text in UTF-8" };

function packed(blocks: readonly number[]): Uint8Array {
  return new Uint8Array(Uint16Array.from(blocks).buffer);
}

/** A range of code points, measured. */
export type MeasuredRange = {
  /** The bytes that hold it, in whole characters. */
  from: number;
  to: number;
  /** Code points before it in these bytes, and those of it; 0 and null = the bytes are the range. */
  skip: number;
  take: number | null;
  /** Most bytes that a tokenizer may see of it, and most tokens. */
  bytesMax: number;
  tokensMax: number;
};

/** Measures ranges of one text by its index. */
export class TextRanges {
  readonly #blocks: Uint16Array;
  readonly #chars: number;
  /** Sums over the blocks before each. */
  readonly #bytesBefore: Uint32Array;
  readonly #growthBefore: Uint32Array;
  readonly #tokensBefore: Uint32Array;

  constructor(index: Uint8Array, chars: number) {
    const copy = index.slice();
    this.#blocks = new Uint16Array(copy.buffer, 0, copy.byteLength >> 1);
    this.#chars = chars;
    const count = this.#blocks.length / NUMBERS;
    this.#bytesBefore = this.#sums(0, count);
    this.#growthBefore = this.#sums(1, count);
    this.#tokensBefore = this.#sums(2, count);
  }

  /** Measures the code points from `from` to `to`, which must be within the text. */
  measure(from: number, to: number): MeasuredRange {
    if (from >= to) return { from: 0, to: 0, skip: 0, take: null, bytesMax: 0, tokensMax: 0 };
    const first = Math.floor(from / CONTEXT_BLOCK_CHARS);
    const last = Math.floor((to - 1) / CONTEXT_BLOCK_CHARS);
    const skipped = from - first * CONTEXT_BLOCK_CHARS;
    const left = this.#charsBefore(last + 1) - to;
    // In a block of one byte a character, the cut is known to the byte.
    const cut = this.#isAscii(first) ? skipped : 0;
    const start = sumAt(this.#bytesBefore, first) + cut;
    const end = sumAt(this.#bytesBefore, last + 1) - (this.#isAscii(last) ? left : 0);
    const skip = skipped - cut;
    const isExact = skip === 0 && (left === 0 || this.#isAscii(last));
    // A character that is dropped has at least one byte.
    const notTaken = isExact ? 0 : skip + (this.#isAscii(last) ? 0 : left);
    const growth = sumAt(this.#growthBefore, last + 1) - sumAt(this.#growthBefore, first);
    const bytesMax = Math.min(end - start - notTaken, (to - from) * 4) + growth;
    const tokens = sumAt(this.#tokensBefore, last + 1) - sumAt(this.#tokensBefore, first);
    const isWhole = from === 0 && to === this.#chars;
    const tokensMax = Math.min(bytesMax, tokens + growth + (isWhole ? 0 : CONTEXT_CUT_TOKENS));
    return { from: start, to: end, skip, take: isExact ? null : to - from, bytesMax, tokensMax };
  }

  /** The byte at which the character `at` begins, or of the block that it is in, with the characters between them. */
  #charsBefore(block: number): number {
    return Math.min(block * CONTEXT_BLOCK_CHARS, this.#chars);
  }

  #isAscii(block: number): boolean {
    return this.#blocks[block * NUMBERS] === this.#charsBefore(block + 1) - this.#charsBefore(block);
  }

  #sums(number: number, count: number): Uint32Array {
    const sums = new Uint32Array(count + 1);
    for (let block = 0; block < count; block++) {
      sums[block + 1] = sumAt(sums, block) + (this.#blocks[block * NUMBERS + number] ?? 0);
    }
    return sums;
  }
}

function sumAt(sums: Uint32Array, block: number): number {
  return sums[block] ?? 0;
}
