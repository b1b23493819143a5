/**
 * Reads `multipart/form-data` as it arrives: parts come in the order in which they were sent, and a file's bytes are
 * returned while they arrive. One chunk of the body is in memory, never a file; nothing is read before it is wanted.
 */
import type { Reason } from "../errors.ts";
import { FORM_FIELD_BYTES_MAX, FORM_HEADER_BYTES_MAX, FORM_PARTS_MAX, FORM_REST_BYTES_MAX } from "../limits.ts";
import { Delimiter } from "./delimiter.ts";
import { parsePartHeader } from "./part-header.ts";
import type { PartHeader } from "./part-header.ts";
import type { ByteSource, Read } from "./source.ts";

/** The next part of a form. After `end` or `fault` every further read returns the same. */
export type FormPart =
  | { kind: "field"; name: string; value: string }
  | ({ kind: "file"; body: ByteSource } & PartHeader)
  | { kind: "end" }
  | { kind: "fault"; reason: Reason };

export type FormOptions = {
  boundary: string;
  /** Names of the parts that are files, with or without a file name; all others are fields, which are read whole. */
  files: readonly string[];
};

type Fault = { kind: "fault"; reason: Reason };

const CRLF = new Uint8Array([13, 10]);
const DASH = 45;

export class FormReader {
  readonly #source: ByteSource;
  readonly #files: ReadonlySet<string>;
  readonly #delimiter: Delimiter;
  /** Bytes that have arrived and are not read yet. The first delimiter may lack its CRLF, so the window begins with one. */
  #window: Uint8Array = CRLF;
  /** Numbered from 1; 0 = the bytes before the first delimiter. */
  #part = 0;
  #isInContent = true;
  #last: { kind: "end" } | Fault | null = null;

  constructor(source: ByteSource, { boundary, files }: FormOptions) {
    this.#source = source;
    this.#files = new Set(files);
    this.#delimiter = new Delimiter(boundary);
  }

  /** Continues with the next part. The rest of the file before it is skipped; its body must not be read any more. */
  async next(): Promise<FormPart> {
    if (this.#last !== null) return this.#last;
    const skipped = await this.#skipContent();
    if (skipped !== null) return skipped;
    const boundary = await this.#fillTo(2);
    if (boundary !== null) return boundary;
    if (this.#window[0] === DASH && this.#window[1] === DASH) return this.#end();
    if (this.#part === FORM_PARTS_MAX) return this.#refuse(`the form has more than ${FORM_PARTS_MAX} parts`);
    this.#part += 1;
    const header = await this.#header();
    if ("kind" in header) return header;
    this.#isInContent = true;
    if (!this.#files.has(header.name)) return await this.#field(header.name);
    const part = this.#part;
    return { kind: "file", ...header, body: { read: () => this.#readFile(part) } };
  }

  async #readFile(part: number): Promise<Read> {
    if (part !== this.#part) throw new Error("a part of a form was read after next() was called");
    return await this.#content();
  }

  /** Content of the current part, up to the delimiter, which is consumed. */
  async #content(): Promise<Read> {
    for (;;) {
      if (this.#last?.kind === "fault") return this.#last;
      if (!this.#isInContent) return { kind: "end" };
      const { contentBytes, isFound } = this.#delimiter.cut(this.#window);
      if (contentBytes > 0) return { kind: "bytes", bytes: this.#take(contentBytes) };
      if (isFound) {
        this.#take(this.#delimiter.bytes.length);
        this.#isInContent = false;
      } else await this.#fill();
    }
  }

  async #skipContent(): Promise<Fault | null> {
    let bytes = 0;
    for (;;) {
      const read = await this.#content();
      if (read.kind === "fault") return read;
      if (read.kind === "end") return null;
      bytes += read.bytes.length;
      if (this.#part === 0 && bytes > FORM_REST_BYTES_MAX) {
        return this.#refuse("the form's first part does not begin: its boundary is not the one in the content-type");
      }
    }
  }

  async #field(name: string): Promise<FormPart> {
    const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
    let value = "";
    let bytes = 0;
    for (;;) {
      const read = await this.#content();
      if (read.kind === "fault") return read;
      if (read.kind === "end") return { kind: "field", name, value: value + decoder.decode() };
      bytes += read.bytes.length;
      if (bytes > FORM_FIELD_BYTES_MAX) {
        const what = `the form field "${name}"`;
        return this.#fail({ reason: "payload_too_large", what, bytesMax: FORM_FIELD_BYTES_MAX, param: name });
      }
      value += decoder.decode(read.bytes, { stream: true });
    }
  }

  /** The rest of the delimiter's line, the header lines, and the empty line that ends them. */
  async #header(): Promise<PartHeader | Fault> {
    for (let from = 0; ;) {
      const end = emptyLine(this.#window, from);
      if ((end ?? this.#window.length) > FORM_HEADER_BYTES_MAX) {
        return this.#refuse(`the header of the form's part ${this.#part} has over ${FORM_HEADER_BYTES_MAX} bytes`);
      }
      if (end !== null) {
        // A header without lines still has the line break of the delimiter before its empty line.
        const block = new TextDecoder().decode(this.#take(end + 2 * CRLF.length).subarray(0, end + CRLF.length));
        const [, lines] = /^[ \t]*\r\n([^]*)\r\n$/.exec(block) ?? [];
        return (
          (lines === undefined ? null : parsePartHeader(lines)) ??
          this.#refuse(`the form's part ${this.#part} is not the field of a form: its header gives it no name`)
        );
      }
      from = Math.max(0, this.#window.length - 2 * CRLF.length + 1);
      const fault = await this.#fill();
      if (fault !== null) return fault;
    }
  }

  /** Reads the bytes after the last delimiter, up to a bound, so that the sender can finish. */
  async #end(): Promise<FormPart> {
    for (let bytes = this.#window.length; bytes <= FORM_REST_BYTES_MAX;) {
      const read = await this.#source.read();
      if (read.kind !== "bytes") break;
      bytes += read.bytes.length;
    }
    this.#last = { kind: "end" };
    return this.#last;
  }

  #take(bytes: number): Uint8Array {
    const taken = this.#window.subarray(0, bytes);
    this.#window = this.#window.subarray(bytes);
    return taken;
  }

  async #fillTo(bytes: number): Promise<Fault | null> {
    let fault: Fault | null = null;
    while (fault === null && this.#window.length < bytes) fault = await this.#fill();
    return fault;
  }

  /** Appends a chunk to the window, which has only a few bytes left if the chunk is large. */
  async #fill(): Promise<Fault | null> {
    const read = await this.#source.read();
    if (read.kind === "fault") return this.#fail(read.reason);
    if (read.kind === "end") return this.#refuse("the form is cut off: it ends before its last boundary");
    const left = this.#window;
    if (left.length === 0) this.#window = read.bytes;
    else {
      this.#window = new Uint8Array(left.length + read.bytes.length);
      this.#window.set(left);
      this.#window.set(read.bytes, left.length);
    }
    return null;
  }

  #refuse(message: string): Fault {
    return this.#fail({ reason: "invalid_request", message, param: null });
  }

  #fail(reason: Reason): Fault {
    this.#last = { kind: "fault", reason };
    return this.#last;
  }
}

/** The index of the line break before an empty line; null if none has arrived. */
function emptyLine(window: Uint8Array, from: number): number | null {
  for (let at = window.indexOf(CRLF[0] ?? 0, from); at !== -1; at = window.indexOf(CRLF[0] ?? 0, at + 1)) {
    if (window[at + 1] === 10 && window[at + 2] === 13 && window[at + 3] === 10) return at;
  }
  return null;
}
