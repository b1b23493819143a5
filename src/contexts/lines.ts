/**
 * The lines of a text, as splits see them: how long each is, and how good a place its beginning is to end a chunk. They say where any chunk
 * ends, so that a text is read once, however many ways there are to cut it.
 */
import { TEXT_LINES_BYTES_MAX } from "../limits.ts";

/** How good a place the beginning of a line is to end a chunk, the best last. Within a line is the worst. */
export const LEVELS = { chars: 0, lines: 1, paragraphs: 2, markdown: 3 } as const;

/** The levels and lengths of all lines in turn: a byte for a line of less than 32 characters, two for one of less than 4,096. */
export type TextLines = { packed: Uint8Array; chars: number };

const LEVEL_SHIFT = 6;
/** The first byte of a line has its level, whether more bytes follow, and five bits of its length; each further one has seven bits. */
const FIRST = { more: 0x20, bits: 5 } as const;
const FURTHER = { more: 0x80, bits: 7 } as const;

/** Writes the lines of a text in their order. */
export class LineWriter {
  #packed = new Uint8Array(1024);
  #length = 0;
  #chars = 0;

  /** False if the text has too many lines to keep them. */
  add(level: number, chars: number): boolean {
    // A length has at most 32 bits: five bytes.
    if (this.#length + 5 > this.#packed.length && !this.#grow()) return false;
    this.#chars += chars;
    let rest = chars >> FIRST.bits;
    let byte = (level << LEVEL_SHIFT) | (chars & (FIRST.more - 1)) | (rest > 0 ? FIRST.more : 0);
    for (;;) {
      this.#packed[this.#length++] = byte;
      if (rest === 0) return true;
      byte = rest & (FURTHER.more - 1);
      rest >>= FURTHER.bits;
      if (rest > 0) byte |= FURTHER.more;
    }
  }

  lines(): TextLines {
    return { packed: this.#packed.slice(0, this.#length), chars: this.#chars };
  }

  #grow(): boolean {
    const bytes = Math.min(this.#packed.length * 2, TEXT_LINES_BYTES_MAX);
    if (bytes === this.#packed.length) return false;
    const grown = new Uint8Array(bytes);
    grown.set(this.#packed);
    this.#packed = grown;
    return true;
  }
}

/** Goes through the lines of a text, from the first to the last. */
export class LineCursor {
  readonly #packed: Uint8Array;
  #next = 0;
  #end = 0;
  /** Where the line begins; null = behind the last line. */
  at: number | null = null;
  level = 0;

  constructor({ packed }: TextLines) {
    this.#packed = packed;
    this.next();
  }

  /** Goes to the next line. */
  next(): void {
    const packed = this.#packed;
    const first = packed[this.#next];
    if (first === undefined) {
      this.at = null;
      return;
    }
    this.#next += 1;
    this.at = this.#end;
    this.level = first >> LEVEL_SHIFT;
    let chars = first & (FIRST.more - 1);
    if ((first & FIRST.more) !== 0) {
      for (let shift = FIRST.bits; ; shift += FURTHER.bits) {
        const byte = packed[this.#next++] ?? 0;
        chars |= (byte & (FURTHER.more - 1)) << shift;
        if ((byte & FURTHER.more) === 0) break;
      }
    }
    this.#end += chars;
  }
}
