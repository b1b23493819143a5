/** The upstream of the leaves: it answers every API family after a moment, and counts whose requests have reached it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** The prompt of the call that follows a leave. */
export const NEXT_PROMPT = "the next call";

/** What has reached the upstream in one round. `nextAtMs`: when the next call has, epoch ms. */
export type Arrivals = { calls: number; nextAtMs: number | null };

export class LeavingUpstream {
  readonly #latencyMs: number;
  #arrivals: Arrivals = { calls: 0, nextAtMs: null };
  readonly #server = createServer((request, reply) => void this.#serve(request, reply));

  constructor(latencyMs: number) {
    this.#latencyMs = latencyMs;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Begins a round: what arrives from now on counts in it. */
  begin(): Readonly<Arrivals> {
    this.#arrivals = { calls: 0, nextAtMs: null };
    return this.#arrivals;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    reply.on("error", () => undefined);
    const arrivals = this.#arrivals;
    arrivals.calls += 1;
    const body = await textOf(request).catch(() => null);
    if (body === null) return;
    if (body.includes(NEXT_PROMPT)) {
      arrivals.calls -= 1;
      arrivals.nextAtMs = Date.now();
    }
    await sleep(this.#latencyMs);
    answer(request, reply, body);
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += String(piece);
  return text;
}

const USAGE = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };

function answer(request: IncomingMessage, reply: ServerResponse, body: string): void {
  if (request.url?.endsWith("/messages") === true) {
    const usage = { input_tokens: 10, output_tokens: 1 };
    const content = [{ type: "text", text: "x" }];
    const message = {
      id: "msg",
      type: "message",
      role: "assistant",
      model: "m",
      content,
      stop_reason: "end_turn",
      usage,
    };
    return void reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
  }
  const facts = { id: "c", created: 1, model: "m" };
  if (!body.includes('"stream":true')) {
    const message = { role: "assistant", content: "x" };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    const completion = { ...facts, object: "chat.completion", choices, usage: USAGE };
    return void reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(completion));
  }
  const chunk = { ...facts, object: "chat.completion.chunk" };
  const first = { ...chunk, choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }] };
  reply.writeHead(200, { "content-type": "text/event-stream" });
  reply.write(`data: ${JSON.stringify(first)}\n\n`);
  reply.end(`data: ${JSON.stringify({ ...chunk, choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`);
}
