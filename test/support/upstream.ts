/**
 * An OpenAI-like provider on a loopback port, for tests and benchmarks that see the gateway over HTTP only. It answers
 * chat completions and counts what it saw. Built on node:http alone and kept lean, so that it is not what a benchmark
 * measures.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { completion, errorBody, faultBody, readChat, streamedCompletion } from "./completion.ts";
import type { Chat } from "./completion.ts";
import { Latch, Meeting } from "./meeting.ts";
import { drawOf, fails, steer } from "./steering.ts";
import type { Fault } from "./steering.ts";

/** One request as the handler sees it. `arrival` counts from 0; `send` counts sends of the same prompt from 1. */
export type UpstreamCall = Chat & { path: string; arrival: number; send: number; apiKey: string | null };

/** How to answer one call. All fields are optional: `{}` echoes the prompt at once. */
export type UpstreamAnswer = {
  delayMs?: number;
  text?: string;
  /** The text as a stream: each piece is sent when it is there. */
  pieces?: Iterable<string> | AsyncIterable<string>;
  /** What the provider says that the call cost, USD. */
  costUsd?: number;
  /** An error status; with `fault`, the status of the broken answer. */
  status?: number;
  retryAfterS?: number;
  fault?: Fault;
  /** Answer only once this is resolved. */
  after?: Promise<unknown>;
};

/** What the upstream saw since it started or since `forget`. `sends` is by prompt; it is empty with `recordsPrompts: false`. */
export type UpstreamCounters = {
  requests: number;
  inFlight: number;
  peakInFlight: number;
  /** Requests whose client left before the answer. */
  abandoned: number;
  sends: Map<string, number>;
  apiKeys: Set<string>;
};

export type TestUpstream = {
  /** Ends in `/v1`: a `base_url` for UPSTREAMS. */
  baseUrl: string;
  /** A `base_url` whose words steer every call (grammar: steering.ts), such as `delay/50/barrier/64`. */
  steered(words: string): string;
  counters: UpstreamCounters;
  /** Opens a latch (`latch/NAME`, see steering.ts): the calls that wait at it are answered, and later ones at once. */
  open(latch: string): void;
  forget(): void;
  stop(): Promise<void>;
};

/** Connections that may wait to be accepted: a fan-out of 512 arrives as one burst. */
const BACKLOG = 4_096;

/**
 * Starts an upstream. `handler` decides the answer of each call (default: an echo, steered by the URL, the model and
 * the prompt). `recordsPrompts: false` keeps no prompts, for benchmarks. `port`: default a free one.
 */
export async function startUpstream(
  handler: (call: UpstreamCall) => UpstreamAnswer = () => ({}),
  options: { recordsPrompts?: boolean; port?: number } = {},
): Promise<TestUpstream> {
  const counters = freshCounters();
  const answerer = new Answerer(counters, handler, options.recordsPrompts ?? true);
  const server = createServer((request, response) => {
    answerer.serve(request, response).catch((error: unknown) => response.destroy(asError(error)));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) =>
    server.listen({ host: "127.0.0.1", port: options.port ?? 0, backlog: BACKLOG }, resolve),
  );
  const origin = `http://127.0.0.1:${portOf(server.address())}`;
  return {
    baseUrl: `${origin}/v1`,
    steered: (words) => `${origin}/${words}/v1`,
    counters,
    open: (latch) => answerer.latchOf(latch).open(),
    forget: () => Object.assign(counters, freshCounters(), { inFlight: counters.inFlight }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

class Answerer {
  readonly #counters: UpstreamCounters;
  readonly #handler: (call: UpstreamCall) => UpstreamAnswer;
  readonly #recordsPrompts: boolean;
  readonly #meetings = new Map<string, Meeting>();
  readonly #latches = new Map<string, Latch>();

  constructor(counters: UpstreamCounters, handler: (call: UpstreamCall) => UpstreamAnswer, recordsPrompts: boolean) {
    this.#counters = counters;
    this.#handler = handler;
    this.#recordsPrompts = recordsPrompts;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "/";
    const body = await textOf(request);
    if (path.endsWith("/models")) return reply(response, 200, JSON.stringify({ object: "list", data: [] }));
    const chat = path.endsWith("/v1/chat/completions") ? readChat(body) : null;
    if (!chat) return reply(response, 400, JSON.stringify(errorBody(400, "not a chat completion request")));
    const counters = this.#counters;
    const call: UpstreamCall = { ...chat, path, ...this.#count(chat.prompt, request) };
    // The client may leave at any point, so leaving the flight hangs on the response's end, not on this function's.
    response.once("close", () => {
      counters.inFlight -= 1;
      if (!response.writableFinished) counters.abandoned += 1;
    });
    await this.#answer(call, response);
  }

  latchOf(name: string): Latch {
    const latch = this.#latches.get(name) ?? new Latch();
    this.#latches.set(name, latch);
    return latch;
  }

  #count(prompt: string, request: IncomingMessage): { arrival: number; send: number; apiKey: string | null } {
    const counters = this.#counters;
    const arrival = counters.requests;
    counters.requests += 1;
    counters.inFlight += 1;
    counters.peakInFlight = Math.max(counters.peakInFlight, counters.inFlight);
    const apiKey = request.headers.authorization?.replace(/^Bearer /, "") ?? null;
    if (apiKey !== null) counters.apiKeys.add(apiKey);
    if (!this.#recordsPrompts) return { arrival, send: 1, apiKey };
    const send = (counters.sends.get(prompt) ?? 0) + 1;
    counters.sends.set(prompt, send);
    return { arrival, send, apiKey };
  }

  async #answer(call: UpstreamCall, response: ServerResponse): Promise<void> {
    const answer: UpstreamAnswer = { ...this.#steered(call), ...this.#handler(call) };
    if (answer.delayMs !== undefined && answer.delayMs > 0) await sleep(answer.delayMs);
    if (answer.after && (await answer.after) === false) {
      return reply(response, 504, JSON.stringify(errorBody(504, "the barrier was not met")));
    }
    const headers = answer.retryAfterS === undefined ? {} : { "retry-after": String(answer.retryAfterS) };
    if (answer.fault === "hang") return;
    if (answer.fault === "reset") return breakOff(response);
    if (answer.fault) {
      const { type, text } = faultBody(answer.fault, call);
      return reply(response, answer.status ?? 200, text, { ...headers, "content-type": type });
    }
    if (answer.status !== undefined && answer.status >= 400) {
      return reply(response, answer.status, JSON.stringify(errorBody(answer.status)), headers);
    }
    if (answer.pieces) return await stream(response, streamedCompletion(call, answer.pieces));
    const whole = completion(call, answer.text === undefined ? {} : { text: answer.text });
    const billed = answer.costUsd === undefined ? whole : { ...whole, usage: { ...whole.usage, cost: answer.costUsd } };
    reply(response, 200, JSON.stringify(billed), headers);
  }

  #steered(call: UpstreamCall): UpstreamAnswer {
    const steering = steer(call);
    const answer: UpstreamAnswer = { delayMs: steering.delayMs + steering.jitterMs * drawOf(call.prompt) };
    if (steering.barrier !== null) {
      const name = `${steering.key ?? ""}/${steering.barrier}`;
      const meeting = this.#meetings.get(name) ?? new Meeting(steering.barrier);
      this.#meetings.set(name, meeting);
      answer.after = meeting.arrive(steering.withinMs + (answer.delayMs ?? 0));
    }
    if (steering.latch !== null) {
      const passed = this.latchOf(steering.latch).arrive();
      answer.after = Promise.all([passed, answer.after]).then(([, isMet]) => isMet);
    }
    const isOpen = (latch: string): boolean => this.#latches.get(latch)?.isOpen === true;
    if (!fails(steering, call.prompt, call.send, isOpen)) return answer;
    if (steering.status !== null) answer.status = steering.status;
    if (steering.fault !== null) answer.fault = steering.fault;
    if (steering.retryAfterS !== null) answer.retryAfterS = steering.retryAfterS;
    return answer;
  }
}

function freshCounters(): UpstreamCounters {
  return {
    requests: 0,
    inFlight: 0,
    peakInFlight: 0,
    abandoned: 0,
    sends: new Map(),
    apiKeys: new Set(),
  };
}

function reply(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

async function stream(response: ServerResponse, events: AsyncIterable<string>): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const event of events) response.write(event);
  response.end();
}

function breakOff(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
  response.write('{"id":"chatcmpl-test",', () => response.destroy());
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve, reject) => {
    request.once("end", resolve);
    request.once("error", reject);
  });
  return Buffer.concat(chunks).toString("utf8");
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the upstream has no TCP address");
  return address.port;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
