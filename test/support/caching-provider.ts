/**
 * A provider on a loopback port that caches prompts and bills as the real ones do: Anthropic's Messages API at `/v1/messages`,
 * where `cache_control` marks what is written, and OpenAI's chat completions from GPT-5.6 on, which write at explicit breakpoints,
 * or else all of the prompt at its newest message. What is written is readable once the answer that writes it has begun.
 */
import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** USD per million tokens of both kinds of provider: reads cost a tenth of the input, writes 1.25 times. */
export const CACHING_PRICES = { input: 1, cached_input: 0.1, cache_write: 1.25, output: 2 } as const;
const ANSWER = "Fine.";
const ANSWER_TOKENS = 2;
const CHARS_PER_TOKEN = 4;
const MIN_TOKENS = 1_024;
/**
 * How long a silent call waits for another one, and when what it writes is readable: a gateway that sends none meanwhile is seen. Less
 * than the 5 s that one waits which is not configured to wait less.
 */
const ANOTHER_WITHIN_MS = 4_000;

export type CachingOptions = {
  /** Time to the first event of an answer, and to its end, ms. */
  firstMs: number;
  wholeMs: number;
  /** Decides on a call by its number, from 0; an error status fails it at once. */
  failWith?: (number: number) => number | null;
  /** True for a call, by its number, whose answer has no first event before its end, which comes only after another call has. */
  isSilent?: (number: number) => boolean;
};

/** What it has counted. Tokens of prompts are split by how they are billed. */
export type CachingBill = { calls: number; inputTokens: number; readTokens: number; writeTokens: number; usd: number };

export type CachingProvider = {
  origin: string;
  bill: () => CachingBill;
  /** The bodies of requests, in order; at most the first few. */
  seen: Record<string, unknown>[];
  forget: () => void;
  stop: () => Promise<void>;
};

type Block = { text: string; isMarked: boolean };
type Usage = { input: number; read: number; write: number };

export async function startCachingProvider(options: CachingOptions): Promise<CachingProvider> {
  const readableFrom = new Map<string, number>();
  let bill: CachingBill = emptyBill();
  const seen: Record<string, unknown>[] = [];
  let number = 0;
  const arrivals = new EventEmitter<{ call: [] }>();
  // A gateway that ends breaks off what it was sending.
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    if (seen.length < 4) seen.push(body);
    const mine = number++;
    arrivals.emit("call");
    const status = options.failWith?.(mine) ?? null;
    if (status !== null) {
      response.writeHead(status, { "content-type": "application/json" });
      return void response.end(JSON.stringify({ error: { type: "api_error", message: "no" } }));
    }
    const isMessages = request.url === "/v1/messages";
    const isSilent = options.isSilent?.(mine) === true;
    const blocks = blocksOf(body, isMessages);
    const usage = useCache(blocks, { isMessages, readableInMs: isSilent ? ANOTHER_WITHIN_MS : options.firstMs });
    bill.calls += 1;
    bill.inputTokens += usage.input;
    bill.readTokens += usage.read;
    bill.writeTokens += usage.write;
    bill.usd += costOf(usage);
    // The headers of a stream come before the prompt is read: they say nothing of the cache.
    if (body["stream"] === true) response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    if (isSilent)
      await once(arrivals, "call", { signal: AbortSignal.timeout(ANOTHER_WITHIN_MS) }).catch(() => undefined);
    await after(isSilent || body["stream"] !== true ? options.wholeMs : options.firstMs);
    if (body["stream"] !== true) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(isMessages ? messageOf(usage) : completionOf(usage)));
    }
    response.write(isMessages ? messageStart(usage) : chunkOf({ role: "assistant", content: "" }, null));
    if (!isSilent) await after(options.wholeMs - options.firstMs);
    response.end(isMessages ? MESSAGE_END : chatEnd(usage));
  }

  /** Reads the longest prefix that is readable, and writes the others that are marked. */
  function useCache(
    blocks: readonly Block[],
    { isMessages, readableInMs }: { isMessages: boolean; readableInMs: number },
  ): Usage {
    const hash = createHash("sha256");
    const isMarked = blocks.some((block) => block.isMarked);
    let chars = 0;
    let read = 0;
    let write = 0;
    blocks.forEach((block, at) => {
      hash.update(`${block.text}\u0000`);
      chars += block.text.length;
      // Without a breakpoint, OpenAI writes up to the newest message.
      const isBreakpoint = block.isMarked || (!isMessages && !isMarked && at === blocks.length - 1);
      const tokens = Math.ceil(chars / CHARS_PER_TOKEN);
      if (!isBreakpoint || tokens < MIN_TOKENS) return;
      const name = hash.copy().digest("hex");
      const from = readableFrom.get(name);
      if (from !== undefined && from <= Date.now()) read = tokens;
      else {
        write = tokens - read;
        readableFrom.set(name, Math.min(from ?? Infinity, Date.now() + readableInMs));
      }
    });
    return { input: Math.ceil(chars / CHARS_PER_TOKEN) - read - write, read, write };
  }

  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 }, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    bill: () => bill,
    seen,
    forget: () => {
      bill = emptyBill();
      readableFrom.clear();
      seen.length = 0;
      number = 0;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The cost of a prompt and its answer, USD. */
export function costOf({ input, read, write }: Usage): number {
  const { input: plain, cached_input: cached, cache_write: written, output } = CACHING_PRICES;
  return (input * plain + read * cached + write * written + ANSWER_TOKENS * output) / 1_000_000;
}

function emptyBill(): CachingBill {
  return { calls: 0, inputTokens: 0, readTokens: 0, writeTokens: 0, usd: 0 };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function blocksOf(body: Record<string, unknown>, isMessages: boolean): Block[] {
  const contents: unknown[] = isMessages && body["system"] !== undefined ? [body["system"]] : [];
  for (const message of body["messages"] as { content: unknown }[]) contents.push(message.content);
  return contents.flatMap((content) =>
    typeof content === "string"
      ? [{ text: content, isMarked: false }]
      : (content as Record<string, unknown>[]).map((part) => ({
          text: String(part["text"]),
          isMarked: part["cache_control"] !== undefined || part["prompt_cache_breakpoint"] !== undefined,
        })),
  );
}

function messageUsage({ input, read, write }: Usage) {
  const cache = { cache_read_input_tokens: read, cache_creation_input_tokens: write };
  return { input_tokens: input, ...cache, output_tokens: ANSWER_TOKENS };
}

function messageOf(usage: Usage) {
  const content = [{ type: "text", text: ANSWER }];
  const shape = { id: "msg_1", type: "message", role: "assistant", model: "claude", stop_reason: "end_turn" };
  return { ...shape, content, stop_sequence: null, usage: messageUsage(usage) };
}

function event(data: { type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function messageStart(usage: Usage): string {
  const message = { ...messageOf(usage), content: [], stop_reason: null };
  return event({ type: "message_start", message } as { type: string });
}

const MESSAGE_END = [
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: ANSWER } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: ANSWER_TOKENS } },
  { type: "message_stop" },
]
  .map(event)
  .join("");

function chatUsage({ input, read, write }: Usage) {
  const prompt = input + read + write;
  const details = { cached_tokens: read, cache_write_tokens: write };
  const totals = { completion_tokens: ANSWER_TOKENS, total_tokens: prompt + ANSWER_TOKENS };
  return { prompt_tokens: prompt, ...totals, prompt_tokens_details: details };
}

function completionOf(usage: Usage) {
  const message = { role: "assistant", content: ANSWER };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  return { id: "c1", object: "chat.completion", created: 1, model: "gpt", choices, usage: chatUsage(usage) };
}

function chunkOf(delta: object, finish: string | null, usage?: Usage): string {
  const choices = usage === undefined ? [{ index: 0, delta, finish_reason: finish }] : [];
  const shape = { id: "c1", object: "chat.completion.chunk", created: 1, model: "gpt", choices };
  return `data: ${JSON.stringify(usage === undefined ? shape : { ...shape, usage: chatUsage(usage) })}\n\n`;
}

function chatEnd(usage: Usage): string {
  return `${chunkOf({ content: ANSWER }, null)}${chunkOf({}, "stop")}${chunkOf({}, null, usage)}data: [DONE]\n\n`;
}
