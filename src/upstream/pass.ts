/**
 * One attempt of a call that passes through: the client's own bytes go to the upstream, and the answer's bytes go back as
 * they come. A failure before the first byte of an answer is told whole, so that it may be tried again.
 */
import type { Outcome } from "../call.ts";
import { notSent } from "./attempt.ts";
import { discard, readBody } from "./body.ts";
import { classify, type Answer, type Verdict } from "./classify.ts";
import { connectionFailure } from "./connection-failure.ts";
import { passEvents } from "./pass-events.ts";
import { stoppedVerdict, type PassDeps, type Passed, type Passing, type PassJob, type Stopped } from "./pass-job.ts";
import { passJson } from "./pass-json.ts";

/** Makes the attempt. Never rejects. */
export async function pass(job: PassJob, deps: PassDeps): Promise<Passed> {
  const { signal } = deps.controller;
  if (signal.aborted) return { kind: "failed", outcome: { ...notSent(), latencyMs: 0 }, answer: null };
  const startedMs = deps.now();
  const stopped: Stopped = { by: null };
  signal.addEventListener("abort", () => (stopped.by ??= "cancelled"));
  const stopTimer = deps.timer(job.lease.timeoutMs, () => {
    stopped.by ??= "timeout";
    deps.controller.abort();
  });
  const over = (verdict: Verdict): Outcome => {
    stopTimer();
    return { ...verdict, latencyMs: Math.max(0, deps.now() - startedMs) };
  };
  const { url, headers, body } = job;
  let response: Response;
  try {
    response = await deps.fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
  } catch (error) {
    const verdict = stopped.by === null ? connectionFailure(job.upstream, error) : stoppedVerdict(job, stopped);
    return { kind: "failed", outcome: over(verdict), answer: null };
  }
  const { status } = response;
  if (status < 200 || status > 299) return refusedAnswer(job, response, over, deps.now());
  return await answered(job, response, { deps, stopped, over });
}

async function answered(job: PassJob, response: Response, passing: Passing): Promise<Passed> {
  const isEvents = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  if (job.stream && isEvents && response.body !== null && job.endpoint !== "embeddings") {
    const { body, ended } = passEvents(job, response.body, job.endpoint, passing);
    return { kind: "answered", status: response.status, headers: response.headers, body, ended };
  }
  return await passJson(job, response, passing);
}

async function refusedAnswer(
  { upstream, lease }: PassJob,
  response: Response,
  over: Passing["over"],
  nowMs: number,
): Promise<Passed> {
  const { status, headers } = response;
  const answer: Answer = { status, headers, nowMs, body: null };
  try {
    answer.body = await readBody(response);
  } catch {
    await discard(response);
  }
  const outcome = over(classify(upstream, lease.model, answer));
  const text = answer.body?.ok === true ? answer.body.text : "";
  return { kind: "failed", outcome, answer: { status, headers, text } };
}
