/** Requests in OpenAI's form, sent through the binding of Workers AI. */
import type { Endpoint } from "../call.ts";
import { isRecord } from "../text/json/record.ts";
import { readBody } from "./read-body.ts";
import { completionOf, embeddingsOf, errorOf, parsed, type Stated } from "./formats/workers-ai/answers.ts";
import { ChatEvents } from "./formats/workers-ai/events.ts";
import { chatInputs, embeddingInputs, type ModelInputs } from "./formats/workers-ai/inputs.ts";
import type { ModelBinding, RunOptions } from "./config/binding.ts";

export type BoundFetchDeps = {
  binding: ModelBinding;
  gateway?: string;
  /** ms since 1970. */
  now: () => number;
  /** A new id for each answer. */
  id: () => string;
};

/** A fetch of an endpoint whose requests are calls of the binding. The URL is of no importance: the body names the model. */
export function boundFetch(
  endpoint: Endpoint,
  { binding, gateway, now, id }: BoundFetchDeps,
): (url: string, init: RequestInit) => Promise<Response> {
  return async (_url, { body, signal }) => {
    const request = parsed(await new Response(body ?? null).text());
    const read = inputsOf(endpoint, request);
    if (!read.ok) return refusal(read.message);
    const options: RunOptions = {
      returnRawResponse: true,
      ...(signal === undefined || signal === null ? {} : { signal }),
      ...(gateway === undefined ? {} : { gateway: { id: gateway } }),
    };
    const answer = await binding.run(read.model, read.inputs, options);
    const stated: Stated = { id: id(), created: Math.floor(now() / 1000), model: read.model, cap: read.cap };
    return await turned(answer, { endpoint, stated, base64: read.base64 });
  };
}

function inputsOf(endpoint: Endpoint, request: unknown): ModelInputs {
  if (!isRecord(request)) return { ok: false, message: "the request is no JSON object" };
  return endpoint === "embeddings" ? embeddingInputs(request) : chatInputs(request);
}

/** A request that the binding cannot take: nothing was sent. */
function refusal(message: string): Response {
  return Response.json({ error: { message, type: "invalid_request_error", code: null } }, { status: 400 });
}

async function turned(
  answer: Response,
  { endpoint, stated, base64 }: { endpoint: Endpoint; stated: Stated; base64: boolean },
): Promise<Response> {
  const { status, ok, body } = answer;
  const headers = new Headers(answer.headers);
  // They are those of the bytes that came.
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  if (ok && body !== null && (headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    return new Response(body.pipeThrough(chunksOf(stated)), { status, headers });
  }
  const whole = await readBody(answer);
  if (!whole.ok) throw new Error(`the binding's answer is ${whole.why}`);
  if (!ok) {
    const failure = errorOf(status, whole.text);
    return new Response(failure.text, { status: failure.status, headers });
  }
  const json = parsed(whole.text);
  const stands = endpoint === "embeddings" ? embeddingsOf(json, stated, base64) : completionOf(json, stated);
  return new Response(stands === json ? whole.text : JSON.stringify(stands), { status, headers });
}

function chunksOf(stated: Stated): TransformStream<Uint8Array, Uint8Array> {
  const events = new ChatEvents(stated);
  return new TransformStream({
    transform(bytes, controller) {
      for (const piece of events.feed(bytes)) if (piece.length > 0) controller.enqueue(piece);
    },
    flush(controller) {
      const rest = events.rest();
      if (rest.length > 0) controller.enqueue(rest);
    },
  });
}
