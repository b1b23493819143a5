/** Longest line that is kept whole, UTF-16 units: above the largest request, and so above any client's own event. */
export const LINE_CHARS_MAX = 64 * 1024 * 1024;

/** Cuts a byte stream into lines that end with LF, CR or CRLF, wherever the chunks' borders fall. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #charsMax: number;
  #begun = "";
  #afterCr = false;

  /** @param charsMax What a line has beyond this is dropped: what is left of JSON then fails to parse. */
  constructor(charsMax: number = LINE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** The lines that this chunk ends, without their ends. */
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

  /** The line that the stream's end has cut off; "" if there is none. */
  rest(): string {
    return this.#begun;
  }
}
