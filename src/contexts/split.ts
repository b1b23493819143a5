/**
 * Cuts a text into chunks of at most `size` characters, as it arrives piece by piece. Characters are code points. A chunk
 * ends at the best place that its size reaches: `markdown` before a heading, else like `paragraphs` after a blank line, else
 * like `lines` after a line, else within a line.
 */
import type { Split } from "./types.ts";

/** Code points; `to` is exclusive. */
export type Chunk = { from: number; to: number };

/** Places where a chunk may end, the best last. */
const LEVELS = { chars: 0, lines: 1, paragraphs: 2, markdown: 3 } as const;

/** The beginning of a line, and how good a place it is to end a chunk. */
type LineStart = { at: number; level: number };

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
  readonly #found: (chunk: Chunk) => void;
  /** The chunk that grows begins here; the one before it ended at `#ended`. */
  #from = 0;
  #ended = 0;
  /** Where the text so far ends. */
  #at = 0;
  #lines: LineStart[] = [];
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
    this.#found = found;
  }

  /** Takes the next piece, which ends with a whole character. */
  push(piece: string): void {
    let from = 0;
    if (this.#afterReturn && piece.length > 0) {
      this.#afterReturn = false;
      if (piece.startsWith("\n")) {
        this.#add("\n", 1);
        from = 1;
      }
      this.#endLine();
    }
    while (from < piece.length) {
      const end = lineEnd(piece, from);
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
    if (this.#look.length < LOOK_CHARS) this.#look += text.slice(0, LOOK_CHARS);
    this.#isBlankLine &&= text.trim() === "";
    this.#at += chars;
  }

  #endLine(): void {
    this.#startLine();
    if (FENCE.test(this.#look)) this.#isFenced = !this.#isFenced;
    this.#afterBlank = this.#isBlankLine;
    this.#look = "";
    this.#isBlankLine = true;
    this.#lineFrom = this.#at;
    while (this.#at - this.#from > this.#size) this.#cut();
  }

  /** Notes the beginning of the line, now that its first characters are known. */
  #startLine(): void {
    if (this.#lineFrom === this.#at) return;
    const isHeading = !this.#isFenced && HEADING.test(this.#look);
    const isParagraph = this.#afterBlank && !this.#isBlankLine;
    const level = isHeading ? LEVELS.markdown : isParagraph ? LEVELS.paragraphs : LEVELS.lines;
    this.#lines.push({ at: this.#lineFrom, level: Math.min(level, this.#levelMax) });
  }

  /** Ends the chunk at its best place. */
  #cut(): void {
    const most = this.#from + this.#size;
    let best: LineStart | null = null;
    for (const line of this.#lines) {
      if (line.at > most) break;
      if (line.at > this.#ended && line.at > this.#from && line.level >= (best?.level ?? 0)) best = line;
    }
    if (best === null && this.#from < this.#ended && most <= this.#ended + this.#overlap) {
      // What the chunk repeats leaves too little room for the next line: it repeats nothing.
      if (this.#hasLineWithin(this.#ended, this.#ended + this.#size)) {
        this.#from = this.#ended;
        return;
      }
    }
    const to = best?.at ?? most;
    this.#found({ from: this.#from, to });
    this.#ended = to;
    this.#from = this.#nextFrom(to, best !== null);
    // A first line is kept: the next chunk may begin within it.
    const kept = this.#lines.findIndex(({ at }) => at >= this.#from);
    this.#lines = kept === -1 ? [] : this.#lines.slice(kept);
  }

  #hasLineWithin(from: number, to: number): boolean {
    return this.#lines.some(({ at }) => at > from && at <= to) || this.#at <= to;
  }

  /** Where the next chunk begins: whole lines are repeated where the chunk ended with one. */
  #nextFrom(to: number, isAtLine: boolean): number {
    if (this.#overlap === 0) return to;
    if (!isAtLine) return Math.max(this.#from + 1, to - this.#overlap);
    const repeated = this.#lines.find(({ at }) => at >= to - this.#overlap && at > this.#from && at < to);
    return repeated?.at ?? to;
  }
}

/** The end of the line that begins at `from`, behind its line break; null = it does not end in this piece. */
function lineEnd(piece: string, from: number): number | null {
  const feed = piece.indexOf("\n", from);
  const carriage = piece.indexOf("\r", from);
  if (feed === -1 && carriage === -1) return null;
  if (carriage === -1 || (feed !== -1 && feed < carriage)) return feed + 1;
  return carriage + (piece[carriage + 1] === "\n" ? 2 : 1);
}

/** Code points from one index to another. */
function codePoints(text: string, from: number, to: number): number {
  let count = to - from;
  for (let at = from; at < to; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count -= 1;
  return count;
}
