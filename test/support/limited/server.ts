/**
 * A provider on a loopback port with a limiter in front of it. It speaks OpenAI's chat completions and Anthropic's
 * messages, as JSON and as streams, echoes the last message, and records what it admitted, what it refused and when.
 * Imports no test framework, so that benchmarks use it too.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { completion, completionEvents, readChat, type Chat } from "../completion.ts";
import type { Latency } from "./latency.ts";
import { steady } from "./latency.ts";
import type { Limiter, Rejection } from "./limiter.ts";

export type LimitedCall = {
  /** Time since the server started, ms. */
  atMs: number;
  prompt: string;
  /** 200 = admitted. */
  status: number;
  /** When its answer was complete, on the same clock; null = it is not, or the client left. */
  answeredMs: number | null;
};

export type LimitedServer = {
  /** Without a path: Anthropic's base URL. */
  origin: string;
  /** Ends in `/v1`: OpenAI's base URL. */
  baseUrl: string;
  /** All requests in the order of their arrival. */
  calls: LimitedCall[];
  admitted(): LimitedCall[];
  rejected(): LimitedCall[];
  inFlight(): number;
  peakInFlight(): number;
  /** The present time on the clock of `calls`, ms. */
  clockMs(): number;
  /** Forgets the calls so far and the peak. */
  forget(): void;
  stop(): Promise<void>;
};

/** Connections that may wait to be accepted: a fan-out of 512 arrives as one burst. */
const BACKLOG = 4_096;
const BYTES_PER_TOKEN = 4;

/** Starts a server whose calls take `latency` (20 ms if it is not given). */
export async function startLimitedServer(limiter: Limiter, latency: Latency = steady(20)): Promise<LimitedServer> {
  const provider = new Provider(limiter, latency);
  const server = createServer((request, response) => {
    provider.serve(request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: BACKLOG }, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no TCP address");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    origin,
    baseUrl: `${origin}/v1`,
    calls: provider.calls,
    admitted: () => provider.calls.filter(({ status }) => status === 200),
    rejected: () => provider.calls.filter(({ status }) => status !== 200),
    inFlight: () => provider.inFlight,
    peakInFlight: () => provider.peakInFlight,
    clockMs: () => provider.nowMs(),
    forget: () => {
      provider.calls.length = 0;
      provider.peakInFlight = provider.inFlight;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

class Provider {
  readonly calls: LimitedCall[] = [];
  inFlight = 0;
  peakInFlight = 0;
  readonly #limiter: Limiter;
  readonly #latency: Latency;
  readonly #startedAtMs = performance.now();
  #admitted = 0;

  constructor(limiter: Limiter, latency: Latency) {
    this.#limiter = limiter;
    this.#latency = latency;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = request.url?.endsWith("/messages") === true ? ANTHROPIC : OPENAI;
    const text = await textOf(request);
    const chat = readChat(text);
    if (chat === null) return send(response, 400, form.error(NOT_A_CHAT), {});
    const verdict = this.#limiter.arrive({
      nowMs: Date.now(),
      inFlight: this.inFlight,
      promptTokens: Math.ceil(chat.bytes / BYTES_PER_TOKEN),
      capTokens: chat.capTokens,
    });
    const call: LimitedCall = { atMs: this.nowMs(), prompt: chat.prompt, status: 200, answeredMs: null };
    this.calls.push(call);
    if (verdict.rejection !== null) {
      const { status, headers } = verdict.rejection;
      call.status = status;
      call.answeredMs = call.atMs;
      return send(response, status, form.error(verdict.rejection), headers);
    }
    await this.#answer(call, chat, { form, response, isStream: /"stream":\s*true/.test(text) });
  }

  async #answer(
    call: LimitedCall,
    chat: Chat,
    { form, response, isStream }: { form: Form; response: ServerResponse; isStream: boolean },
  ): Promise<void> {
    this.inFlight += 1;
    this.peakInFlight = Math.max(this.peakInFlight, this.inFlight);
    // The client may leave at any point, so leaving the flight hangs on the response's end, not on this function's.
    const gone = new Promise<void>((resolve) => response.once("close", resolve));
    void gone.then(() => {
      this.inFlight -= 1;
      if (response.writableFinished) call.answeredMs = this.nowMs();
    });
    const number = this.#admitted;
    this.#admitted += 1;
    await sleep(this.#latency({ number, inFlight: this.inFlight }));
    const nowMs = Date.now();
    this.#limiter.answered(completion(chat).usage?.completion_tokens ?? 0, nowMs);
    const headers = this.#limiter.headersAt(nowMs);
    if (isStream) send(response, 200, form.events(chat), { ...headers, "content-type": "text/event-stream" });
    else send(response, 200, form.whole(chat), headers);
  }

  nowMs(): number {
    return performance.now() - this.#startedAtMs;
  }
}

/** How one protocol writes what the server says. */
type Form = { error(rejection: Rejection): string; whole(chat: Chat): string; events(chat: Chat): string };

const NOT_A_CHAT: Rejection = { status: 400, code: "invalid_request_error", message: "not a chat", headers: {} };

const OPENAI: Form = {
  error: ({ code, message }) => JSON.stringify({ error: { message, type: code, param: null, code } }),
  whole: (chat) => JSON.stringify(completion(chat)),
  events: completionEvents,
};

const ANTHROPIC: Form = {
  error: ({ code, message }) => JSON.stringify({ type: "error", error: { type: code, message } }),
  whole: (chat) => JSON.stringify(messageOf(chat)),
  events: (chat) => {
    const { content, usage, ...message } = messageOf(chat);
    const text = content[0]?.text ?? "";
    const events: { type: string; [field: string]: unknown }[] = [
      { type: "message_start", message: { ...message, content: [], usage: { ...usage, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  },
};

function messageOf(chat: Chat) {
  const { choices, usage } = completion(chat);
  const [choice] = choices;
  return {
    id: "msg_test",
    type: "message",
    role: "assistant",
    model: chat.model,
    content: [{ type: "text", text: choice?.message.content ?? "" }],
    stop_reason: choice?.finish_reason === "length" ? "max_tokens" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: usage?.prompt_tokens ?? 0, output_tokens: usage?.completion_tokens ?? 0 },
  };
}

function send(response: ServerResponse, status: number, text: string, headers: Record<string, string>): void {
  const framing = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  response.writeHead(status, { ...framing, ...headers });
  response.end(text);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
