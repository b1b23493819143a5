/** Longest line that is not cut, UTF-16 units: above the largest request, and so above any client event. */
export const LINE_CHARS_MAX = 64 * 1024 * 1024;

/** Splits a byte stream into lines that end with LF, CR or CRLF, wherever chunks are cut. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #charsMax: number;
  #begun = "";
  #afterCr = false;

  /** @param charsMax The rest of a longer line is dropped; cut JSON then fails to parse. */
  constructor(charsMax: number = LINE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** The lines that end in this chunk, without their line ends. */
  push(chunk: Uint8Array): string[] {
    let text = this.#decoder.decode(chunk, { stream: true });
    if (text === "") return [];
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    this.#afterCr = text.endsWith("\r");
    const [first = "", ...others] = text.split(/\r\n|\r|\n/);
    const lines = [(this.#begun + first).slice(0, this.#charsMax), ...others];
    this.#begun = lines.pop() ?? "";
    return lines;
  }

  /** The last line, which has no line end; "" if there is none. */
  rest(): string {
    return this.#begun;
  }
}
