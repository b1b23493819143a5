/**
 * A provider on a loopback port that speaks Anthropic's Messages API, as strictly as the real one: it refuses fields it
 * does not know, keeps the cap it is given and a bill of its own. It echoes the last message.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";

/** nano-USD per token. */
export type AnthropicPrices = { input: number; cacheRead: number; cacheWrite: number; output: number };

/** How to answer one call; `{}` echoes. `words` are the error's message; `cache` counts go on top of the prompt's tokens. */
export type AnthropicAnswer = {
  error?: { status: number; type: string; words?: string; retryAfterS?: number };
  cache?: { read: number; write: number };
};

export type AnthropicServer = {
  /** Without a path, as Anthropic's own clients take it. */
  baseUrl: string;
  /** What arrived, in order; refused requests too. */
  seen: { path: string; headers: IncomingMessage["headers"]; body: unknown }[];
  /** What the answers given so far cost. */
  billedNanoUsd(): number;
  forget(): void;
  stop(): Promise<void>;
};

const textBlock = z.strictObject({ type: z.literal("text"), text: z.string().min(1), cache_control: z.unknown() });
const block = z.union([textBlock.partial({ cache_control: true }), z.looseObject({ type: z.literal("image") })]);
const content = z.union([z.string().min(1), z.array(block)]);

const messagesRequest = z.strictObject({
  model: z.string(),
  max_tokens: z.int().min(1),
  messages: z.array(z.strictObject({ role: z.enum(["user", "assistant"]), content })).min(1),
  system: content.optional(),
  temperature: z.number().min(0).max(1).optional(),
  stop_sequences: z.array(z.string()).optional(),
  top_k: z.int().optional(),
});

type MessagesRequest = z.infer<typeof messagesRequest>;

/** Starts a server that knows one key. `handler` decides on each call by its prompt and how often that was sent before. */
export async function startAnthropicServer(
  { apiKey, prices }: { apiKey: string; prices: AnthropicPrices },
  handler: (prompt: string, earlier: number) => AnthropicAnswer = () => ({}),
): Promise<AnthropicServer> {
  const seen: AnthropicServer["seen"] = [];
  const sends = new Map<string, number>();
  let billedNanoUsd = 0;

  const answer = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const { headers, url: path = "/", method } = request;
    const body = jsonOf(text);
    seen.push({ path, headers, body });
    if (method !== "POST" || path !== "/v1/messages") return fail(response, 404, "not_found_error", "Not found");
    if (headers["x-api-key"] !== apiKey) {
      const words = `invalid x-api-key ${String(headers["x-api-key"])}`;
      return fail(response, 401, "authentication_error", words);
    }
    if (headers["anthropic-version"] !== "2023-06-01") {
      return fail(response, 400, "invalid_request_error", "anthropic-version: header is required");
    }
    const parsed = messagesRequest.safeParse(body);
    if (!parsed.success) return fail(response, 400, "invalid_request_error", z.prettifyError(parsed.error));
    const prompt = textOf(parsed.data.messages.at(-1)?.content ?? "");
    const earlier = sends.get(prompt) ?? 0;
    sends.set(prompt, earlier + 1);
    const { error, cache = { read: 0, write: 0 } } = handler(prompt, earlier);
    if (error) return fail(response, error.status, error.type, error.words ?? error.type, error.retryAfterS);
    const message = messageFor(parsed.data, prompt, cache);
    const { usage } = message;
    billedNanoUsd +=
      usage.input_tokens * prices.input +
      usage.cache_read_input_tokens * prices.cacheRead +
      usage.cache_creation_input_tokens * prices.cacheWrite +
      usage.output_tokens * prices.output;
    reply(response, 200, message);
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => answer(request, response, Buffer.concat(chunks).toString("utf8")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no TCP address");
  return {
    baseUrl: `http://127.0.0.1:${address.port}`,
    seen,
    billedNanoUsd: () => billedNanoUsd,
    forget: () => {
      seen.length = 0;
      billedNanoUsd = 0;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An echo within the cap, a token being four bytes, after a thought that is no text. */
function messageFor(request: MessagesRequest, prompt: string, cache: { read: number; write: number }) {
  const bytes = Buffer.from(prompt, "utf8");
  const tokens = Math.ceil(bytes.byteLength / 4);
  const outputTokens = Math.min(tokens, request.max_tokens);
  const texts = [...request.messages.map((message) => message.content), request.system ?? ""].map(textOf);
  return {
    id: "msg_test",
    type: "message",
    role: "assistant",
    model: `${request.model}-20260901`,
    content: [
      { type: "thinking", thinking: "an echo, then", signature: "s" },
      { type: "text", text: bytes.subarray(0, outputTokens * 4).toString("utf8") },
    ],
    stop_reason: tokens > request.max_tokens ? "max_tokens" : "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: Math.ceil(Buffer.byteLength(texts.join("")) / 4),
      cache_creation_input_tokens: cache.write,
      cache_read_input_tokens: cache.read,
      output_tokens: outputTokens,
    },
  };
}

function textOf(value: z.infer<typeof content>): string {
  if (typeof value === "string") return value;
  return value.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}

function fail(response: ServerResponse, status: number, type: string, message: string, retryAfterS?: number): void {
  const headers = retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) };
  reply(response, status, { type: "error", error: { type, message }, request_id: "req_test" }, headers);
}

function reply(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
