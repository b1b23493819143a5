/**
 * Finds the lines of a text as it arrives piece by piece. Characters are code points. Lines end with LF, CR LF or CR.
 */
import { LEVELS, LineWriter, type TextLines } from "./lines.ts";

const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const FENCE = /^ {0,3}(?:```|~~~)/;
/** Characters of a line that are looked at to know what it is. */
const LOOK_CHARS = 64;

/** Reads one text. */
export class LineReader {
  /** Whether it matters what a line is: all are alike for a split by lines. */
  readonly #looks: boolean;
  readonly #lines = new LineWriter();
  #areTooMany = false;
  /** Lines that have ended. */
  #ends = 0;
  /** The line that has not ended: its first characters, and the code points of it so far. */
  #look = "";
  #lineChars = 0;
  #isBlankLine = true;
  #afterBlank = false;
  #isFenced = false;
  /** The last character so far is a carriage return, which a line feed may follow. */
  #afterReturn = false;

  constructor(looks: boolean) {
    this.#looks = looks;
  }

  /** Takes the next piece, which ends with a whole character. Returns how many lines ended in it: each is work of its own. */
  push(piece: string): number {
    const linesBefore = this.#ends;
    this.#take(piece);
    return this.#ends - linesBefore;
  }

  /** The whole text has arrived. Null = it has too many lines. */
  end(): TextLines | null {
    this.#noteLine();
    return this.#areTooMany ? null : this.#lines.lines();
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

  /** Adds characters to the line. */
  #add(text: string, chars: number): void {
    this.#lineChars += chars;
    if (!this.#looks) return;
    if (this.#look.length < LOOK_CHARS) this.#look += text.slice(0, LOOK_CHARS);
    this.#isBlankLine &&= text.trim() === "";
  }

  #endLine(): void {
    this.#ends += 1;
    this.#noteLine();
    if (this.#looks && FENCE.test(this.#look)) this.#isFenced = !this.#isFenced;
    this.#afterBlank = this.#isBlankLine;
    this.#look = "";
    this.#isBlankLine = true;
    this.#lineChars = 0;
  }

  /** Notes the line, now that its characters are known. */
  #noteLine(): void {
    if (this.#lineChars === 0) return;
    const level = this.#looks ? this.#levelOfLine() : LEVELS.lines;
    this.#areTooMany ||= !this.#lines.add(level, this.#lineChars);
  }

  #levelOfLine(): number {
    if (!this.#isFenced && HEADING.test(this.#look)) return LEVELS.markdown;
    return this.#afterBlank && !this.#isBlankLine ? LEVELS.paragraphs : LEVELS.lines;
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
