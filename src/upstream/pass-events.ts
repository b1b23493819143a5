/** An event stream on its way through: what it came to decides what its attempt is charged. */
import type { Verdict } from "./classify.ts";
import {
  errorVerdict,
  stoppedVerdict,
  truncatedVerdict,
  type PassEnd,
  type Passing,
  type PassJob,
} from "./pass-job.ts";
import { pump } from "./pass-pump.ts";
import { redacting } from "./pass-redact.ts";
import { shownMessage, withoutOwnSecrets } from "./redact.ts";
import type { StreamFamily } from "./sse-error.ts";
import { StreamTap, type StreamOutcome } from "./sse-tap.ts";

/** A response's name for itself stands in its first event. Only OpenAI's own is known to begin with `resp_`. */
const RESPONSE_ID = /"response"\s*:\s*\{[^{}]*?"id"\s*:\s*"([\w.:-]{1,200})"|"id"\s*:\s*"(resp_[\w-]{1,200})"/;
/** Bytes of a stream in which that is looked for. */
const HEAD_BYTES = 4_096;

export function passEvents(
  job: PassJob,
  source: ReadableStream<Uint8Array>,
  family: StreamFamily,
  { deps, stopped, over }: Passing,
): { body: ReadableStream<Uint8Array>; ended: Promise<PassEnd> } {
  const { upstream, usageChunk, costUsdOf } = job;
  const redact = (text: string): string => withoutOwnSecrets(text, upstream);
  const tap = new StreamTap({ family, upstream: upstream.name, usageChunk, costUsdOf, redact });
  const id = family === "responses" ? new IdFinder() : null;
  const watched = {
    feed: (chunk: Uint8Array): Uint8Array[] => {
      id?.look(chunk);
      return tap.feed(chunk);
    },
    end: (how: "clean" | "broken") => {
      const verdict = how === "broken" && stopped.by !== null ? stoppedVerdict(job, stopped) : null;
      return tap.end(how, verdict?.kind === "failure" ? verdict.reason : undefined);
    },
  };
  const { body, ended } = pump({ head: [], reader: source.getReader() }, redacting(watched, upstream), {
    closes: true,
    deps,
  });
  return {
    body,
    ended: ended.then(({ outcome, by }) => ({
      outcome: over(by === "source" || outcome.complete ? verdictOf(job, outcome) : brokenVerdict(job, by, stopped)),
      id: id?.found ?? null,
    })),
  };
}

function brokenVerdict(job: PassJob, by: "broken" | "client" | "source", stopped: Passing["stopped"]): Verdict {
  if (by === "client") return stoppedVerdict(job, { by: "cancelled" });
  return stopped.by === null ? truncatedVerdict(job) : stoppedVerdict(job, stopped);
}

function verdictOf(job: PassJob, { complete, usage, model, finishReason, error }: StreamOutcome): Verdict {
  if (complete) return { kind: "success", text: "", model: model ?? job.lease.model, finishReason, usage };
  if (error === null) return truncatedVerdict(job);
  const { upstream } = job;
  const message = `${upstream.name} reported an error in its stream: ${shownMessage(error.message, upstream)}`;
  return errorVerdict(job, message);
}

/** Looks for a response's id in the first bytes of its stream. */
class IdFinder {
  found: string | null = null;
  #head = "";

  look(chunk: Uint8Array): void {
    if (this.found !== null || this.#head.length >= HEAD_BYTES) return;
    // The id is ASCII: what a cut character becomes does not matter.
    this.#head += new TextDecoder().decode(chunk.subarray(0, HEAD_BYTES - this.#head.length));
    const found = RESPONSE_ID.exec(this.#head);
    this.found = found?.[1] ?? found?.[2] ?? null;
  }
}
