/**
 * Follows a JSON text that comes in chunks, and tells where the values of watched members begin and end. Nothing is kept
 * but the place: a count of brackets stands for the nesting, so any depth costs the same, and what is not watched is
 * skipped. Strict about the form of the objects it reads, blind to faults inside what it skips.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipSpace } from "./json-bytes.ts";
import { CHOICE_PREFIX } from "./json-answer-fields.ts";
import { KeyReader } from "./json-tap-key.ts";
import { closingQuote, ValueSkipper } from "./json-tap-skip.ts";

/** Hears of values; places are in the chunk that is being fed, and what begins in one may end in a later one. */
export type MemberSink = {
  /** The value of a watched member begins. */
  begins: (name: string, at: number) => void;
  /** The value that began last, watched or not, has ended before this place. */
  ends: (at: number) => void;
};

type State =
  /** Before the object. */
  | "start"
  /** Before a key, where an object may also end. */
  | "first key"
  | "next key"
  | "key"
  | "colon"
  | "value"
  /** Before the first of the choices. */
  | "first choice"
  | "inside"
  | "after value"
  /** Behind the object. */
  | "closed"
  /** This is no JSON object: nothing more is read. */
  | "lost";

/** The scanner of one text. `watched`: names at the top level; with `choices` also, behind a prefix, those of the first. */
export class MemberScanner {
  readonly #watched: ReadonlySet<string>;
  readonly #sink: MemberSink;
  #state: State = "start";
  /** 1 in the top-level object, 2 in the first choice. */
  #level = 1;
  readonly #skipper = new ValueSkipper();
  /** Bytes of the next chunk that are already read: the one behind a backslash at the end of the last. */
  #ahead = 0;
  readonly #key = new KeyReader();
  /** The watched name whose value comes next, or came last. */
  #name: string | null = null;

  constructor(watched: ReadonlySet<string>, sink: MemberSink) {
    this.#watched = watched;
    this.#sink = sink;
  }

  /** Whether the object has ended and nothing but white space came behind it. */
  get isClosed(): boolean {
    return this.#state === "closed";
  }

  feed(chunk: Uint8Array): void {
    let at = this.#ahead;
    while (at < chunk.length) at = this.#step(chunk, at);
    this.#ahead = at - chunk.length;
    if (this.#state === "key") this.#key.carry(chunk);
  }

  /** Reads on from `at` to the next change of state, or to the end of the chunk; returns how far it came. */
  #step(chunk: Uint8Array, at: number): number {
    switch (this.#state) {
      case "key":
        return this.#readKey(chunk, at);
      case "inside": {
        const end = this.#skipper.skip(chunk, at);
        if (!this.#skipper.isOpen) this.#endValue(end);
        return end;
      }
      case "lost":
        return chunk.length;
      default: {
        const next = skipSpace(chunk, at);
        return next === chunk.length ? next : this.#mark(chunk, next);
      }
    }
  }

  /** Reads one byte that is no white space, where the form of the object is at stake. */
  #mark(chunk: Uint8Array, at: number): number {
    const byte = chunk[at];
    switch (this.#state) {
      case "start":
        this.#state = byte === OPEN_OBJECT ? "first key" : "lost";
        return at + 1;
      case "first key":
        return byte === CLOSE_OBJECT ? this.#close(at) : this.#openKey(byte, at);
      case "next key":
        return this.#openKey(byte, at);
      case "colon":
        this.#state = byte === COLON ? "value" : "lost";
        return at + 1;
      case "value":
        return this.#openValue(byte, at);
      case "first choice":
        // What is no object is skipped with the rest; so is the bracket that ends an empty list.
        if (byte !== OPEN_OBJECT) return this.#skipRest(at);
        this.#level = 2;
        this.#state = "first key";
        return at + 1;
      case "after value":
        if (byte === CLOSE_OBJECT) return this.#close(at);
        this.#state = byte === COMMA ? "next key" : "lost";
        return at + 1;
      default:
        this.#state = "lost";
        return at;
    }
  }

  #close(at: number): number {
    if (this.#level === 2) {
      this.#level = 1;
      return this.#skipRest(at + 1);
    }
    this.#state = "closed";
    return at + 1;
  }

  /** Skips what is left of the choices, whose bracket is open. */
  #skipRest(at: number): number {
    this.#state = "inside";
    this.#skipper.open(OPEN_ARRAY);
    return at;
  }

  #openKey(byte: number | undefined, at: number): number {
    this.#state = byte === QUOTE ? "key" : "lost";
    this.#key.open(at + 1);
    return at + 1;
  }

  #readKey(chunk: Uint8Array, at: number): number {
    const end = closingQuote(chunk, at);
    if (end >= chunk.length) return end;
    const name = this.#key.close(chunk, end);
    this.#name = name === null ? null : this.#watchedName(name);
    this.#state = "colon";
    return end + 1;
  }

  #watchedName(name: string): string | null {
    // A top-level member may be named as if it stood in the first choice.
    if (this.#level === 1 && name.startsWith(CHOICE_PREFIX)) return null;
    const path = this.#level === 1 ? name : CHOICE_PREFIX + name;
    return this.#watched.has(path) ? path : null;
  }

  #openValue(byte: number | undefined, at: number): number {
    if (byte === COMMA || byte === COLON || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      this.#state = "lost";
      return at;
    }
    if (this.#name !== null) this.#sink.begins(this.#name, at);
    if (byte === OPEN_ARRAY && this.#name === "choices") {
      this.#state = "first choice";
      return at + 1;
    }
    this.#state = "inside";
    this.#skipper.open(byte);
    return at + 1;
  }

  #endValue(at: number): void {
    this.#state = "after value";
    this.#sink.ends(at);
  }
}
