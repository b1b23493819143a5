/**
 * The embedded upstream: answers the requests of OpenAI's and Anthropic's APIs without network, key or chance, so that
 * trials and tests are repeatable. It sits where `fetch` sits, and its answers are read like a provider's.
 */
import { BODY_BYTES_MAX } from "../limits.ts";
import { isRecord } from "./record.ts";
import { chat } from "./simulated-chat.ts";
import { completions } from "./simulated-completions.ts";
import { embeddings } from "./simulated-embeddings.ts";
import { fraction, idOf } from "./simulated-hash.ts";
import { messages } from "./simulated-messages.ts";
import { parseSimulatedModel, type SimulatedModel } from "./simulated-model.ts";
import type { Asked, Job, Protocol } from "./simulated-protocol.ts";
import { jsonResponse } from "./simulated-reply.ts";
import { responses } from "./simulated-responses.ts";
import { split, streamResponse } from "./simulated-stream.ts";
import { simulatedText } from "./simulated-text.ts";
import { BYTES_PER_TOKEN, capped, type Completion } from "./simulated-tokens.ts";
import { type Timer, wait } from "./simulated-wait.ts";

export type SimulatedDeps = {
  /** Wall clock, ms since 1970. */
  now: () => number;
  timer: Timer;
  signal: AbortSignal;
  /** Which attempt of its call this is, from 1. */
  attempt: number;
};

const PROTOCOLS = { chat, completions, embeddings, responses, messages };

/** What is asked for, by the part of OpenAI's or Anthropic's API that takes such a request body. */
export type SimulatedEndpoint = keyof typeof PROTOCOLS;

/**
 * Answers a request body like the endpoint's own server, as a stream if it asks for one. Rejects with the signal's
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

  const request = parsedBody(requestBody);
  if (request === null) return refuse(400, "the body must be a JSON object");
  const id = typeof request["model"] === "string" ? request["model"] : "";
  const parsed = parseSimulatedModel(id);
  if (!parsed.ok) return refuse(parsed.status, parsed.message);
  const read = protocol.read(request);
  if (!read.ok) return refuse(400, read.message);

  const { model } = parsed;
  const prompt = read.asked.prompts.join("\n");
  await wait(latencyMs(model, prompt), deps.timer, deps.signal);
  const { failure } = model;
  if (failure !== null && deps.attempt <= failure.times && fraction(`fail:${prompt}`) < failure.rate) {
    const headers = failure.retryAfterMs === null ? {} : { "retry-after-ms": String(failure.retryAfterMs) };
    return refuse(failure.status, `simulated failure with status ${failure.status}`, headers);
  }

  const job = jobOf(model, { request, asked: read.asked, model: id, id: idOf(prompt), createdMs: deps.now() });
  if (job === null) return refuse(400, `the choices together would be longer than ${BODY_BYTES_MAX} bytes`);
  if (protocol.frames === null || request["stream"] !== true) return jsonResponse(200, {}, protocol.document(job));
  const frames = protocol.frames(job, (text) => split(text, model.pace.chunks));
  return streamResponse(frames, model.pace, deps.timer, deps.signal);
}

function parsedBody(text: string): Record<string, unknown> | null {
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) ? body : null;
  } catch {
    return null;
  }
}

function latencyMs({ minMs, maxMs }: SimulatedModel, prompt: string): number {
  return minMs === maxMs ? minMs : minMs + Math.floor(fraction(`wait:${prompt}`) * (maxMs - minMs + 1));
}

type Order = { request: Record<string, unknown>; asked: Asked; model: string; id: string; createdMs: number };

/** Null if many choices of a long answer would fill the memory that all requests share. */
function jobOf({ name }: SimulatedModel, { request, asked, model, id, createdMs }: Order): Job | null {
  const texts: readonly string[] =
    asked.choices === 0 ? [] : asked.prompts.map((prompt) => simulatedText(name, prompt));
  const completions: Completion[] = [];
  let completionTokens = 0;
  for (const text of texts) {
    const completion = capped(text, asked.capTokens);
    completionTokens += completion.tokens * asked.choices;
    for (let choice = 0; choice < asked.choices; choice++) completions.push(completion);
  }
  if (asked.choices > 1 && completionTokens * BYTES_PER_TOKEN > BODY_BYTES_MAX) return null;
  return { request, asked, model, id, createdS: Math.floor(createdMs / 1_000), completions, completionTokens };
}
