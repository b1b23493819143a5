/**
 * Relays an event stream. What the stream ended as decides what its attempt is charged. If nothing in it must be changed, and it need not be
 * searched for secrets, the runtime moves all but its first event.
 */
import type { Classification } from "../../call.ts";
import type { Exchange } from "../exchange.ts";
import { batchReaderOf } from "./batches.ts";
import { reportedError, type RelayDeps, type RelayEnd, type RelayInProgress, type RelayJob } from "./types.ts";
import { pump, type Source, type Tap } from "./pump.ts";
import { redactedBytes, redacting, redactingEvents } from "./redact.ts";
import { shownId, shownMessage, withoutOwnSecrets } from "../redact.ts";
import { withSeen } from "../seen.ts";
import type { Arrived } from "../formats/aggregate/stream.ts";
import type { StreamFamily } from "../formats/stream/error.ts";
import { LastText } from "../formats/stream/last-text.ts";
import { StreamObserver, type StreamOutcome } from "../formats/stream/observer.ts";

export function relayEvents(
  { job, exchange, deps }: RelayInProgress,
  source: ReadableStream<Uint8Array>,
  family: StreamFamily,
): { body: ReadableStream<Uint8Array>; ended: Promise<RelayEnd> } {
  const { upstream, usageChunk, costUsdOf, passes, moves } = job;
  const redact = (text: string): string => withoutOwnSecrets(text, upstream);
  // What has arrived of an answer is an estimate of its cost only where the upstream stops with its connection.
  const countsContent = upstream.abortCost === "seen";
  const texts = new LastText();
  const options = { family, upstream: upstream.name, usageChunk, costUsdOf, redact, passes, countsContent, texts };
  const observer = new StreamObserver(options);
  // Clients stop reading at the protocol's last event, which may come long before the upstream closes the connection.
  // The timer runs on until then: should it never close, the heartbeat of the settled attempt ends it.
  const known = Promise.withResolvers<RelayEnd>();
  let isReleased = !moves;
  let isClean = true;
  let hasBegun = false;
  const watched: Tap<StreamOutcome> = {
    feed: (chunk) => {
      exchange.streamBegun();
      // Headers may come before the provider has read the prompt.
      if (!hasBegun) deps.begun?.();
      hasBegun = true;
      const pieces = observer.feed(chunk);
      if (!isReleased) isClean &&= pieces.every((piece) => redactedBytes(piece, upstream) === piece);
      const outcome = observer.early;
      if (outcome !== null)
        known.resolve({
          outcome: exchange.outcome(classificationOf(job, exchange, outcome)),
          id: shownId(outcome.id, upstream),
        });
      return pieces;
    },
    // An upstream that quotes its key does so in an error, which is the first event if the key is refused.
    release: () => {
      const kept = moves && isClean ? observer.release() : null;
      isReleased ||= kept !== null;
      return kept;
    },
    end: (how) => {
      const stopped = how === "broken" && exchange.isStopped ? exchange.stopped() : null;
      return observer.end(how, stopped?.kind === "failure" ? stopped.reason : undefined);
    },
  };
  // What the runtime moves is read as a copy.
  const clean = moves ? redacting(watched, upstream) : redactingEvents(watched, upstream, texts);
  const { body, ended } = pump(sourceOf(source, moves, deps), clean, {
    // The observer ends a broken stream with an error event.
    closes: () => true,
    deps,
  });
  const whole = ended.then(({ outcome, by }) => ({
    outcome: exchange.end(
      by === "source" || outcome.complete ? classificationOf(job, exchange, outcome) : brokenOff(exchange, by, outcome),
    ),
    id: shownId(outcome.id, upstream),
  }));
  return { body, ended: Promise.race([known.promise, whole]) };
}

/** A stream that the runtime may move is read chunk by chunk until it is released, which batches could not be. */
function sourceOf(stream: ReadableStream<Uint8Array>, moves: boolean, deps: RelayDeps): Source {
  if (!moves) return { head: [], reader: batchReaderOf(stream, deps) };
  const reader = stream.getReader();
  const release = (): typeof stream => {
    reader.releaseLock();
    return stream;
  };
  return { head: [], reader, release };
}

function brokenOff(exchange: Exchange, by: "broken" | "client" | "source", outcome: StreamOutcome): Classification {
  const classification = by === "client" ? exchange.stopped("cancelled") : exchange.truncated();
  return withSeen(classification, exchange.upstream, arrivedOf(outcome));
}

/** What had arrived of a stream that ended early; null = no event of it. */
function arrivedOf({ events, usage, contentBytes }: StreamOutcome): Arrived | null {
  if (events === 0) return null;
  const { promptTokens = null, completionTokens = null } = usage ?? {};
  return { promptTokens, completionTokens, contentBytes };
}

function classificationOf(job: RelayJob, exchange: Exchange, outcome: StreamOutcome): Classification {
  const { complete, usage, model, finishReason, error } = outcome;
  if (complete) return { kind: "success", text: "", model: model ?? job.lease.model, finishReason, usage };
  if (error === null) return withSeen(exchange.truncated(), job.upstream, arrivedOf(outcome));
  const { upstream } = job;
  const message = `${upstream.name} reported an error in its stream: ${shownMessage(error.message, upstream)}`;
  return reportedError(job, message, error.code);
}
