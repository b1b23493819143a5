/**
 * One attempt whose answer is relayed: the client's own bytes go to the upstream, and the answer's bytes go back as they
 * come. A failure before the first byte of an answer is returned whole, so that the call can be retried.
 */
import { discard, readBody } from "../read-body.ts";
import { classify, type HttpAnswer } from "../classify.ts";
import { answerHeaders } from "../endpoints.ts";
import { Exchange, notSent } from "../exchange.ts";
import { isEventStream } from "../streamed-answer.ts";
import { relayEvents } from "./events.ts";
import { relayJson } from "./json.ts";
import type { Relayed, RelayDeps, RelayInProgress, RelayJob } from "./types.ts";

/** Makes the attempt. Never rejects. */
export async function relay(job: RelayJob, deps: RelayDeps): Promise<Relayed> {
  if (deps.controller.signal.aborted) return { kind: "failed", outcome: notSent(), answer: null };
  const exchange = new Exchange(job, deps);
  const sent = await exchange.send(job.request);
  if (!sent.ok) return { kind: "failed", outcome: exchange.end(sent.classification), answer: null };
  const { response } = sent;
  const inProgress = { job, exchange, deps };
  if (!response.ok) return await relayError(inProgress, response);
  if (job.stream && isEventStream(response) && response.body !== null && job.endpoint !== "embeddings") {
    const { body, ended } = relayEvents(inProgress, response.body, job.endpoint);
    const headers = answerHeaders(response.headers, job.upstream);
    return { kind: "answered", status: response.status, headers, body, ended };
  }
  // The headers of such an answer come when it is made.
  deps.begun?.();
  return await relayJson(inProgress, response);
}

async function relayError({ job, exchange, deps }: RelayInProgress, response: Response): Promise<Relayed> {
  const { upstream, lease } = job;
  const { status, headers } = response;
  const answer: HttpAnswer = { status, headers, nowMs: deps.now(), body: null };
  try {
    answer.body = await readBody(response);
  } catch {
    await discard(response);
  }
  const outcome = exchange.end(classify(upstream, lease.model, answer));
  const text = answer.body?.ok === true ? answer.body.text : "";
  return { kind: "failed", outcome, answer: { status, headers: answerHeaders(headers, upstream), text } };
}
