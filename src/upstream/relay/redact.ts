/** Removes an upstream's own secrets from answers that are relayed in pieces, also where a secret spans two pieces. */
import { joined } from "../read-body.ts";
import type { Upstream } from "../config/types.ts";
import type { Tap } from "./pump.ts";
import { ownSecrets, REDACTED } from "../redact.ts";

const encoder = new TextEncoder();
const BLANK = encoder.encode(REDACTED);

/** The tap, with this upstream's key and configured header values blanked in what it returns. */
export function redacting<End>(tap: Tap<End>, upstream: Upstream): Tap<End> {
  const filters = ownSecrets(upstream).map((secret) => new SecretFilter(encoder.encode(secret)));
  if (filters.length === 0) return tap;
  return {
    ...tap,
    feed: (chunk) => filters.reduce((pieces, filter) => filter.feed(pieces), tap.feed(chunk)),
    end: (how) => {
      const { bytes, outcome } = tap.end(how);
      return { bytes: filters.reduce((pieces, filter) => [...filter.feed(pieces), ...filter.end()], bytes), outcome };
    },
  };
}

/** A body as a stream without the upstream's own secrets. */
export function redactedStream(body: ReadableStream<Uint8Array>, upstream: Upstream): ReadableStream<Uint8Array> {
  const tap = redacting(WHOLE, upstream);
  if (tap === WHOLE) return body;
  const transformer: Transformer<Uint8Array, Uint8Array> = {
    transform: (chunk, controller) => {
      for (const piece of tap.feed(chunk)) controller.enqueue(piece);
    },
    flush: (controller) => {
      for (const piece of tap.end("clean").bytes) controller.enqueue(piece);
    },
  };
  return body.pipeThrough(new TransformStream(transformer));
}

/** Changes nothing. */
const WHOLE: Tap<null> = { feed: (chunk) => [chunk], end: () => ({ bytes: [], outcome: null }) };

/** The same bytes unless one of the upstream's own secrets is in them. */
export function redactedBytes(bytes: Uint8Array, upstream: Upstream): Uint8Array {
  const tap = redacting(WHOLE, upstream);
  const pieces = [...tap.feed(bytes), ...tap.end("clean").bytes];
  return joined(pieces);
}

/**
 * Blanks one secret. What may be its beginning at the end of a piece is withheld until the next; it equals the secret's own
 * first bytes, so only their number is stored. It delays no event of a stream: an event ends in a line end, a secret does not.
 */
class SecretFilter {
  readonly #secret: Uint8Array;
  #withheld = 0;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  feed(pieces: readonly Uint8Array[]): Uint8Array[] {
    const out: Uint8Array[] = [];
    for (const piece of pieces) this.#filter(this.#withheld === 0 ? piece : joined([...this.end(), piece]), out);
    return out;
  }

  end(): Uint8Array[] {
    const withheld = this.#secret.subarray(0, this.#withheld);
    this.#withheld = 0;
    return withheld.length === 0 ? [] : [withheld];
  }

  #filter(bytes: Uint8Array, out: Uint8Array[]): void {
    const [first = -1] = this.#secret;
    let from = 0;
    for (let at = bytes.indexOf(first); at !== -1; at = bytes.indexOf(first, at)) {
      const length = this.#matching(bytes, at);
      const whole = length === this.#secret.length;
      if (!whole && at + length < bytes.length) {
        at += 1;
        continue;
      }
      if (at > from) out.push(bytes.subarray(from, at));
      if (!whole) {
        this.#withheld = length;
        return;
      }
      out.push(BLANK);
      from = at += length;
    }
    if (from === 0) out.push(bytes);
    else if (from < bytes.length) out.push(bytes.subarray(from));
  }

  /** How many bytes from an index on equal those of the secret. */
  #matching(bytes: Uint8Array, at: number): number {
    let length = 1;
    while (length < this.#secret.length && bytes[at + length] === this.#secret[length]) length += 1;
    return length;
  }
}
