/**
 * Removes an upstream's own secrets from answers that are relayed in pieces, also where a secret spans two pieces or has JSON escapes.
 */
import { joined } from "../read-body.ts";
import type { Upstream } from "../config/types.ts";
import type { Tap } from "./pump.ts";
import { ownSecrets, REDACTED } from "../redact.ts";
import { LastText } from "../formats/stream/last-text.ts";
import { SplitSecrets } from "../formats/stream/split-secret.ts";
import { lookForSecret, SecretFilter } from "./secret-filter.ts";

/** The tap, with this upstream's key and configured header values blanked in what it returns. */
export function redacting<End>(tap: Tap<End>, upstream: Upstream): Tap<End> {
  const filters = ownSecrets(upstream).map((secret) => new SecretFilter(secret));
  if (filters.length === 0) return tap;
  return {
    ...tap,
    feed: (chunk) => {
      let pieces = tap.feed(chunk);
      for (const filter of filters) pieces = filter.feed(pieces);
      return pieces;
    },
    end: (how) => {
      const { bytes, outcome } = tap.end(how);
      return { bytes: filters.reduce((pieces, filter) => [...filter.feed(pieces), ...filter.end()], bytes), outcome };
    },
  };
}

/** The same of a stream of events, in which a secret may also be spread over several events. `texts` decodes what the tap has read. */
export function redactingEvents<End>(tap: Tap<End>, upstream: Upstream, texts = new LastText()): Tap<End> {
  const secrets = ownSecrets(upstream);
  const plain = redacting(tap, upstream);
  if (secrets.length === 0) return plain;
  const split = new SplitSecrets(secrets, { blank: REDACTED, look: lookForSecret, texts });
  return {
    ...plain,
    feed: (chunk) => split.feed(plain.feed(chunk)),
    end: (how) => {
      const { bytes, outcome } = plain.end(how);
      return { bytes: [...split.feed(bytes), ...split.end()], outcome };
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
  if (tap === WHOLE) return bytes;
  const pieces = [...tap.feed(bytes), ...tap.end("clean").bytes];
  return joined(pieces);
}
