/** A set of words that looks up letters in a buffer, without a string per word. */

/** Letters of the longest word. */
export const WORD_LETTERS_MAX = 15;

/** Endings that a word of the table may take; see `WordForms.suffixes`. */
export const SUFFIXES = ["s", "d", "es", "ed", "er", "ly", "ing"] as const;

/** Facts about a word, as bits. Every word is one token after a space, and never more than two. */
export const CAPITAL = 1;
export const BARE = 2;
export const SUFFIXED = 4;

const FACT_SHIFT = 3;
const SHARED_MASK = 7;
const FIRST_CODE = 33;
const LETTER_A = 97;
const LETTER_Z = 122;
/** A power of two, about twice the number of words, so that a lookup takes one or two steps. */
const SLOTS = 16_384;

/** Start value of a word's hash. */
export const HASH_SEED = 0x811c9dc5;

/** The hash of a word extended by one letter. */
export function hashStep(hash: number, letter: number): number {
  return Math.imul(hash ^ letter, 0x01000193);
}

/** Words by hash: open addressing, every hit is compared letter by letter, so that no other word is taken for one. */
export class WordSet {
  /** Letters of all words in a row. */
  readonly #letters: Uint8Array;
  /** Per slot 0, or (1 + the index of the word's first letter) × 128 + its facts × 16 + its length. */
  readonly #slots = new Uint32Array(SLOTS);

  /** `packed`: see `packWords` in scripts/token-tables/words.ts. */
  constructor(packed: string) {
    const letters = new Uint8Array(packed.length * 4);
    let last = 0;
    let end = 0;
    for (let at = 0; at < packed.length;) {
      const code = packed.charCodeAt(at++) - FIRST_CODE;
      const start = end;
      letters.copyWithin(start, last, last + (code & SHARED_MASK));
      end += code & SHARED_MASK;
      for (let letter = packed.charCodeAt(at); letter >= LETTER_A && letter <= LETTER_Z;) {
        letters[end++] = letter;
        letter = packed.charCodeAt(++at);
      }
      this.#put(letters, start, end, code >> FACT_SHIFT);
      last = start;
    }
    this.#letters = letters.slice(0, end);
  }

  #put(letters: Uint8Array, start: number, end: number, facts: number): void {
    let hash = HASH_SEED;
    for (let at = start; at < end; at++) hash = hashStep(hash, letters[at] ?? 0);
    let slot = slotOf(hash);
    while (this.#slots[slot] !== 0) slot = (slot + 1) % SLOTS;
    this.#slots[slot] = (start + 1) * 128 + facts * 16 + (end - start);
  }

  /** The facts of the word in `bytes` from `start` to `end`, which may begin with a capital; -1 = no such word. */
  factsOf(bytes: Uint8Array, start: number, end: number, hash: number): number {
    for (let slot = slotOf(hash); ; slot = (slot + 1) % SLOTS) {
      const entry = this.#slots[slot] ?? 0;
      if (entry === 0) return -1;
      if ((entry & 15) === end - start && this.#isAt((entry >>> 7) - 1, bytes, start, end)) return (entry >> 4) & 7;
    }
  }

  #isAt(first: number, bytes: Uint8Array, start: number, end: number): boolean {
    for (let at = end - 1; at > start; at--) {
      if (bytes[at] !== this.#letters[first + at - start]) return false;
    }
    return ((bytes[start] ?? 0) | 32) === this.#letters[first];
  }
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}
