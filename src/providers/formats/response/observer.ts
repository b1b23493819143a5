/**
 * Observes one JSON body on its way to the client, if it is too large to be kept: bytes leave as they come, and only the
 * top-level `usage` waits until it is whole, so that its cost can be added.
 */
import type { Usage } from "../../../call.ts";
import {
  ANSWER_FIELDS,
  CHOICE_PREFIX,
  factsIn,
  FIELD_BYTES_MAX,
  USAGE_BYTES_MAX,
  usageIn,
  type AnswerFacts,
} from "./fields.ts";
import { OPEN_OBJECT } from "../../../text/json/grammar.ts";
import type { Endpoint } from "../../../call.ts";
import { MemberScanner } from "../../../text/json/stream.ts";
import { ByteBuffer } from "../../../text/bytes/byte-buffer.ts";
import { addCost } from "../usage/stream-cost.ts";

export type AnswerObserverOptions = {
  endpoint: Endpoint;
  /** Price of a usage, USD; null if unknown: then no cost is added. */
  costUsdOf: (usage: Usage) => number | null;
};

/** `complete`: whether the top-level object was closed and only white space followed. Its inside is not validated. */
export type AnswerOutcome = AnswerFacts & { complete: boolean };

const EMPTY = new Uint8Array(0);

/**
 * The observer of one body. What `feed` returns may be views of the chunk: send it before the chunk is reused.
 *
 * If a field is repeated the last one counts, as for most parsers; a cost is added to each usage, from its own figures, so
 * that every parser finds one. A cost from the upstream is kept.
 */
export class AnswerObserver {
  readonly #options: AnswerObserverOptions;
  readonly #scanner: MemberScanner;
  readonly #fields = new Map<string, Uint8Array>();
  #usage: Usage | null = null;
  /** The field whose value has begun and not ended, and the bytes of the value in earlier chunks. */
  #open: string | null = null;
  readonly #kept = new ByteBuffer();
  #chunk: Uint8Array = EMPTY;
  /** The index in this chunk at which the open field's value continues. */
  #from = 0;
  /** The index up to which this chunk was sent. */
  #sent = 0;
  #out: Uint8Array[] = [];

  constructor(options: AnswerObserverOptions) {
    this.#options = options;
    const names = new Set(["usage", ...ANSWER_FIELDS[options.endpoint]]);
    const watched = { names, firstOf: { list: "choices", prefix: CHOICE_PREFIX } };
    this.#scanner = new MemberScanner(watched, {
      begins: (name, at) => this.#begins(name, at),
      ends: (at) => this.#ends(at),
    });
  }

  /** Takes a chunk from the upstream; returns what to send to the client now. */
  feed(chunk: Uint8Array): Uint8Array[] {
    this.#chunk = chunk;
    this.#from = 0;
    this.#sent = 0;
    this.#scanner.feed(chunk);
    this.#keep(chunk.length);
    this.#forward(this.#open === "usage" ? this.#from : chunk.length);
    const out = this.#out;
    this.#out = [];
    this.#chunk = EMPTY;
    return out;
  }

  /** Ends the body, whole or not; returns its last bytes for the client, and the outcome. Call it once. */
  end(): { bytes: Uint8Array[]; outcome: AnswerOutcome } {
    const bytes = this.#open === "usage" ? [this.#kept.take()] : [];
    const facts = factsIn(this.#options.endpoint, this.#fields, this.#usage);
    return { bytes, outcome: { ...facts, complete: this.#scanner.isClosed } };
  }

  #begins(name: string, at: number): void {
    if (name === "choices") {
      for (const field of this.#fields.keys()) if (field.startsWith(CHOICE_PREFIX)) this.#fields.delete(field);
      return;
    }
    if (name === "usage") {
      this.#usage = null;
      if (this.#chunk[at] !== OPEN_OBJECT) return;
    }
    this.#open = name;
    this.#from = at;
  }

  #ends(at: number): void {
    this.#keep(at);
    if (this.#open === null) return;
    const value = this.#kept.take();
    if (this.#open === "usage") {
      this.#forward(this.#from);
      this.#out.push(this.#priced(value));
      this.#sent = at;
    } else {
      this.#fields.set(this.#open, value);
    }
    this.#open = null;
  }

  /** Keeps the open field's bytes in this chunk, up to `end`: a usage whole or not at all, the first bytes of any other. */
  #keep(end: number): void {
    if (this.#open === null) return;
    const more = this.#chunk.subarray(this.#from, end);
    const room = (this.#open === "usage" ? USAGE_BYTES_MAX : FIELD_BYTES_MAX) - this.#kept.length;
    if (more.length <= room) this.#kept.append(more);
    else if (this.#open !== "usage") this.#kept.append(more.subarray(0, room));
    else {
      // It is forwarded unread. What was kept of it comes before the rest of this chunk.
      if (this.#kept.length > 0) this.#out.push(this.#kept.take());
      this.#open = null;
    }
  }

  #forward(end: number): void {
    if (end > this.#sent) this.#out.push(this.#chunk.subarray(this.#sent, end));
    this.#sent = end;
  }

  #priced(usage: Uint8Array): Uint8Array {
    const { endpoint, costUsdOf } = this.#options;
    this.#usage = usageIn(endpoint, usage);
    const costUsd = this.#usage === null ? null : costUsdOf(this.#usage);
    if (costUsd === null) return usage;
    const whole = new Uint8Array(HEAD.length + usage.length + TAIL.length);
    whole.set(HEAD);
    whole.set(usage, HEAD.length);
    whole.set(TAIL, HEAD.length + usage.length);
    return addCost(whole, whole, ["usage"], costUsd).subarray(HEAD.length, -TAIL.length);
  }
}

/** What makes a usage a body of its own. */
const encoder = new TextEncoder();
const HEAD = encoder.encode('{"usage":');
const TAIL = encoder.encode("}");
