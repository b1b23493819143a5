/**
 * A provider of Anthropic's protocol with Message Batches, as documented: requests inline, `processing_status`, counts that move only at
 * the end, results as JSON Lines in another order than the requests, each succeeded, errored, canceled or expired. It answers live
 * messages, too, and keeps its own bill: a batch costs half.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

/** Dollars per million tokens, prompt and completion alike. */
export const MESSAGE_USD = { live: 2, batch: 1 } as const;

const REQUESTS_MAX = 100_000;
const message = z.strictObject({
  model: z.string(),
  max_tokens: z.int().min(1),
  messages: z.array(z.strictObject({ role: z.enum(["user", "assistant"]), content: z.string().min(1) })).min(1),
  system: z.string().optional(),
  temperature: z.number().min(0).max(1).optional(),
});
type Message = z.infer<typeof message>;

const creation = z.strictObject({
  requests: z
    .array(z.strictObject({ custom_id: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/), params: z.unknown() }))
    .min(1)
    .max(REQUESTS_MAX),
});
type Request = z.infer<typeof creation>["requests"][number];

export type ProviderMessageBatch = {
  id: string;
  status: "in_progress" | "canceling" | "ended";
  requests: Request[];
  createdAtMs: number;
  looks: number;
  /** The lines of its results; null = it has not ended. */
  results: string[] | null;
  counts: Record<"processing" | "succeeded" | "errored" | "canceled" | "expired", number>;
};

/** How the provider behaves from now on. */
export type MessageBehaviour = {
  /** How many of a batch's requests it works on; the others wait until the batch is canceled, or expires. */
  worksOn: (requests: number) => number;
  /** Whether a batch with requests that are not worked on ends by itself, and these expire. */
  expires: boolean;
  /** Whether it closes the connection instead of replying to the next creation of a batch, which it has made. */
  losesCreation: boolean;
  /** The status with which it refuses new batches; null = it takes them. */
  refusesBatches: number | null;
  /** Time that a live message takes, ms. */
  liveMs: number;
};

const PROMPT: MessageBehaviour = {
  worksOn: (requests) => requests,
  expires: false,
  losesCreation: false,
  refusesBatches: null,
  liveMs: 0,
};

/** A prompt with this word is refused as an invalid request. */
export const REFUSED_WORD = "refused";

export class MessageBatchProvider {
  behaviour: MessageBehaviour = PROMPT;
  readonly batches: ProviderMessageBatch[] = [];
  /** Prompts of live messages, in the order of their arrival. */
  readonly live: string[] = [];
  readonly #key: string;
  #billMicroUsd = 0;
  readonly #server = createServer((incoming, response) => {
    void this.#serve(incoming, response).catch(() => response.writeHead(500).end());
  });

  constructor(key: string) {
    this.#key = key;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  /** Forgets what it has received, and behaves as at first. The bill stays. */
  reset(): void {
    this.behave();
    this.batches.length = 0;
    this.live.length = 0;
  }

  /** Without a path, as Anthropic's own clients take it. */
  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  billUsd(): number {
    return this.#billMicroUsd / 1e6;
  }

  behave(change: Partial<MessageBehaviour> = {}): void {
    this.behaviour = { ...PROMPT, ...change };
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(Buffer.from(piece));
    const text = Buffer.concat(pieces).toString();
    const { pathname, searchParams } = new URL(incoming.url ?? "/", this.origin);
    const json = (status: number, value: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    if (incoming.headers["x-api-key"] !== this.#key)
      return json(401, errorOf("authentication_error", "invalid x-api-key"));
    if (incoming.headers["anthropic-version"] !== "2023-06-01")
      return json(400, errorOf("invalid_request_error", "anthropic-version: header is required"));
    if (pathname === "/v1/messages") return await this.#message(text, json);
    const [, id = "", more = ""] = /^\/v1\/messages\/batches(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? [];
    if (!pathname.startsWith("/v1/messages/batches")) return json(404, errorOf("not_found_error", "Not found"));
    if (id === "" && incoming.method === "POST") return this.#create(text, response, json);
    if (id === "") return json(200, this.#page(searchParams));
    const batch = this.batches.find((each) => each.id === id);
    if (batch === undefined) return json(404, errorOf("not_found_error", `no batch ${id}`));
    if (more === "results") return this.#results(batch, response, json);
    if (more === "cancel") {
      if (batch.status === "ended") return json(400, errorOf("invalid_request_error", "the batch has ended"));
      batch.status = "canceling";
    } else this.#advance(batch);
    json(200, this.#shown(batch));
  }

  async #message(text: string, json: (status: number, value: unknown) => void): Promise<void> {
    const read = message.safeParse(JSON.parse(text));
    if (!read.success) return json(400, errorOf("invalid_request_error", z.prettifyError(read.error)));
    this.live.push(promptOf(read.data));
    const { liveMs } = this.behaviour;
    if (liveMs > 0) await new Promise((resolve) => setTimeout(resolve, liveMs));
    if (promptOf(read.data).includes(REFUSED_WORD)) return json(400, errorOf("invalid_request_error", REFUSED_WORD));
    json(200, this.#answer(read.data, MESSAGE_USD.live));
  }

  #create(text: string, response: ServerResponse, json: (status: number, value: unknown) => void): void {
    const { refusesBatches: status } = this.behaviour;
    if (status !== null) return json(status, errorOf("invalid_request_error", "no batches"));
    const read = creation.safeParse(JSON.parse(text));
    if (!read.success) return json(400, errorOf("invalid_request_error", z.prettifyError(read.error)));
    const { requests } = read.data;
    if (new Set(requests.map(({ custom_id: customId }) => customId)).size < requests.length)
      return json(400, errorOf("invalid_request_error", "requests: custom_id is not unique"));
    const batch: ProviderMessageBatch = {
      id: `msgbatch_${this.batches.length + 1}`,
      status: "in_progress",
      requests,
      createdAtMs: Date.now(),
      looks: 0,
      results: null,
      counts: { processing: requests.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    };
    this.batches.push(batch);
    if (!this.behaviour.losesCreation) return json(200, this.#shown(batch));
    this.behaviour = { ...this.behaviour, losesCreation: false };
    response.destroy();
  }

  /** The newest first, as Anthropic lists them. */
  #page(query: URLSearchParams): object {
    const all = this.batches.toReversed();
    const after = query.get("after_id");
    const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
    const data = all.slice(from, from + Number(query.get("limit") ?? 20));
    const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
    // Batches go on whoever looks.
    for (const batch of data) this.#advance(batch);
    return {
      data: data.map((batch) => this.#shown(batch)),
      has_more: from + data.length < all.length,
      first_id: first,
      last_id: last,
    };
  }

  /** A batch has ended by its second look, if it works on all of its requests. */
  #advance(batch: ProviderMessageBatch): void {
    batch.looks += 1;
    if (batch.status === "canceling") return this.#end(batch, "canceled");
    if (batch.status === "ended" || batch.looks < 2) return;
    const isWhole = this.behaviour.worksOn(batch.requests.length) >= batch.requests.length;
    if (isWhole || this.behaviour.expires) this.#end(batch, "expired");
  }

  #end(batch: ProviderMessageBatch, rest: "canceled" | "expired"): void {
    const worked = this.behaviour.worksOn(batch.requests.length);
    const counts = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
    const lines = batch.requests.map(({ custom_id: customId, params }, at) => {
      const result = at < worked ? this.#result(params) : { type: rest };
      counts[result.type] += 1;
      return JSON.stringify({ custom_id: customId, result });
    });
    batch.status = "ended";
    batch.counts = counts;
    batch.results = lines.toReversed();
  }

  #result(params: unknown): { type: "succeeded"; message: object } | { type: "errored"; error: object } {
    const read = message.safeParse(params);
    if (!read.success) {
      return { type: "errored", error: errorOf("invalid_request_error", z.prettifyError(read.error)) };
    }
    if (promptOf(read.data).includes(REFUSED_WORD))
      return { type: "errored", error: errorOf("invalid_request_error", REFUSED_WORD) };
    return { type: "succeeded", message: this.#answer(read.data, MESSAGE_USD.batch) };
  }

  #results(
    { results }: ProviderMessageBatch,
    response: ServerResponse,
    json: (status: number, value: unknown) => void,
  ) {
    if (results === null) return json(404, errorOf("not_found_error", "the batch has no results yet"));
    response.writeHead(200, { "content-type": "application/x-jsonl" }).end(`${results.join("\n")}\n`);
  }

  #answer(read: Message, usdPerMillion: number): object {
    const prompt = promptOf(read);
    const tokens = Math.ceil(Buffer.byteLength(prompt) / 4);
    this.#billMicroUsd += 2 * tokens * usdPerMillion;
    return {
      id: `msg_${this.live.length}`,
      type: "message",
      role: "assistant",
      model: read.model,
      content: [{ type: "text", text: prompt }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: tokens,
        output_tokens: tokens,
        service_tier: usdPerMillion === MESSAGE_USD.batch ? "batch" : "standard",
      },
    };
  }

  #shown({ id, status, createdAtMs, counts }: ProviderMessageBatch): object {
    const hasEnded = status === "ended";
    return {
      id,
      type: "message_batch",
      processing_status: status,
      request_counts: counts,
      created_at: new Date(createdAtMs).toISOString(),
      expires_at: new Date(createdAtMs + 86_400_000).toISOString(),
      ended_at: hasEnded ? new Date().toISOString() : null,
      cancel_initiated_at: status === "canceling" ? new Date().toISOString() : null,
      archived_at: null,
      results_url: hasEnded ? `${this.origin}/v1/messages/batches/${id}/results` : null,
    };
  }
}

function promptOf({ messages }: Message): string {
  return messages.at(-1)?.content ?? "";
}

function errorOf(type: string, words: string): object {
  return { type: "error", error: { type, message: words }, request_id: "req_test" };
}
