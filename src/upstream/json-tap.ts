/**
 * Watches one JSON body on its way to the client, where it is too large to be held: bytes go on as they come, and only
 * the top-level `usage` waits until it is whole, so that its cost can be written into it.
 */
import type { Usage } from "../call.ts";
import {
  ANSWER_FIELDS,
  CHOICE_PREFIX,
  factsIn,
  FIELD_BYTES_MAX,
  USAGE_BYTES_MAX,
  usageIn,
  type AnswerFacts,
} from "./json-answer-fields.ts";
import { OPEN_OBJECT } from "./json-bytes.ts";
import type { Endpoint } from "./json-request.ts";
import { MemberScanner } from "./json-tap-scan.ts";
import { ByteBuffer } from "./sse-buffer.ts";
import { withCost } from "./sse-cost.ts";

export type JsonTapOptions = {
  endpoint: Endpoint;
  /** Price of a usage, USD; null where none is known: then no cost is written. */
  costUsdOf: (usage: Usage) => number | null;
};

/** `complete`: whether the top-level object was closed and nothing but white space followed. Its inside may be faulty. */
export type JsonOutcome = AnswerFacts & { complete: boolean };

const EMPTY = new Uint8Array(0);

/**
 * The tap of one body. What `feed` returns may be views of the chunk, so send it before the chunk is used again.
 *
 * Of a field that stands more than once the last counts, as for most parsers; a cost is written into each usage, from
 * its own figures, so that it is there whichever a parser takes. An upstream's own cost stays.
 */
export class JsonTap {
  readonly #options: JsonTapOptions;
  readonly #scanner: MemberScanner;
  readonly #fields = new Map<string, Uint8Array>();
  #usage: Usage | null = null;
  /** The field whose value has begun and not ended, and what came of it in earlier chunks. */
  #open: string | null = null;
  readonly #kept = new ByteBuffer();
  #chunk: Uint8Array = EMPTY;
  /** Where in this chunk the open field's value goes on. */
  #from = 0;
  /** Up to where this chunk has gone on to the client. */
  #sent = 0;
  #out: Uint8Array[] = [];

  constructor(options: JsonTapOptions) {
    this.#options = options;
    const watched = new Set(["usage", "choices", ...ANSWER_FIELDS[options.endpoint]]);
    this.#scanner = new MemberScanner(watched, {
      begins: (name, at) => this.#begins(name, at),
      ends: (at) => this.#ends(at),
    });
  }

  /** Takes what came from the upstream; returns what goes to the client now. */
  feed(chunk: Uint8Array): Uint8Array[] {
    this.#chunk = chunk;
    this.#from = 0;
    this.#sent = 0;
    this.#scanner.feed(chunk);
    this.#keep(chunk.length);
    this.#pass(this.#open === "usage" ? this.#from : chunk.length);
    const out = this.#out;
    this.#out = [];
    this.#chunk = EMPTY;
    return out;
  }

  /** Ends the body, however it ended; returns its last bytes for the client and what it came to. Called once. */
  end(): { bytes: Uint8Array[]; outcome: JsonOutcome } {
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
      this.#pass(this.#from);
      this.#out.push(this.#withCost(value));
      this.#sent = at;
    } else {
      this.#fields.set(this.#open, value);
    }
    this.#open = null;
  }

  /** Keeps what this chunk has of the open field, up to `end`: a usage whole or not at all, of any other its first bytes. */
  #keep(end: number): void {
    if (this.#open === null) return;
    const more = this.#chunk.subarray(this.#from, end);
    const room = (this.#open === "usage" ? USAGE_BYTES_MAX : FIELD_BYTES_MAX) - this.#kept.length;
    if (more.length <= room) this.#kept.append(more);
    else if (this.#open !== "usage") this.#kept.append(more.subarray(0, room));
    else {
      // It is let go unread. What was held of it came before all that is left of this chunk.
      if (this.#kept.length > 0) this.#out.push(this.#kept.take());
      this.#open = null;
    }
  }

  #pass(end: number): void {
    if (end > this.#sent) this.#out.push(this.#chunk.subarray(this.#sent, end));
    this.#sent = end;
  }

  #withCost(usage: Uint8Array): Uint8Array {
    const { endpoint, costUsdOf } = this.#options;
    this.#usage = usageIn(endpoint, usage);
    const costUsd = this.#usage === null ? null : costUsdOf(this.#usage);
    if (costUsd === null) return usage;
    const whole = new Uint8Array(HEAD.length + usage.length + TAIL.length);
    whole.set(HEAD);
    whole.set(usage, HEAD.length);
    whole.set(TAIL, HEAD.length + usage.length);
    return withCost(whole, whole, ["usage"], costUsd).subarray(HEAD.length, -TAIL.length);
  }
}

/** What makes a body of a usage alone. */
const encoder = new TextEncoder();
const HEAD = encoder.encode('{"usage":');
const TAIL = encoder.encode("}");
