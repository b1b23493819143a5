/**
 * A JSON answer on its way through. A small one of announced length is read whole, so that an error inside it can still
 * be tried again; any other goes on as it comes, unless it begins with an error. Of either only the cost in its usage is
 * changed.
 */
import type { Usage } from "../call.ts";
import { classify, type Verdict } from "./classify.ts";
import { readJsonAnswer } from "./json-answer.ts";
import { floatsToBase64 } from "./json-floats.ts";
import { fillCost } from "./json-rewrite.ts";
import { JsonTap, type JsonOutcome } from "./json-tap.ts";
import { readAhead } from "./pass-ahead.ts";
import { errorVerdict, stoppedVerdict, truncatedVerdict, type Passed, type Passing, type PassJob } from "./pass-job.ts";
import { pump, type Source } from "./pass-pump.ts";
import { redactedBytes, redacting } from "./pass-redact.ts";

/** Largest announced answer that is read whole: most are a few KB, and reading one whole is faster than passing it on. */
const WHOLE_BYTES_MAX = 256 * 1024;
/** Largest answer whose embeddings are re-encoded, for that needs all of it: an isolate has 128 MB. */
const REENCODED_BYTES_MAX = 32 * 1024 * 1024;

/** Passes the answer on, whole or as it comes; one that fails before its first byte went on is a failure. */
export async function passJson(job: PassJob, response: Response, passing: Passing): Promise<Passed> {
  const bytesMax = job.base64 ? REENCODED_BYTES_MAX : 0;
  let read: Awaited<ReturnType<typeof readAhead>>;
  try {
    if (announcedBytes(response) <= Math.max(bytesMax, WHOLE_BYTES_MAX)) {
      read = { whole: new Uint8Array(await response.arrayBuffer()) };
    } else {
      read = await readAhead((response.body ?? new Blob([]).stream()).getReader(), bytesMax);
    }
  } catch {
    const { stopped } = passing;
    const verdict = stopped.by === null ? truncatedVerdict(job) : stoppedVerdict(job, stopped);
    return { kind: "failed", outcome: passing.over(verdict), answer: null };
  }
  if ("whole" in read) return wholeAnswer(job, response, read.whole, passing);
  return passedOn(job, response, read.source, passing);
}

/** The length of the body as it will be read; infinite where it is not known, as of a compressed one. */
function announcedBytes({ headers }: Response): number {
  const length = headers.get("content-length");
  const plain = (headers.get("content-encoding") ?? "identity") === "identity";
  return plain && length !== null ? Number(length) : Infinity;
}

function wholeAnswer(job: PassJob, response: Response, bytes: Uint8Array, { over, deps }: Passing): Passed {
  const { upstream, lease, endpoint } = job;
  const { status, headers } = response;
  const read = readJsonAnswer(endpoint, bytes);
  if (!read.ok || read.hasError) {
    const text = new TextDecoder().decode(bytes);
    const verdict = classify(upstream, lease.model, { status, headers, nowMs: deps.now(), body: { ok: true, text } });
    if (verdict.kind === "failure")
      return { kind: "failed", outcome: over(verdict), answer: { status, headers, text } };
  }
  const { usage, model, finishReason, id } = read;
  // A cost that the upstream names is its own: it stays as it was written.
  const priced = usage === null || usage.costNanoUsd !== null ? bytes : withCost(bytes, job.costUsdOf(usage));
  const body = redactedBytes(job.base64 ? floatsToBase64(priced) : priced, upstream);
  const outcome = over({ kind: "success", text: "", model: model ?? lease.model, finishReason, usage });
  return { kind: "answered", status, headers, body, ended: Promise.resolve({ outcome, id }) };
}

function withCost(bytes: Uint8Array, costUsd: number | null): Uint8Array {
  return costUsd === null ? bytes : fillCost(bytes, costUsd);
}

/** Passes the answer on as it comes. */
function passedOn(job: PassJob, response: Response, source: Source, { deps, stopped, over }: Passing): Passed {
  const { status, headers } = response;
  const tap = new JsonTap({ endpoint: job.endpoint, costUsdOf: (usage: Usage) => job.costUsdOf(usage) });
  const { body, ended } = pump(source, redacting(tap, job.upstream), { closes: false, deps });
  const verdictOf = ({ complete, hasError, usage, model, finishReason }: JsonOutcome): Verdict => {
    if (complete && hasError) return errorVerdict(job, `${job.upstream.name} reported an error in its answer`);
    if (complete) return { kind: "success", text: "", model: model ?? job.lease.model, finishReason, usage };
    return stopped.by === null ? truncatedVerdict(job) : stoppedVerdict(job, stopped);
  };
  return {
    kind: "answered",
    status,
    headers,
    body,
    ended: ended.then(({ outcome, by }) => {
      const left = by === "client" && !outcome.complete;
      return { outcome: over(left ? stoppedVerdict(job, { by: "cancelled" }) : verdictOf(outcome)), id: outcome.id };
    }),
  };
}
