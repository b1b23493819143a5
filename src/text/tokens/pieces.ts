/**
 * The largest number of tokens that bytes can be if some tokens are never neighbours: counted byte by byte, for all ways to
 * cut the text at once. The state is the length of the last token: one byte, two, or more.
 */
import tables from "./tables.json" with { type: "json" };

/** Less than any number of tokens: the text cannot be cut so. */
const NEVER = -1e9;

/** Classes of bytes: 0 = unknown, 1 to 26 = a to z, 27 = space, 28 to 53 = A to Z. */
const SPACE_CLASS = 27;
const CAPITAL_CLASS = 28;
const CLASSES = 64;
/** Classes that a triple may be of: 0 to 27. */
const TRIPLE_CLASSES = 28;
const ALPHABET = 26;

/** Bits of a triple: never a token of one byte before one of two; never one of two before one of one. */
const NEVER_1_2 = 1;
const NEVER_2_1 = 2;

const CLASS_OF = classes();
/** The part of each class in the index of a triple, by its position; higher classes count as unknown. */
const TRIPLE_THIRD = Uint16Array.from({ length: CLASSES }, (_, of) => (of < TRIPLE_CLASSES ? of : 0));
const TRIPLE_SECOND = TRIPLE_THIRD.map((of) => of * TRIPLE_CLASSES);
const TRIPLE_FIRST = TRIPLE_SECOND.map((of) => of * TRIPLE_CLASSES);

type Rules = {
  /** By class × 64 + class: 1 = never two tokens in a row. */
  pairs: Uint8Array;
  /** By three classes: `NEVER_1_2`, `NEVER_2_1`. */
  triples: Uint8Array;
};

/** Unpacked at the first count. */
let rules: Rules | null = null;

/** One count, from the start of a text. */
export class PieceCount {
  readonly #rules = (rules ??= unpackRules());
  /** Most tokens so far, if the last one has one byte, two, or more; and the maximum of the three. */
  #one = NEVER;
  #two = NEVER;
  #more = 0;
  #most = 0;
  /** The same one byte before, and two bytes before. */
  #oneBefore = NEVER;
  #longBefore = NEVER;
  #mostBefore = NEVER;
  #mostBefore2 = NEVER;
  /** Classes of the last two bytes. */
  #last = 0;
  #last2 = 0;

  get most(): number {
    return this.#most;
  }

  /** Adds the bytes from `from` to `to`; the first `unknown` of them count as unknown. */
  add(bytes: Uint8Array, from: number, to: number, unknown = 0): void {
    const { pairs, triples } = this.#rules;
    let one = this.#one;
    let two = this.#two;
    let more = this.#more;
    let most = this.#most;
    let oneBefore = this.#oneBefore;
    let longBefore = this.#longBefore;
    let mostBefore = this.#mostBefore;
    let mostBefore2 = this.#mostBefore2;
    let last = this.#last;
    let last2 = this.#last2;
    for (let at = from; at < to; at++) {
      const next = at < from + unknown ? 0 : (CLASS_OF[bytes[at] ?? 0] ?? 0);
      const triple = triples[(TRIPLE_FIRST[last2] ?? 0) + (TRIPLE_SECOND[last] ?? 0) + (TRIPLE_THIRD[next] ?? 0)] ?? 0;
      const long = two > more ? two : more;
      // The last token is this byte alone, this and the byte before, or it is longer.
      let ends = more;
      if (one > ends && pairs[last * CLASSES + next] === 0) ends = one;
      if (two > ends && (triple & NEVER_2_1) === 0) ends = two;
      let endsBefore = longBefore;
      if (oneBefore > endsBefore && (triple & NEVER_1_2) === 0) endsBefore = oneBefore;
      if (mostBefore2 + 1 > more) more = mostBefore2 + 1;
      oneBefore = one;
      longBefore = long;
      mostBefore2 = mostBefore;
      mostBefore = most;
      one = ends + 1;
      two = endsBefore + 1;
      most = one > two ? one : two;
      if (more > most) most = more;
      last2 = last;
      last = next;
    }
    this.#one = one;
    this.#two = two;
    this.#more = more;
    this.#most = most;
    this.#oneBefore = oneBefore;
    this.#longBefore = longBefore;
    this.#mostBefore = mostBefore;
    this.#mostBefore2 = mostBefore2;
    this.#last = last;
    this.#last2 = last2;
  }

  /** Adds a word of its own tokens; `withSpace` = the space before it, already counted, belongs to the word. */
  addWord(tokens: number, withSpace: boolean): void {
    this.#most = (withSpace ? this.#mostBefore : this.#most) + tokens;
    this.#more = this.#most;
    this.#one = NEVER;
    this.#two = NEVER;
    this.#oneBefore = NEVER;
    this.#longBefore = NEVER;
    this.#mostBefore = NEVER;
    this.#mostBefore2 = NEVER;
    this.#last = 0;
    this.#last2 = 0;
  }
}

function classes(): Uint8Array {
  const classOf = new Uint8Array(256);
  classOf[0x20] = SPACE_CLASS;
  for (let letter = 0; letter < ALPHABET; letter++) {
    classOf[0x61 + letter] = 1 + letter;
    classOf[0x41 + letter] = CAPITAL_CLASS + letter;
  }
  return classOf;
}

/** In the order of scripts/token-tables/pieces.ts. */
function unpackRules(): Rules {
  const pairs = new Uint8Array(CLASSES * CLASSES);
  const nextPair = bitsOf(tables.pairs);
  const firsts = [SPACE_CLASS, ...range(1), ...range(CAPITAL_CLASS)];
  for (const first of firsts) for (const letter of range(1)) pairs[first * CLASSES + letter] = nextPair();
  for (const letter of range(CAPITAL_CLASS)) pairs[SPACE_CLASS * CLASSES + letter] = nextPair();
  const triples = new Uint8Array(TRIPLE_CLASSES ** 3);
  const nextTriple = bitsOf(tables.triples);
  for (const first of [SPACE_CLASS, ...range(1)]) {
    for (const second of range(1)) {
      for (const third of range(1)) {
        const bits = nextTriple() * NEVER_1_2 + nextTriple() * NEVER_2_1;
        triples[(first * TRIPLE_CLASSES + second) * TRIPLE_CLASSES + third] = bits;
      }
    }
  }
  return { pairs, triples };
}

function range(from: number): number[] {
  return Array.from({ length: ALPHABET }, (_, at) => from + at);
}

function bitsOf(base64: string): () => number {
  const bytes = atob(base64);
  let at = 0;
  return () => (bytes.charCodeAt(at >> 3) >> (at++ & 7)) & 1;
}
