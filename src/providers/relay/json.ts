/**
 * Relays a JSON answer. A small one of announced length is read whole, so that an error inside it, or an end in the middle
 * of its JSON, can still be retried; any other is relayed as it comes, unless it begins with an error, and its connection
 * breaks off if its JSON ends too early. Only the cost in its usage is changed.
 */
import type { Classification, Usage } from "../../call.ts";
import { classify } from "../classify.ts";
import { answerHeaders } from "../endpoints.ts";
import { isEventStream } from "../streamed-answer.ts";
import { readJsonAnswer } from "../formats/response/read.ts";
import { floatsToBase64 } from "../formats/response/embeddings.ts";
import { fillCost } from "../formats/usage/cost.ts";
import { AnswerObserver, type AnswerOutcome } from "../formats/response/observer.ts";
import { readAhead } from "./ahead.ts";
import { reportedError, type Relayed, type RelayInProgress } from "./types.ts";
import { pump, type PumpEnd, type Source } from "./pump.ts";
import { redactedBytes, redacting } from "./redact.ts";
import { shownId } from "../redact.ts";

/** Largest announced answer that is read whole: most are a few KB, and reading one whole is faster than relaying it in pieces. */
const WHOLE_BYTES_MAX = 256 * 1024;
/** Largest answer whose embeddings are re-encoded, for that needs all of it: an isolate has 128 MB. */
const REENCODED_BYTES_MAX = 32 * 1024 * 1024;

/** Relays the answer, whole or as it comes; one that fails before its first byte was relayed is a failure. */
export async function relayJson(inProgress: RelayInProgress, response: Response): Promise<Relayed> {
  const { job, exchange } = inProgress;
  const bytesMax = job.base64 ? REENCODED_BYTES_MAX : 0;
  let read: Awaited<ReturnType<typeof readAhead>>;
  try {
    if (announcedBytes(response) <= Math.max(bytesMax, WHOLE_BYTES_MAX)) {
      read = { whole: new Uint8Array(await response.arrayBuffer()) };
    } else {
      read = await readAhead((response.body ?? new Blob([]).stream()).getReader(), {
        bytesMax,
        isEvents: isEventStream(response),
      });
    }
  } catch {
    return { kind: "failed", outcome: exchange.end(exchange.truncated()), answer: null };
  }
  return "whole" in read
    ? relayWhole(inProgress, response, read.whole)
    : relayInPieces(inProgress, response, read.source);
}

/** The length of the body as it will be read; infinite if it is not known, as of a compressed one. */
function announcedBytes({ headers }: Response): number {
  const length = headers.get("content-length");
  const plain = (headers.get("content-encoding") ?? "identity") === "identity";
  return plain && length !== null ? Number(length) : Infinity;
}

function relayWhole({ job, exchange, deps }: RelayInProgress, response: Response, bytes: Uint8Array): Relayed {
  const { upstream, lease, endpoint } = job;
  const { status, headers } = response;
  const shownHeaders = answerHeaders(headers, upstream);
  const read = readJsonAnswer(endpoint, bytes);
  if (!read.ok || read.hasError) {
    const text = new TextDecoder().decode(bytes);
    const answer = { status, headers, nowMs: deps.now(), body: { ok: true, text } } as const;
    const classification = classify(upstream, lease.model, answer);
    if (classification.kind === "failure")
      return { kind: "failed", outcome: exchange.end(classification), answer: { status, headers: shownHeaders, text } };
  }
  const { usage, model, finishReason, id } = read;
  // A cost that the upstream names stays as it was written.
  const costUsd = usage === null || usage.costNanoUsd !== null ? null : job.costUsdOf(usage);
  const priced = costUsd === null || !read.ok ? bytes : fillCost(bytes, read.object, costUsd);
  const body = redactedBytes(job.base64 ? floatsToBase64(priced) : priced, upstream);
  const outcome = exchange.end({ kind: "success", text: "", model: model ?? lease.model, finishReason, usage });
  return {
    kind: "answered",
    status,
    headers: shownHeaders,
    body,
    ended: Promise.resolve({ outcome, id: shownId(id, upstream) }),
  };
}

/** Relays the answer as it comes. */
function relayInPieces({ job, exchange, deps }: RelayInProgress, response: Response, source: Source): Relayed {
  const { status } = response;
  const headers = answerHeaders(response.headers, job.upstream);
  const observer = new AnswerObserver({ endpoint: job.endpoint, costUsdOf: (usage: Usage) => job.costUsdOf(usage) });
  // A stream of events in place of JSON is relayed as it is: its client sees at once what it got.
  const isEvents = isEventStream(response);
  const closes = ({ outcome, by }: PumpEnd<AnswerOutcome>): boolean =>
    by === "source" && (outcome.complete || isEvents);
  const { body, ended } = pump(source, redacting(observer, job.upstream), { closes, deps });
  const classificationOf = ({ complete, hasError, usage, model, finishReason }: AnswerOutcome): Classification => {
    if (complete && hasError) return reportedError(job, `${job.upstream.name} reported an error in its answer`);
    if (complete) return { kind: "success", text: "", model: model ?? job.lease.model, finishReason, usage };
    return exchange.truncated();
  };
  return {
    kind: "answered",
    status,
    headers,
    body,
    ended: ended.then(({ outcome, by }) => {
      const hasLeft = by === "client" && !outcome.complete;
      const classification = hasLeft ? exchange.stopped("cancelled") : classificationOf(outcome);
      return { outcome: exchange.end(classification), id: shownId(outcome.id, job.upstream) };
    }),
  };
}
