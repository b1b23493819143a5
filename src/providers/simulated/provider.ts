/**
 * The simulated upstream answers requests of OpenAI's and Anthropic's APIs without network, key or chance, so that demos
 * and tests can be repeated. It takes the place of `fetch`, and its answers are read like those of a provider.
 */
import { BODY_BYTES_MAX } from "../../limits.ts";
import { tryParse } from "../../text/json/parse.ts";
import { isRecord } from "../../text/json/record.ts";
import { chat, completions } from "./completions.ts";
import { embeddings } from "./embeddings.ts";
import { fraction, idOf } from "./hash.ts";
import { messages } from "./messages.ts";
import { parseSimulatedModel, type SimulatedModel } from "./model.ts";
import type { Input, Job, Protocol } from "./protocol.ts";
import { responses } from "./responses.ts";
import { split, streamResponse, type Timer, wait } from "./stream.ts";
import { type Answer, answerOf } from "./answer.ts";
import { BYTES_PER_TOKEN, capped, type Completion } from "./text.ts";

export type SimulatedDeps = {
  /** Wall clock, ms since 1970. */
  now: () => number;
  timer: Timer;
  signal: AbortSignal;
  /** Which attempt of its call this is, from 1. */
  attempt: number;
};

const PROTOCOLS = { chat, completions, embeddings, responses, messages };

/** The part of OpenAI's or Anthropic's API that a request body is for. */
export type SimulatedEndpoint = keyof typeof PROTOCOLS;

/**
 * Answers a request body like the endpoint's own server, as a stream if it requests one. Rejects with the signal's
 * reason on abort; a stream that has begun ends with it.
 */
export async function simulatedAnswer(
  endpoint: SimulatedEndpoint,
  requestBody: string,
  deps: SimulatedDeps,
): Promise<Response> {
  const protocol: Protocol = PROTOCOLS[endpoint];
  const refuse = (status: number, message: string, headers: Record<string, string> = {}): Response =>
    jsonResponse(status, headers, protocol.error(status, message));

  const request = tryParse(requestBody);
  if (!isRecord(request)) return refuse(400, "the body must be a JSON object");
  const id = typeof request["model"] === "string" ? request["model"] : "";
  const parsed = parseSimulatedModel(id);
  if (!parsed.ok) return refuse(parsed.status, parsed.message);
  const read = protocol.read(request);
  if (!read.ok) return refuse(400, read.message);

  const { model } = parsed;
  const prompt = read.input.prompts.join("\n");
  await wait(latencyMs(model, prompt), deps.timer, deps.signal);
  const { failure } = model;
  if (failure !== null && deps.attempt <= failure.times && fraction(`fail:${prompt}`) < failure.rate) {
    const headers = failure.retryAfterMs === null ? {} : { "retry-after-ms": String(failure.retryAfterMs) };
    return refuse(failure.status, `simulated failure with status ${failure.status}`, headers);
  }

  const answered = answerOf(model, read.input, deps.attempt);
  if (!answered.ok) return refuse(400, answered.message);
  const job = jobOf(answered.answer, {
    request,
    input: read.input,
    model: id,
    id: idOf(prompt),
    createdMs: deps.now(),
  });
  if (job === null) return refuse(400, `the choices together would be longer than ${BODY_BYTES_MAX} bytes`);
  if (protocol.frames === null || request["stream"] !== true) return jsonResponse(200, {}, protocol.document(job));
  const frames = protocol.frames(job, (text) => split(text, model.pace.chunks));
  return streamResponse(frames, model.pace, deps.timer, deps.signal);
}

const encoder = new TextEncoder();

/** The length is announced, so that the answer is read in one step, as most providers' answers are. */
function jsonResponse(status: number, headers: Record<string, string>, value: unknown): Response {
  const bytes = encoder.encode(JSON.stringify(value));
  return new Response(bytes, {
    status,
    headers: { ...headers, "content-type": "application/json", "content-length": String(bytes.byteLength) },
  });
}

function latencyMs({ minMs, maxMs }: SimulatedModel, prompt: string): number {
  return minMs === maxMs ? minMs : minMs + Math.floor(fraction(`wait:${prompt}`) * (maxMs - minMs + 1));
}

type JobInput = { request: Record<string, unknown>; input: Input; model: string; id: string; createdMs: number };

/** Null if many choices of a long answer would fill the memory that all requests share. */
function jobOf({ texts, call }: Answer, { request, input, model, id, createdMs }: JobInput): Job | null {
  const completions: Completion[] = [];
  let completionTokens = 0;
  for (const text of texts) {
    const completion = capped(text, input.capTokens);
    completionTokens += completion.tokens * input.choices;
    for (let choice = 0; choice < input.choices; choice++) completions.push(completion);
  }
  if (input.choices > 1 && completionTokens * BYTES_PER_TOKEN > BODY_BYTES_MAX) return null;
  return { request, input, model, id, createdS: Math.floor(createdMs / 1_000), completions, completionTokens, call };
}
