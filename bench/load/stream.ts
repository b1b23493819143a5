/** The stream that the bench's upstream sends, and a load of clients that read it: they know how many events it must have. */
import { connect, type Socket } from "node:net";
import type { LoadPlan } from "./load.ts";
import { MODEL } from "./prompts.ts";
import { percentile } from "../stats.ts";

/** Events with content in one stream. */
const CONTENT_EVENTS = 200;
/** Length of such an event, bytes. */
const EVENT_BYTES = 200;

/**
 * A chat completion as server-sent events: content, the end, usage if it was requested, and the mark that the stream is
 * whole.
 */
export function streamEvents(hasUsage: boolean): string[] {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_763_712_000, model: MODEL };
  const event = (fields: Record<string, unknown>) => `data: ${JSON.stringify({ ...head, ...fields })}\n\n`;
  const choice = (delta: Record<string, unknown>, finish_reason: string | null) =>
    event({ choices: [{ index: 0, delta, finish_reason }] });
  const bareBytes = choice({ content: "" }, null).length;
  const words = " and one more word".repeat(20).slice(0, EVENT_BYTES - bareBytes);
  // Each is another: LiteLLM ends a stream that repeats itself.
  const content = (number: number): string => `${number}${words}`.slice(0, words.length);
  const usage = { prompt_tokens: 12, completion_tokens: CONTENT_EVENTS, total_tokens: 12 + CONTENT_EVENTS };
  return [
    ...Array.from({ length: CONTENT_EVENTS }, (_, number) => choice({ content: content(number) }, null)),
    choice({}, "stop"),
    ...(hasUsage ? [event({ choices: [], usage })] : []),
    "data: [DONE]\n\n",
  ];
}

/** A completion of the bench as a stream of one event with content, with the usage that it has without a stream. */
export function shortStreamOf(content: string): string {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_763_712_000, model: MODEL };
  const usage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };
  const events = [
    { ...head, choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { ...head, choices: [], usage },
  ];
  return [...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), "data: [DONE]\n\n"].join("");
}

/** The request for the stream, whose client wants the event with usage or not. */
export function streamBody(prompt: string, hasUsage: boolean, model = MODEL): string {
  const messages = [{ role: "user", content: prompt }];
  return JSON.stringify({ model, messages, stream: true, stream_options: { include_usage: hasUsage } });
}

export type StreamPlan = LoadPlan & {
  hasUsage: boolean;
  /** True for a gateway that writes events of its own: then only those with content are counted. */
  isRewritten: boolean;
};

export type StreamResult = {
  streams: number;
  /** Events of all streams. */
  chunks: number;
  chunksPerS: number;
  p50Ms: number;
  firstP50Ms: number;
  firstP99Ms: number;
  /** Longest time between two pieces of one stream, at the 99th percentile: a relay that holds events back has few, far apart. */
  gapP99Ms: number;
};

/**
 * Runs the plan as `load` does: a closed loop of clients. Throws at the first stream that is not whole: a measurement of
 * failures means nothing.
 */
export async function loadStreams(plan: StreamPlan): Promise<StreamResult> {
  const url = new URL(plan.url);
  const events = streamEvents(plan.hasUsage).length;
  const headers = Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${url.pathname} HTTP/1.1`, `host: ${url.host}`, "content-type: application/json", ...headers];
  const wholeMs: number[] = [];
  const firstMs: number[] = [];
  const gapsMs: number[] = [];
  let sent = 0;
  const clients = Array.from({ length: plan.concurrency }, () => new StreamClient(url));
  const startedMs = performance.now();
  const loop = async (client: StreamClient) => {
    while (sent < plan.requests && performance.now() - startedMs < plan.msMax) {
      const body = plan.body(sent++);
      const sentMs = performance.now();
      const length = `content-length: ${Buffer.byteLength(body)}`;
      const { reply, firstAtMs, gaps } = await client.send(`${[...head, length].join("\r\n")}\r\n\r\n${body}`);
      wholeMs.push(performance.now() - sentMs);
      firstMs.push(firstAtMs - sentMs);
      gapsMs.push(...gaps);
      requireWhole(reply, plan, events);
    }
  };
  try {
    await Promise.all(clients.map(loop));
  } finally {
    for (const client of clients) client.close();
  }
  const wallS = (performance.now() - startedMs) / 1_000;
  return {
    streams: wholeMs.length,
    chunks: wholeMs.length * events,
    chunksPerS: (wholeMs.length * events) / wallS,
    p50Ms: percentile(wholeMs, 0.5),
    firstP50Ms: percentile(firstMs, 0.5),
    firstP99Ms: percentile(firstMs, 0.99),
    gapP99Ms: percentile(gapsMs, 0.99),
  };
}

type Reply = { reply: Buffer; firstAtMs: number; gaps: number[] };

/** A keep-alive connection that only collects bytes until the reply is complete, so that it costs as little as a socket. */
class StreamClient {
  readonly #socket: Socket;
  #pieces: Buffer[] = [];
  #firstAtMs = 0;
  #lastAtMs = 0;
  #gaps: number[] = [];
  #waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | null = null;

  constructor(url: URL) {
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    this.#socket.on("data", (data) => this.#onData(data));
    this.#socket.on("error", (error) => this.#waiting?.reject(error));
    this.#socket.on("close", () => this.#waiting?.reject(new Error("the server closed the connection")));
  }

  async send(request: string): Promise<Reply> {
    return await new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = null;
    this.#socket.destroy();
  }

  #onData(data: Buffer): void {
    const nowMs = performance.now();
    if (this.#pieces.length === 0) this.#firstAtMs = nowMs;
    else this.#gaps.push(nowMs - this.#lastAtMs);
    this.#lastAtMs = nowMs;
    this.#pieces.push(data);
    if (!endsReply(this.#pieces)) return;
    const reply = Buffer.concat(this.#pieces);
    const gaps = this.#gaps;
    this.#pieces = [];
    this.#gaps = [];
    this.#waiting?.resolve({ reply, firstAtMs: this.#firstAtMs, gaps });
    this.#waiting = null;
  }
}

/** These line breaks occur nowhere inside the events, so they mark the end of a reply. */
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

function endsReply(pieces: readonly Buffer[]): boolean {
  const [first, last] = [pieces[0], pieces.at(-1)];
  if (first === undefined || last === undefined) return false;
  // An error is reported at its first byte: its reply may end differently.
  if (first.length > STATUS_END && first.toString("latin1", STATUS_END - 3, STATUS_END) !== "200") return true;
  if (last.length >= LAST_CHUNK.length) return last.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
  return Buffer.concat(pieces.slice(-LAST_CHUNK.length)).subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}

/** Where the status ends in `HTTP/1.1 200 OK`. */
const STATUS_END = 12;

/** The gateway's own last line, which clients ignore and which is no event. */
const COST_COMMENT = /: fanout cost=[\d.]+\n\n$/;

/** Counts the events of a chunked reply. */
function requireWhole(reply: Buffer, { url, isRewritten }: StreamPlan, expected: number): void {
  const bodyAt = reply.indexOf("\r\n\r\n") + 4;
  const status = reply.toString("latin1", STATUS_END - 3, STATUS_END);
  const body = dechunked(reply.subarray(bodyAt)).replace(COST_COMMENT, "");
  const events = isRewritten ? body.split(/"content": ?"\d+ and/).length - 1 : body.split("\n\n").length - 1;
  const wanted = isRewritten ? CONTENT_EVENTS : expected;
  if (status === "200" && events === wanted && body.endsWith("data: [DONE]\n\n")) return;
  throw new Error(`POST ${url} answered ${status} with ${events} of ${wanted} events: ${body.slice(-300)}`);
}

function dechunked(framed: Buffer): string {
  const pieces: string[] = [];
  for (let at = 0; at < framed.length;) {
    const lineEnd = framed.indexOf("\r\n", at);
    const size = Number.parseInt(framed.toString("latin1", at, lineEnd), 16);
    if (Number.isNaN(size) || size === 0) break;
    pieces.push(framed.toString("latin1", lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return pieces.join("");
}
