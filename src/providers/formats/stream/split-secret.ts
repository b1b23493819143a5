/**
 * Blanks a secret whose characters are spread over several events of a stream: a provider that quotes its key in an answer writes it word
 * by word, as it writes any text. A client joins the strings of one field, so the field is followed from event to event. What the field
 * has is searched by the one filter for secrets, so a key in JSON inside of the field, such as the arguments of a tool's call, is found
 * with its escapes.
 *
 * Most events end in no character of a secret, and are not read. One that ends in its first few is read only if the next event of its field
 * may go on with them: many words end in the first letter of a key.
 *
 * An event is held back only while a field ends in what may be the beginning of a secret, of at least HELD_FROM_CHARS characters: words
 * end in fewer all the time, and the first characters of a key are the same for everybody. All other events leave as they came. What is
 * still only a beginning when it has to leave is blanked if it has more characters than all keys of a provider share.
 */
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";
import { fieldsOf, hasData } from "../../../text/sse/fields.ts";
import { EventSplitter } from "../../../text/sse/splitter.ts";
import { LastText } from "./last-text.ts";

/** Characters of a secret that may leave before it is known to be one: `sk-`. */
const HELD_FROM_CHARS = 4;
/** Most events that wait for one field to go on. After so many they leave; what follows of the secret is still blanked. */
const HELD_EVENTS_MAX = 64;
/** Most bytes of events that wait. */
const HELD_BYTES_MAX = 1024 * 1024;
/** A beginning of so many characters, or of half of the secret, is told to nobody: the longest that providers give all keys has 13. */
const SHOWN_CHARS_MAX = 16;
/** Fields that are followed at once: more than an answer has choices and calls of tools. */
const FIELDS_MAX = 1_024;

/** Names that tell apart what is written in turns: choices, parts, calls of tools. */
const INDEXES = ["index", "output_index", "content_index", "item_id"];

/** The ends of these names as members: behind a string, two events that are equal before it may be of two fields. */
const INDEX_NAME_ENDS = ['index"', '"item_id"'];
const NUMBER_NAME = '"sequence_number"';
const SEQUENCE_NUMBER = /"sequence_number": ?\d+/;

const NONE: readonly number[] = [];
const QUOTE = '"';
const BACKSLASH = "\\";
/** An escape of a character of a secret, or what may become one in the next string of its field. */
const ESCAPED = /\\(?:u00[2-7]|\/|\\(?:u0{0,2})?")/;

const encoder = new TextEncoder();
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** An event on its way. `json`: its data, in which secrets are blanked. */
type Passing = { bytes: Uint8Array; json: unknown; isEdited: boolean };
/** A string in an event's data. */
type Field = { event: Passing; key: string; owner: Record<string, unknown>; name: string };
/** The last characters of a field that may belong to a secret. */
type Part = Field & { chars: number };
/** What a field ends in, which may be the beginning of a secret, as it is written; and the events that have it. */
type Begun = { text: string; parts: Part[] };

/**
 * An event that has left unread. One of its strings, from an index of its text on, ends in the first characters of secrets; `next` are the
 * characters that would go on with those, and `head` is the text before the string, without the number of its event.
 */
type Unread = { text: string; at: number; next: string; head: string };

/** Where the first secret in a text is, if it is whole, and how many characters at the text's end may be the beginning of one. */
export type Found = { start: number; end: number; tail: number };

/** Finds a secret in a text, in plain or with JSON escapes. `start` and `end` are infinite if it is not there as a whole. */
export type Look = (secret: string, text: string) => Found;

/** The fields of one stream, for all secrets of its upstream. */
export class SplitSecrets {
  readonly #secrets: readonly string[];
  readonly #blank: string;
  readonly #look: Look;
  readonly #texts: LastText;
  /** Matches every text in which a string ends in the first characters of a secret. */
  readonly #mayBegin: RegExp;
  /** Whether a string of an answer may end inside of a secret for a search that reads quotes only. */
  readonly #hasQuote: boolean;
  readonly #splitter = new EventSplitter();
  /** By secret, then by field. */
  readonly #begun: Map<string, Begun>[];
  #unread: Unread | null = null;
  #held: Passing[] = [];
  #heldBytes = 0;
  /** Events that have come since a beginning has grown. */
  #waited = 0;

  /** `blank` stands in place of a secret. `texts` is shared with those who read the same bytes before; by default, nobody does. */
  constructor(secrets: readonly string[], options: { blank: string; look: Look; texts?: LastText }) {
    const { blank, look, texts = new LastText() } = options;
    this.#secrets = secrets;
    this.#blank = blank;
    this.#look = look;
    this.#texts = texts;
    this.#mayBegin = mayBeginOf(secrets);
    this.#hasQuote = secrets.some((secret) => secret.includes(QUOTE));
    this.#begun = secrets.map(() => new Map<string, Begun>());
  }

  /** Takes bytes of the stream; returns what may leave now. */
  feed(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
    const out: Uint8Array[] = [];
    for (const piece of pieces) {
      const isFree = this.#isIdle && endsInBlankLine(piece) && this.#beginningIn(this.#texts.of(piece)) === null;
      if (isFree && pieces.length === 1) return pieces;
      if (isFree) out.push(piece);
      else if (this.#splitter.isBetweenEvents && isOneEvent(this.#texts.of(piece))) this.#take(piece, true, out);
      else for (const part of this.#splitter.feed(piece)) this.#take(part.bytes, part.kind === "event", out);
    }
    return out;
  }

  /** The stream has ended: whatever waits leaves. */
  end(): Uint8Array[] {
    const out: Uint8Array[] = [];
    this.#giveUp();
    this.#release(out);
    const { bytes } = this.#splitter.rest();
    if (bytes.length > 0) out.push(bytes);
    return out;
  }

  /** Nothing is followed, and the next byte begins an event. */
  get #isIdle(): boolean {
    return (
      this.#splitter.isBetweenEvents && this.#held.length === 0 && this.#unread === null && !this.#followsSomething
    );
  }

  get #followsSomething(): boolean {
    return this.#begun.some(({ size }) => size > 0);
  }

  #take(bytes: Uint8Array, isEvent: boolean, out: Uint8Array[]): void {
    const event: Passing = { bytes, json: undefined, isEdited: false };
    if (isEvent) this.#read(event);
    if (this.#held.length === 0 && !this.#followsSomething) {
      out.push(event.isEdited ? rewritten(event) : bytes);
      return;
    }
    const mustHold = this.#begun.some((fields) =>
      [...fields.values()].some(({ text }) => text.length >= HELD_FROM_CHARS),
    );
    // A copy: the memory of its chunk may be used again.
    this.#held.push(mustHold ? Object.assign(event, { bytes: bytes.slice() }) : event);
    this.#heldBytes += bytes.length;
    this.#waited += 1;
    const isFull = this.#waited > HELD_EVENTS_MAX || this.#heldBytes > HELD_BYTES_MAX;
    if (mustHold && isFull) this.#giveUp();
    if (!mustHold || isFull) this.#release(out);
  }

  /** What was held leaves, whole or not: blanks what tells too much of a secret. What follows of it is blanked when it comes. */
  #giveUp(): void {
    for (const [at, fields] of this.#begun.entries()) {
      const { length } = this.#secrets[at] ?? "";
      for (const begun of fields.values()) {
        const isTelling = begun.text.length >= Math.min(SHOWN_CHARS_MAX, Math.ceil(length / 2));
        if (isTelling && begun.parts.length > 0) blankTails(begun.parts, begun.text.length, this.#blank);
        begun.parts = [];
      }
    }
  }

  #release(out: Uint8Array[]): void {
    for (const event of this.#held) out.push(event.isEdited ? rewritten(event) : event.bytes);
    this.#held = [];
    this.#heldBytes = 0;
    this.#waited = 0;
  }

  #read(event: Passing): void {
    const text = this.#texts.of(event.bytes);
    if (!hasData(text)) return;
    const before = this.#unread;
    this.#unread = null;
    if (before !== null && !breaksOff(before, text))
      this.#parse({ bytes: encoder.encode(before.text), json: undefined, isEdited: false });
    if (!this.#followsSomething) {
      const beginning = this.#beginningIn(text);
      if (beginning === null) return;
      if (beginning !== "many") {
        this.#unread = beginning;
        return;
      }
    }
    this.#parse(event);
  }

  #parse(event: Passing): void {
    const { data } = fieldsOf(event.bytes);
    event.json = data === null ? undefined : tryParse(utf8.decode(data));
    for (const field of stringsIn(event, event.json, "")) {
      for (const [at, secret] of this.#secrets.entries()) this.#follow(this.#begun[at], secret, field);
    }
  }

  /**
   * The string of a text that ends in the first few characters of a secret; null if there is none, "many" if there are several, or if one
   * ends in more characters, or it must be parsed to be known. Names of members do not count.
   */
  #beginningIn(text: string): Unread | "many" | null {
    if (this.#hasQuote || (text.includes(BACKSLASH) && ESCAPED.test(text))) return "many";
    if (!this.#mayBegin.test(text)) return null;
    let found: Unread | null = null;
    for (const quote of this.#quotesBehindBeginnings(text)) {
      if (text[quote + 1] === ":") continue;
      const at = text.lastIndexOf(QUOTE, quote - 1) + 1;
      const next = this.#nextAt(text, quote, at);
      if (next === "") continue;
      if (next === null || found !== null || mayNameIndex(text, quote)) return "many";
      found = { text, at, next, head: withoutNumber(text.slice(0, at)) };
    }
    return found;
  }

  /** Where a quote stands behind the first characters of a secret. First characters are rarer in an event than quotes. */
  #quotesBehindBeginnings(text: string): Set<number> | readonly number[] {
    let quotes: Set<number> | null = null;
    for (const secret of this.#secrets) {
      const first = secret[0] ?? QUOTE;
      for (let start = text.indexOf(first); start !== -1; start = text.indexOf(first, start + 1)) {
        let at = 1;
        while (at < secret.length && text[start + at] === secret[at]) at += 1;
        if (at < secret.length && text[start + at] === QUOTE) (quotes ??= new Set()).add(start + at);
      }
    }
    return quotes ?? NONE;
  }

  /** The characters that would go on with the secrets that have begun before an index; null if one has begun with too many to leave. */
  #nextAt(text: string, end: number, from: number): string | null {
    let next = "";
    for (const secret of this.#secrets) {
      const chars = beginningAt(text, end, secret, from);
      if (chars >= HELD_FROM_CHARS) return null;
      for (let count = chars; count > 0; count--)
        if (text.startsWith(secret.slice(0, count), end - count)) next += secret[count] ?? "";
    }
    return next;
  }

  /** Takes the next string of a field: blanks a secret that ends in it, and notes one that begins. */
  #follow(fields: Map<string, Begun> | undefined, secret: string, field: Field): void {
    if (fields === undefined) return;
    let { text: before, parts } = fields.get(field.key) ?? { text: "", parts: [] };
    let value = valueOf(field);
    if (before === "" && !value.includes(BACKSLASH) && beginningAt(value, value.length, secret) === 0) return;
    let found = this.#look(secret, `${before}${value}`);
    // One that is whole in its event is blanked as bytes.
    if (found.start < before.length) {
      blankTails(parts, before.length - found.start);
      value = `${this.#blank}${value.slice(found.end - before.length)}`;
      setValue(field, value);
      [before, parts] = ["", []];
      found = this.#look(secret, value);
    }
    const { tail: chars } = found;
    if (chars === 0 || (fields.size >= FIELDS_MAX && !fields.has(field.key))) {
      fields.delete(field.key);
      return;
    }
    if (chars > before.length) this.#waited = 0;
    const own = Math.min(chars, value.length);
    const kept = tailsOf(parts, chars - own);
    if (own > 0) kept.push({ ...field, chars: own });
    const whole = `${before}${value}`;
    fields.set(field.key, { text: whole.slice(whole.length - chars), parts: kept });
  }
}

/** Whether the next event writes something else into the field whose string ended in the beginning of a secret. */
function breaksOff({ at: start, next, head }: Unread, text: string): boolean {
  const isNumbered = head.length < start;
  const at = head.length + (isNumbered ? (SEQUENCE_NUMBER.exec(text)?.[0] ?? "").length : 0);
  const first = text[at];
  if (first === undefined || first === QUOTE || first === BACKSLASH || next.includes(first)) return false;
  // Without a number, a head that begins a text is all that stands there.
  const isOfField = isNumbered ? withoutNumber(text.slice(0, at)) === head : text.startsWith(head);
  return isOfField && !mayNameIndex(text, at);
}

function mayNameIndex(text: string, from: number): boolean {
  return INDEX_NAME_ENDS.some((end) => text.includes(end, from));
}

/** Events of one field differ in their numbers. */
function withoutNumber(head: string): string {
  return head.includes(NUMBER_NAME) ? head.replace(SEQUENCE_NUMBER, "") : head;
}

/** How many characters before an index, from another one on, are the beginning of a secret, the most of them; never the whole of it. */
function beginningAt(text: string, end: number, secret: string, from = 0): number {
  const first = secret[0];
  if (first === undefined) return 0;
  let start = text.indexOf(first, Math.max(from, end - secret.length + 1));
  while (start !== -1 && start < end) {
    if (text.startsWith(secret.slice(0, end - start), start)) return end - start;
    start = text.indexOf(first, start + 1);
  }
  return 0;
}

/** Every string in the data of an event, with a key that names its field in all events. */
function* stringsIn(event: Passing, value: unknown, path: string): Generator<Field> {
  if (Array.isArray(value)) {
    for (const each of value as unknown[]) yield* stringsIn(event, each, path);
    return;
  }
  if (!isRecord(value)) return;
  const place = INDEXES.map((name) => value[name])
    .filter((index) => typeof index === "number" || typeof index === "string")
    .join(",");
  for (const [name, each] of Object.entries(value)) {
    const key = `${path}/${place} ${name}`;
    if (typeof each === "string") yield { event, key, owner: value, name };
    else yield* stringsIn(event, each, key);
  }
}

function valueOf({ owner, name }: Field): string {
  const value = owner[name];
  return typeof value === "string" ? value : "";
}

function setValue({ event, owner, name }: Field, value: string): void {
  owner[name] = value;
  // A token of log probabilities is there in bytes, too.
  if (name === "token" && "bytes" in owner) owner["bytes"] = null;
  event.isEdited = true;
}

/** Removes the last characters of parts, so many in all. `instead`: what the first of them gets for it; default: nothing. */
function blankTails(parts: readonly Part[], chars: number, instead = ""): void {
  for (const [at, part] of tailsOf(parts, chars).entries()) {
    const value = valueOf(part);
    setValue(part, `${value.slice(0, value.length - part.chars)}${at === 0 ? instead : ""}`);
  }
}

/** The parts that have the last characters, so many in all. */
function tailsOf(parts: readonly Part[], chars: number): Part[] {
  const tails: Part[] = [];
  let left = chars;
  for (const part of parts.toReversed()) {
    if (left === 0) break;
    const taken = Math.min(left, part.chars);
    tails.unshift({ ...part, chars: taken });
    left -= taken;
  }
  return tails;
}

/** The event with its changed data, and its other lines. */
function rewritten({ bytes, json }: Passing): Uint8Array {
  const lines = utf8.decode(bytes).split(/\r\n|\r|\n/);
  const others = lines.filter((line) => line !== "" && !/^data(?::|$)/.test(line));
  return encoder.encode(`${[...others, `data: ${JSON.stringify(json)}`].join("\n")}\n\n`);
}

/** Matches a beginning of a secret that ends at a quote, or its first HELD_FROM_CHARS characters, which all longer beginnings have. */
function mayBeginOf(secrets: readonly string[]): RegExp {
  const forms = secrets.map((secret) => {
    const characters = Array.from(secret.slice(0, HELD_FROM_CHARS), (each) => each.replace(/\W/, "\\$&"));
    const [last = "", ...before] = characters.toReversed();
    return before.reduce((rest, character) => `${character}(?:"|${rest})`, last);
  });
  return new RegExp(forms.join("|"));
}

/** Whether a text is one event, with lines that end in LF. */
function isOneEvent(text: string): boolean {
  const { length } = text;
  return length > 2 && text.indexOf("\n\n") === length - 2 && !text.startsWith("\n") && !text.includes("\r");
}

function endsInBlankLine(bytes: Uint8Array): boolean {
  const { length } = bytes;
  return bytes[length - 1] === 0x0a && bytes[length - 2] === 0x0a;
}
