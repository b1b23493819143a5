/**
 * Cuts a text into chunks of at most `size` characters. Characters are code points. A chunk ends at the best place that its size
 * reaches: `markdown` before a heading, else like `paragraphs` after a blank line, else like `lines` after a line, else within a line.
 */
import { SPLIT_SLICE_LINES } from "../limits.ts";
import type { Sliced } from "../text/bytes/slices.ts";
import { LEVELS, LineCursor, type TextLines } from "./lines.ts";
import type { Split } from "./types.ts";

/** Code points; `to` is exclusive. */
export type Chunk = { from: number; to: number };

/** The chunks of a text by characters, which its length decides. */
export function* chunksByChars(chars: number, { size, overlap }: Split): Generator<Chunk> {
  for (let from = 0; from < chars; from += size - overlap) {
    const to = Math.min(chars, from + size);
    yield { from, to };
    if (to === chars) return;
  }
}

/** Cuts one text at its lines, and reads none of it. */
export class LineSplit {
  readonly #size: number;
  readonly #overlap: number;
  readonly #levelMax: number;
  readonly #chars: number;
  readonly #found: (chunk: Chunk) => void;
  /** The chunk begins here; the one before it ended at `#ended`. Neither ever falls, so each cursor goes through the lines once. */
  #from = 0;
  #ended = 0;
  /** At the first line behind the end of the chunk, at the one that the next chunk begins with, and at the one behind `#ended`. */
  readonly #reached: LineCursor;
  readonly #repeated: LineCursor;
  readonly #following: LineCursor;
  /** Of each level, the last beginning of a line that the chunk reaches. */
  readonly #best: number[] = Object.values(LEVELS).map(() => 0);
  /** Lines that were passed since the last pause. */
  #passed = 0;

  constructor(lines: TextLines, { by, size, overlap }: Split, found: (chunk: Chunk) => void) {
    this.#size = size;
    this.#overlap = overlap;
    this.#levelMax = LEVELS[by];
    this.#chars = lines.chars;
    this.#found = found;
    this.#reached = new LineCursor(lines);
    this.#repeated = new LineCursor(lines);
    this.#following = new LineCursor(lines);
  }

  /** Finds all chunks, in slices. */
  *chunks(): Sliced<void> {
    while (this.#chars - this.#from > this.#size) yield* this.#cut();
    if (this.#chars > this.#ended) this.#found({ from: this.#from, to: this.#chars });
  }

  /** Ends the chunk at its best place. */
  *#cut(): Sliced<void> {
    const most = this.#from + this.#size;
    const best = yield* this.#bestUpTo(most);
    if (best === null && this.#from < this.#ended && most <= this.#ended + this.#overlap) {
      // What the chunk repeats leaves too little room for the next line: it repeats nothing.
      if (yield* this.#hasLineWithin(this.#ended, this.#ended + this.#size)) {
        this.#from = this.#ended;
        return;
      }
    }
    const to = best ?? most;
    this.#found({ from: this.#from, to });
    this.#ended = to;
    this.#from = yield* this.#nextFrom(to, best !== null);
  }

  /** The best place to end a chunk: of equally good ones the last. */
  *#bestUpTo(most: number): Sliced<number | null> {
    const lines = this.#reached;
    for (; lines.at !== null && lines.at <= most; lines.next()) {
      this.#best[Math.min(lines.level, this.#levelMax)] = lines.at;
      if (this.#isPauseDue()) yield;
    }
    const at = this.#best.findLast((each) => each > this.#ended && each > this.#from);
    return at ?? null;
  }

  /** Whether a line that begins behind `from` begins at `to` or before it, or the text ends there. */
  *#hasLineWithin(from: number, to: number): Sliced<boolean> {
    const next = yield* this.#firstFrom(this.#following, from + 1);
    return (next !== null && next <= to) || this.#chars <= to;
  }

  /** Where the next chunk begins: whole lines are repeated where the chunk ended with one. */
  *#nextFrom(to: number, isAtLine: boolean): Sliced<number> {
    if (this.#overlap === 0) return to;
    if (!isAtLine) return Math.max(this.#from + 1, to - this.#overlap);
    const repeated = yield* this.#firstFrom(this.#repeated, Math.max(to - this.#overlap, this.#from + 1));
    return repeated === null || repeated >= to ? to : repeated;
  }

  /** The first beginning of a line at a place or behind it; null = there is none. */
  *#firstFrom(lines: LineCursor, place: number): Sliced<number | null> {
    for (; lines.at !== null && lines.at < place; lines.next()) if (this.#isPauseDue()) yield;
    return lines.at;
  }

  #isPauseDue(): boolean {
    this.#passed += 1;
    if (this.#passed < SPLIT_SLICE_LINES) return false;
    this.#passed = 0;
    return true;
  }
}
