/**
 * A JSON answer on its way through. A small one of announced length is read whole, so that an error inside it can still
 * be tried again; any other goes on as it comes. Of either only the cost in its usage is changed.
 */
import type { Usage } from "../call.ts";
import { classify, failed, type Verdict } from "./classify.ts";
import { readJsonAnswer } from "./json-answer.ts";
import { floatsToBase64 } from "./json-floats.ts";
import { fillCost } from "./json-rewrite.ts";
import { JsonTap } from "./json-tap.ts";
import { stoppedVerdict, type Passed, type Passing, type PassJob } from "./pass-job.ts";
import { pump } from "./pass-pump.ts";
import { withoutOwnSecrets } from "./redact.ts";

/** Largest announced answer that is read whole: most are a few KB, and reading one whole is faster than passing it on. */
const WHOLE_BYTES_MAX = 256 * 1024;
/** Largest answer whose embeddings are re-encoded, for that needs all of it: an isolate has 128 MB. */
const REENCODED_BYTES_MAX = 32 * 1024 * 1024;

/** Reads the answer whole if that is right for it; null, with nothing read, if it is not. */
export async function wholeJson(job: PassJob, response: Response, passing: Passing): Promise<Passed | null> {
  const announced = Number(response.headers.get("content-length") ?? Number.NaN);
  const plain = (response.headers.get("content-encoding") ?? "identity") === "identity";
  const small = plain && announced <= WHOLE_BYTES_MAX;
  const reencodes = job.base64 && !(announced > REENCODED_BYTES_MAX);
  if (!small && !reencodes) return null;
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await response.arrayBuffer());
  } catch {
    const { stopped } = passing;
    const verdict = stopped.by === null ? truncated(job) : stoppedVerdict(job, stopped);
    return { kind: "failed", outcome: passing.over(verdict), answer: null };
  }
  return wholeAnswer(job, response, bytes, passing);
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
  const body = withoutKey(job.base64 ? floatsToBase64(priced) : priced, job);
  const outcome = over({ kind: "success", text: "", model: model ?? lease.model, finishReason, usage });
  return { kind: "answered", status, headers, body, ended: Promise.resolve({ outcome, id }) };
}

function withCost(bytes: Uint8Array, costUsd: number | null): Uint8Array {
  return costUsd === null ? bytes : fillCost(bytes, costUsd);
}

/** The same bytes unless the upstream repeats its own key in them. */
function withoutKey(bytes: Uint8Array, { upstream }: PassJob): Uint8Array {
  const { apiKey } = upstream;
  if (apiKey === null || !holds(bytes, apiKey)) return bytes;
  return new TextEncoder().encode(withoutOwnSecrets(new TextDecoder().decode(bytes), upstream));
}

/** Whether an ASCII text stands in the bytes. */
function holds(bytes: Uint8Array, text: string): boolean {
  const first = text.charCodeAt(0);
  for (let at = bytes.indexOf(first); at !== -1; at = bytes.indexOf(first, at + 1)) {
    let length = 1;
    while (length < text.length && bytes[at + length] === text.charCodeAt(length)) length += 1;
    if (length === text.length) return true;
  }
  return false;
}

/** Passes the answer on as it comes. */
export function passJson(job: PassJob, response: Response, { deps, stopped, over }: Passing): Passed {
  const { status, headers } = response;
  const tap = new JsonTap({ endpoint: job.endpoint, costUsdOf: (usage: Usage) => job.costUsdOf(usage) });
  const source = response.body ?? new Blob([]).stream();
  const { body, ended } = pump(source, tap, { closes: false, deps });
  const verdictOf = (outcome: ReturnType<JsonTap["end"]>["outcome"]): Verdict => {
    const { complete, hasError, usage, model, finishReason } = outcome;
    if (complete && !hasError)
      return { kind: "success", text: "", model: model ?? job.lease.model, finishReason, usage };
    return stopped.by === null ? truncated(job) : stoppedVerdict(job, stopped);
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

function truncated({ upstream }: PassJob): Verdict {
  const message = `${upstream.name} broke off its answer`;
  return failed("unknown", { reason: "upstream_truncated", upstream: upstream.name, message });
}
