/**
 * Cuts a text into chunks of at most `size` characters, as it arrives piece by piece. Characters are code points. A chunk
 * ends at the best place that its size reaches: `markdown` before a heading, else like `paragraphs` after a blank line, else
 * like `lines` after a line, else within a line.
 */
import { LineStarts } from "./line-starts.ts";
import type { Split } from "./types.ts";

/** Code points; `to` is exclusive. */
export type Chunk = { from: number; to: number };

/** Places where a chunk may end, the best last. */
const LEVELS = { chars: 0, lines: 1, paragraphs: 2, markdown: 3 } as const;

const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const FENCE = /^ {0,3}(?:```|~~~)/;
/** Characters of a line that are looked at to know what it is. */
const LOOK_CHARS = 64;

/** The chunks of a text by characters, which its length decides. */
export function* chunksByChars(chars: number, { size, overlap }: Split): Generator<Chunk> {
  for (let from = 0; from < chars; from += size - overlap) {
    const to = Math.min(chars, from + size);
    yield { from, to };
    if (to === chars) return;
  }
}

/** Cuts one text. `split.by` is not `chars`. */
export class Splitter {
  readonly #size: number;
  readonly #overlap: number;
  readonly #levelMax: number;
  /** Whether it matters what a line is: all are alike for a split by lines. */
  readonly #looks: boolean;
  readonly #found: (chunk: Chunk) => void;
  /** The chunk that grows begins here; the one before it ended at `#ended`. */
  #from = 0;
  #ended = 0;
  /** Where the text so far ends. */
  #at = 0;
  /** Lines that have ended. */
  #ends = 0;
  /** The beginnings of all lines, and by how good a place they are to end a chunk. */
  readonly #lines = new LineStarts();
  readonly #byLevel = Array.from(Object.values(LEVELS), () => new LineStarts());
  /** The line that has not ended: its first characters, and the code points of it so far. */
  #look = "";
  #lineFrom = 0;
  #isBlankLine = true;
  #afterBlank = false;
  #isFenced = false;
  /** The last character so far is a carriage return, which a line feed may follow. */
  #afterReturn = false;

  constructor({ by, size, overlap }: Split, found: (chunk: Chunk) => void) {
    this.#size = size;
    this.#overlap = overlap;
    this.#levelMax = LEVELS[by];
    this.#looks = this.#levelMax > LEVELS.lines;
    this.#found = found;
  }

  /** Takes the next piece, which ends with a whole character. Returns how many lines ended in it: each is work of its own. */
  push(piece: string): number {
    const linesBefore = this.#ends;
    this.#take(piece);
    return this.#ends - linesBefore;
  }

  #take(piece: string): void {
    let from = 0;
    if (this.#afterReturn && piece.length > 0) {
      this.#afterReturn = false;
      if (piece.startsWith("\n")) {
        this.#add("\n", 1);
        from = 1;
      }
      this.#endLine();
    }
    const breaks = new LineBreaks(piece);
    while (from < piece.length) {
      const end = breaks.endFrom(from);
      if (end === null) return this.#add(piece.slice(from), codePoints(piece, from, piece.length));
      this.#add(piece.slice(from, end), codePoints(piece, from, end));
      from = end;
      if (piece.endsWith("\r") && end === piece.length) this.#afterReturn = true;
      else this.#endLine();
    }
  }

  /** The whole text has arrived. */
  end(): void {
    this.#startLine();
    while (this.#at - this.#from > this.#size) this.#cut();
    if (this.#at > this.#ended) this.#found({ from: this.#from, to: this.#at });
  }

  /** Adds characters to the line. A line that is too long is cut as it comes, so that no more than a chunk is known of it. */
  #add(text: string, chars: number): void {
    this.#at += chars;
    if (!this.#looks) return;
    if (this.#look.length < LOOK_CHARS) this.#look += text.slice(0, LOOK_CHARS);
    this.#isBlankLine &&= text.trim() === "";
  }

  #endLine(): void {
    this.#ends += 1;
    this.#startLine();
    if (this.#looks && FENCE.test(this.#look)) this.#isFenced = !this.#isFenced;
    this.#afterBlank = this.#isBlankLine;
    this.#look = "";
    this.#isBlankLine = true;
    this.#lineFrom = this.#at;
    while (this.#at - this.#from > this.#size) this.#cut();
  }

  /** Notes the beginning of the line, now that its first characters are known. */
  #startLine(): void {
    if (this.#lineFrom === this.#at) return;
    this.#lines.push(this.#lineFrom);
    this.#byLevel[this.#looks ? this.#levelOfLine() : this.#levelMax]?.push(this.#lineFrom);
  }

  #levelOfLine(): number {
    const isHeading = !this.#isFenced && HEADING.test(this.#look);
    const isParagraph = this.#afterBlank && !this.#isBlankLine;
    const level = isHeading ? LEVELS.markdown : isParagraph ? LEVELS.paragraphs : LEVELS.lines;
    return Math.min(level, this.#levelMax);
  }

  /** Ends the chunk at its best place. */
  #cut(): void {
    const most = this.#from + this.#size;
    const best = this.#bestUpTo(most);
    if (best === null && this.#from < this.#ended && most <= this.#ended + this.#overlap) {
      // What the chunk repeats leaves too little room for the next line: it repeats nothing.
      if (this.#hasLineWithin(this.#ended, this.#ended + this.#size)) {
        this.#from = this.#ended;
        return;
      }
    }
    const to = best ?? most;
    this.#found({ from: this.#from, to });
    this.#ended = to;
    this.#from = this.#nextFrom(to, best !== null);
    // A first line is kept: the next chunk may begin within it.
    for (const lines of [this.#lines, ...this.#byLevel]) lines.dropBefore(this.#from);
  }

  /** The best place to end a chunk: of equally good ones the last. */
  #bestUpTo(most: number): number | null {
    for (const lines of this.#byLevel.toReversed()) {
      const at = lines.upTo(most);
      if (at !== null && at > this.#ended && at > this.#from) return at;
    }
    return null;
  }

  #hasLineWithin(from: number, to: number): boolean {
    const next = this.#lines.from(from + 1);
    return (next !== null && next <= to) || this.#at <= to;
  }

  /** Where the next chunk begins: whole lines are repeated where the chunk ended with one. */
  #nextFrom(to: number, isAtLine: boolean): number {
    if (this.#overlap === 0) return to;
    if (!isAtLine) return Math.max(this.#from + 1, to - this.#overlap);
    const repeated = this.#lines.from(Math.max(to - this.#overlap, this.#from + 1));
    return repeated === null || repeated >= to ? to : repeated;
  }
}

/** The line breaks of a piece. Each kind is looked for only behind the last that was found: most texts have one of the two. */
class LineBreaks {
  readonly #piece: string;
  #feed = -1;
  #carriage = -1;

  constructor(piece: string) {
    this.#piece = piece;
  }

  /** The end of the line that begins at `from`, behind its line break; null = it does not end in this piece. `from` only grows. */
  endFrom(from: number): number | null {
    if (this.#feed < from) this.#feed = this.#next("\n", from);
    if (this.#carriage < from) this.#carriage = this.#next("\r", from);
    if (this.#feed === Infinity && this.#carriage === Infinity) return null;
    if (this.#feed < this.#carriage) return this.#feed + 1;
    return this.#carriage + (this.#piece[this.#carriage + 1] === "\n" ? 2 : 1);
  }

  #next(lineBreak: string, from: number): number {
    const at = this.#piece.indexOf(lineBreak, from);
    return at === -1 ? Infinity : at;
  }
}

/** Code points from one index to another. */
function codePoints(text: string, from: number, to: number): number {
  let count = to - from;
  for (let at = from; at < to; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count -= 1;
  return count;
}
