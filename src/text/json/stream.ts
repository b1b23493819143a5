/**
 * Observes a JSON text that arrives in chunks, and reports where the values of watched members begin and end. Nothing is
 * kept but the position: nesting is a counter, so any depth costs the same, and the values are skipped. It is strict about
 * the form of the objects that it reads, and blind to faults inside the values that it skips.
 */
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  closingQuote,
  COLON,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  ValueSkipper,
} from "./grammar.ts";
import { keyAt } from "./key.ts";

/** Which members are reported. Those of the first object in a list are named with a prefix, so that no two share a name. */
export type WatchedMembers = {
  names: ReadonlySet<string>;
  /** The top-level list whose first object is read too, and the prefix of its members' names, such as `choice.`. */
  firstOf: { list: string; prefix: string };
};

/** Receives values. Indexes are in the chunk that is being fed; a value that begins in one chunk may end in a later one. */
export type MemberSink = {
  /** The value of a watched member, or the list, begins. */
  begins: (name: string, at: number) => void;
  /** The latest value, watched or not, has ended before this index. */
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
  /** Before the first element of the list. */
  | "first element"
  | "in value"
  | "after value"
  /** Behind the object. */
  | "closed"
  /** The text is not a JSON object: nothing more is read. */
  | "faulty";

/** The scanner of one text. */
export class MemberScanner {
  readonly #watched: WatchedMembers;
  readonly #sink: MemberSink;
  #state: State = "start";
  /** 1 in the top-level object, 2 in the first object of the list. */
  #level = 1;
  readonly #skipper = new ValueSkipper();
  /** 1 if the next chunk's first byte is already read, because a backslash ended the last one. */
  #bytesAhead = 0;
  readonly #key = new KeyReader();
  /** The watched name whose value comes next, or came last. */
  #name: string | null = null;

  constructor(watched: WatchedMembers, sink: MemberSink) {
    this.#watched = watched;
    this.#sink = sink;
  }

  /** Whether the object has ended and nothing but white space came behind it. */
  get isClosed(): boolean {
    return this.#state === "closed";
  }

  feed(chunk: Uint8Array): void {
    let at = this.#bytesAhead;
    while (at < chunk.length) at = this.#step(chunk, at);
    this.#bytesAhead = at - chunk.length;
    if (this.#state === "key") this.#key.carry(chunk);
  }

  /** Reads from `at` to the next change of state, or to the end of the chunk; returns the index it reached. */
  #step(chunk: Uint8Array, at: number): number {
    switch (this.#state) {
      case "key":
        return this.#readKey(chunk, at);
      case "in value": {
        const end = this.#skipper.skip(chunk, at);
        if (!this.#skipper.isOpen) this.#endValue(end);
        return end;
      }
      case "faulty":
        return chunk.length;
      default: {
        const next = skipSpace(chunk, at);
        return next === chunk.length ? next : this.#mark(chunk, next);
      }
    }
  }

  /** Reads one byte of the object's own form, between keys and values. */
  #mark(chunk: Uint8Array, at: number): number {
    const byte = chunk[at];
    switch (this.#state) {
      case "start":
        this.#state = byte === OPEN_OBJECT ? "first key" : "faulty";
        return at + 1;
      case "first key":
        return byte === CLOSE_OBJECT ? this.#close(at) : this.#openKey(byte, at);
      case "next key":
        return this.#openKey(byte, at);
      case "colon":
        this.#state = byte === COLON ? "value" : "faulty";
        return at + 1;
      case "value":
        return this.#openValue(byte, at);
      case "first element":
        // An element that is not an object is skipped with the rest; so is the bracket that closes an empty list.
        if (byte !== OPEN_OBJECT) return this.#skipRest(at);
        this.#level = 2;
        this.#state = "first key";
        return at + 1;
      case "after value":
        if (byte === CLOSE_OBJECT) return this.#close(at);
        this.#state = byte === COMMA ? "next key" : "faulty";
        return at + 1;
      default:
        this.#state = "faulty";
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

  /** Skips the rest of the list, whose bracket is open. */
  #skipRest(at: number): number {
    this.#state = "in value";
    this.#skipper.open(OPEN_ARRAY);
    return at;
  }

  #openKey(byte: number | undefined, at: number): number {
    this.#state = byte === QUOTE ? "key" : "faulty";
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
    const { names, firstOf } = this.#watched;
    if (this.#level === 2) return names.has(firstOf.prefix + name) ? firstOf.prefix + name : null;
    // A top-level member may have the name of one in the list.
    if (name.startsWith(firstOf.prefix)) return null;
    return names.has(name) || name === firstOf.list ? name : null;
  }

  #openValue(byte: number | undefined, at: number): number {
    if (byte === COMMA || byte === COLON || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      this.#state = "faulty";
      return at;
    }
    if (this.#name !== null) this.#sink.begins(this.#name, at);
    if (byte === OPEN_ARRAY && this.#name === this.#watched.firstOf.list) {
      this.#state = "first element";
      return at + 1;
    }
    this.#state = "in value";
    this.#skipper.open(byte);
    return at + 1;
  }

  #endValue(at: number): void {
    this.#state = "after value";
    this.#sink.ends(at);
  }
}

/** Longest key that may be watched, bytes: 21 characters, if each is written as an escape. */
export const KEY_BYTES_MAX = 128;

/** Reads one key after another. Only a key that the border of two chunks cuts is copied. */
class KeyReader {
  /** The bytes of such a key. There is room for one byte too many, which shows that a key is too long. */
  readonly #cut = new Uint8Array(KEY_BYTES_MAX + 1);
  #cutBytes = 0;
  /** The index in this chunk at which the key continues. */
  #start = 0;

  /** A key begins, behind its quote. */
  open(at: number): void {
    this.#start = at;
  }

  /** The chunk ends within the key, which continues in the next chunk. */
  carry(chunk: Uint8Array): void {
    this.#copy(chunk, chunk.length);
    this.#start = 0;
  }

  /** The key that ends before `end`, escapes decoded; null if it is longer than `KEY_BYTES_MAX` or not a string. */
  close(chunk: Uint8Array, end: number): string | null {
    if (this.#cutBytes === 0) return textAt(chunk, this.#start, end);
    this.#copy(chunk, end);
    const key = textAt(this.#cut, 0, this.#cutBytes);
    this.#cutBytes = 0;
    return key;
  }

  #copy(chunk: Uint8Array, end: number): void {
    const room = this.#cut.length - this.#cutBytes;
    const more = chunk.subarray(this.#start, Math.min(end, this.#start + room));
    this.#cut.set(more, this.#cutBytes);
    this.#cutBytes += more.length;
  }
}

function textAt(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start > KEY_BYTES_MAX) return null;
  try {
    return keyAt(bytes, start, end);
  } catch {
    return null;
  }
}
