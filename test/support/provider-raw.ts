/**
 * What the provider of the clients' tests answers by hand, byte for byte: endpoints that aimock lacks, and the ways in
 * which an answer goes wrong. A model called `raw-…` asks for one of the latter.
 */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { EMBEDDING, tokensIn, type Exchange, type Tokens } from "./provider-exchange.ts";

type Bill = (tokens: Tokens) => number;

const asked = z.looseObject({
  model: z.string().catch(""),
  stream: z.boolean().catch(false),
  prompt: z.string().catch(""),
  input: z.unknown().optional(),
  max_tokens: z.number().catch(1_000),
  encoding_format: z.string().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().catch(false) }).catch({ include_usage: false }),
});
type ChatRequest = z.infer<typeof asked>;

/** Refuses a request without the provider's key, quoting what it was sent, as providers do. */
export function refusesKey({ headers }: Exchange, response: ServerResponse, apiKey: string): boolean {
  const sent = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "") ?? "";
  if (sent === apiKey) return false;
  const error = { message: `Incorrect API key provided: ${String(sent)}`, type: "auth", code: "invalid_api_key" };
  json(response, 401, { error: { ...error, param: null } });
  return true;
}

/** Answers what is this file's; false where it is not. */
export function answerRaw({ method, path, json: body }: Exchange, response: ServerResponse, bill: Bill): boolean {
  const route = `${method} ${path.replace(/\?.*$/, "").replace(/^\/api/, "")}`;
  const kept = /^(\w+) \/v1\/responses\/([^/]+)(\/\w+)?$/.exec(route);
  if (kept !== null) return answerKept(response, { method: kept[1], id: kept[2] ?? "", rest: kept[3] });
  if (route === "GET /v1/models") {
    const data = ["vendor/model", "echo"].map((id) => ({ id, object: "model", created: 1_700_000_000, owned_by: "p" }));
    return json(response, 200, { object: "list", data });
  }
  const request = asked.parse(body ?? {});
  if (route === "POST /v1/messages/count_tokens") return json(response, 200, { input_tokens: 12 });
  if (route === "POST /v1/completions") return answerCompletions(request, response, bill);
  if (route === "POST /v1/embeddings") return answerEmbeddings(request, response, bill);
  if (!request.model.startsWith("raw-")) return false;
  const fault = request.model.slice("raw-".length);
  if (route === "POST /v1/messages") return messageFault(fault, response);
  if (route === "POST /v1/responses") return responsesFault(fault, response);
  return chatFault(fault, request, response, bill);
}

/** Everything about a response that is kept here, whoever made it: whose it is is the gateway's to know. */
function answerKept(
  response: ServerResponse,
  { method, id, rest }: { method: string | undefined; id: string; rest: string | undefined },
): boolean {
  if (rest === "/input_items") {
    const item = { id: "msg_1", type: "message", role: "user", content: [{ type: "input_text", text: "kept" }] };
    return json(response, 200, { object: "list", data: [item], first_id: "msg_1", last_id: "msg_1", has_more: false });
  }
  if (method === "DELETE") return json(response, 200, { id, object: "response", deleted: true });
  const status = rest === "/cancel" ? "cancelled" : "completed";
  return json(response, 200, { id, object: "response", created_at: 1_795_000_000, model: "echo", status, output: [] });
}

function answerCompletions(request: ChatRequest, response: ServerResponse, bill: Bill): boolean {
  const { model, prompt, max_tokens: capTokens } = request;
  const text = prompt.slice(0, capTokens * 4);
  const tokens = { prompt: tokensIn(prompt), completion: tokensIn(text) };
  bill(tokens);
  const head = { id: "cmpl-1", object: "text_completion", created: 1_795_000_000, model };
  const choice = (piece: string, reason: string | null) => ({
    index: 0,
    text: piece,
    logprobs: null,
    finish_reason: reason,
  });
  if (!request.stream) return json(response, 200, { ...head, choices: [choice(text, "stop")], usage: usageOf(tokens) });
  const events: unknown[] = [
    { ...head, choices: [choice(text, null)] },
    { ...head, choices: [choice("", "stop")] },
  ];
  if (request.stream_options.include_usage) events.push({ ...head, choices: [], usage: usageOf(tokens) });
  begin(response).end(`${events.map(sse).join("")}data: [DONE]\n\n`);
  return true;
}

/** A model called `base64…` obeys the requested format; every other answers with numbers in any case. */
function answerEmbeddings(
  { model, input, encoding_format }: ChatRequest,
  response: ServerResponse,
  bill: Bill,
): boolean {
  const inputs: unknown[] = Array.isArray(input) ? input : [input];
  const tokens = { prompt: tokensIn(inputs.join("")), completion: 0 };
  bill(tokens);
  const isBase64 = model.startsWith("base64") && encoding_format === "base64";
  const embedding = isBase64 ? Buffer.from(Float32Array.from(EMBEDDING).buffer).toString("base64") : EMBEDDING;
  const data = inputs.map((_, index) => ({ object: "embedding", index, embedding }));
  const usage = { prompt_tokens: tokens.prompt, total_tokens: tokens.prompt };
  return json(response, 200, { object: "list", data, model, usage });
}

/** A text whose characters have one to four bytes. */
export const RAW_TEXT = "Zürich 🏔 東京";

/** JSON as no serialiser writes it: a number beyond 2^53, unknown fields, white space, its own order. */
export const RAW_JSON =
  '{ "x_seed": 12345678901234567890123, "usage" : {"total_tokens":7,"prompt_tokens":4,"completion_tokens":3},\n' +
  '  "choices":[{"message":{"content":"fixed","role":"assistant","x":{"b":1,"a":[1.0,1e2]}},"index":0,' +
  '"finish_reason":"stop"}],"object":"chat.completion","model":"raw-model-0001","id":"chatcmpl-raw","created":1795000000}';

const RAW_TOKENS: Tokens = { prompt: 4, completion: 3 };

function chatFault(fault: string, { stream }: ChatRequest, response: ServerResponse, bill: Bill): boolean {
  const half = sse(chunk({ role: "assistant", content: "Zü" })) + sse(chunk({ content: "rich" }));
  switch (fault) {
    case "error":
      begin(response).end(half + sse({ error: ERROR }));
      return true;
    case "eof":
      begin(response).end(half);
      return true;
    case "reset":
      begin(response).write(half, () => setTimeout(() => response.socket?.resetAndDestroy(), 20));
      return true;
    case "stalled":
      (stream ? begin(response) : begin(response, "application/json")).write(stream ? half : '{"id":');
      return true;
    case "split":
      bill(RAW_TOKENS);
      return drip(begin(response), Buffer.from(wholeStream()), 7);
    case "error-200":
      return json(response, 200, { error: { message: "no credits left", code: 402 } });
    case "huge":
      bill(RAW_TOKENS);
      return drip(begin(response, "application/json"), Buffer.from(hugeJson()), 65_536);
    case "fixed":
    case "limits":
      bill(RAW_TOKENS);
      return whole(response, RAW_JSON, fault === "limits" ? LIMITS : {});
    case "chunked":
      bill(RAW_TOKENS);
      return drip(begin(response, "application/json"), Buffer.from(RAW_JSON), 9);
    case "gzip": {
      bill(RAW_TOKENS);
      const packed = gzipSync(stream ? wholeStream() : RAW_JSON);
      const type = stream ? "text/event-stream" : "application/json";
      response.writeHead(200, { "content-type": type, "content-encoding": "gzip", "content-length": packed.length });
      response.end(packed);
      return true;
    }
    case "html":
      response.writeHead(502, { "content-type": "text/html" }).end("<html><h1>Bad Gateway</h1></html>");
      return true;
    case "hang":
      return true;
    case "mute":
      response.writeHead(500).end();
      return true;
    case "unstreamed":
      bill(RAW_TOKENS);
      return whole(response, RAW_JSON);
    case "half":
      response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
      response.write(RAW_JSON.slice(0, 100), () => setTimeout(() => response.socket?.resetAndDestroy(), 20));
      return true;
    case "no-usage":
      return whole(response, RAW_JSON.replace(/"usage" : \{[^}]*\},/, ""));
    default: {
      const message = `status ${fault}, said the provider`;
      return json(response, Number(fault), { error: { ...ERROR, message } }, LIMITS);
    }
  }
}

/** The provider's rate limit headers. */
const LIMITS = {
  "x-ratelimit-limit-requests": "60000",
  "x-ratelimit-remaining-tokens": "149984",
  "x-ratelimit-reset-tokens": "6m0s",
};

const ERROR = { message: "the model fell over", type: "server_error", param: null, code: "model_crashed" };

function messageFault(fault: string, response: ServerResponse): boolean {
  const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  if (fault === "overloaded") return json(response, 529, error);
  if (fault === "mute") {
    response.writeHead(529).end();
    return true;
  }
  const message = { id: "msg_1", type: "message", role: "assistant", model: "claude", content: [], stop_reason: null };
  const usage = { input_tokens: 9, output_tokens: 1 };
  const half =
    named({ type: "message_start", message: { ...message, stop_sequence: null, usage } }) +
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
    named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "half" } });
  begin(response).end(fault === "error" ? half + named(error) : half);
  return true;
}

function responsesFault(fault: string, response: ServerResponse): boolean {
  const kept = {
    id: "resp_raw",
    object: "response",
    created_at: 1_795_000_000,
    model: "m",
    status: "in_progress",
    output: [],
  };
  const half =
    named({ type: "response.created", sequence_number: 0, response: kept }) +
    named({ type: "response.in_progress", sequence_number: 1, response: kept });
  const error = named({ type: "error", sequence_number: 2, code: "server_error", message: "fell over", param: null });
  begin(response).end(fault === "error" ? half + error : half);
  return true;
}

function chunk(delta: object, finish_reason: string | null = null, more: object = {}): object {
  const head = { id: "chatcmpl-raw", object: "chat.completion.chunk", created: 1_795_000_000, model: "raw-model-0001" };
  return { ...head, choices: [{ index: 0, delta, finish_reason }], ...more };
}

/** A stream with comments and CRLF, whose last chunks are its usage and its end. */
function wholeStream(): string {
  const events = [chunk({ role: "assistant", content: RAW_TEXT }), chunk({}, "stop")]
    .map(sse)
    .join(": working\r\n\r\n");
  return `${events}${sse({ ...chunk({}), choices: [], usage: usageOf(RAW_TOKENS) })}data: [DONE]\r\n\r\n`;
}

/** Larger than what is read of an answer for `/query`. */
function hugeJson(): string {
  return RAW_JSON.replace('"fixed"', `"${"x".repeat(3_000_000)}"`);
}

function usageOf({ prompt, completion }: Tokens) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function sse(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function named(data: { type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\n${sse(data)}`;
}

function begin(response: ServerResponse, type = "text/event-stream"): ServerResponse {
  response.writeHead(200, { "content-type": type });
  response.flushHeaders();
  return response;
}

/** Sends bytes in small pieces, each a turn of the event loop after the one before. */
function drip(response: ServerResponse, bytes: Buffer, size: number): boolean {
  const next = (from: number): void => {
    if (from >= bytes.length) return void response.end();
    response.write(bytes.subarray(from, from + size), () => setImmediate(next, from + size));
  };
  next(0);
  return true;
}

function whole(response: ServerResponse, text: string, headers: Record<string, string> = {}): boolean {
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
  return true;
}

function json(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): boolean {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
  return true;
}
