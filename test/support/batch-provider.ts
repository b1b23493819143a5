/**
 * A provider with OpenAI's Batch API: files by multipart, batches of chat completions or embeddings, answers in another order than
 * their lines, failures in a file of their own, cancellation with partial results. It answers live calls, too, and keeps its own bill: a batch
 * costs half, although its answers name the tier `default`, as OpenAI's do.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

/** Dollars per million tokens, prompt and completion alike. */
export const BATCH_USD = { live: 2, batch: 1 } as const;

const url = z.enum(["/v1/chat/completions", "/v1/embeddings"]);
const chat = z.looseObject({ model: z.string(), messages: z.array(z.looseObject({ content: z.string() })).min(1) });
const embedding = z.looseObject({ model: z.string(), input: z.string() });
const request = z.union([chat, embedding]);
type Request = { model: string; content: string; isChat: boolean };
const line = z.object({ custom_id: z.string(), method: z.literal("POST"), url, body: request });
const creation = z.object({
  input_file_id: z.string(),
  endpoint: url,
  completion_window: z.literal("24h"),
  metadata: z.record(z.string(), z.string()),
});

type Line = z.infer<typeof line>;

/** A request, if it is one of an endpoint. */
function requestOf(body: unknown): Request {
  const read = request.parse(body);
  if ("input" in read && typeof read.input === "string")
    return { model: read.model, content: read.input, isChat: false };
  return { model: read.model, content: chat.parse(read).messages.at(-1)?.content ?? "", isChat: true };
}
type Batch = {
  id: string;
  status: "validating" | "in_progress" | "completed" | "failed" | "expired" | "cancelling" | "cancelled";
  lines: Line[];
  metadata: Record<string, string>;
  looks: number;
  outputFileId: string | null;
  errorFileId: string | null;
  completed: number;
};

/** How the provider behaves from now on. */
export type Behaviour = {
  /** How many of a batch's lines it works on; the others wait until the batch is cancelled, or expires. */
  worksOn: (lines: number) => number;
  /** Whether a batch with lines that are not worked on ends by itself, as expired. */
  expires: boolean;
  /** Whether it closes the connection instead of replying to the next creation of a batch, which it has made. */
  losesCreation: boolean;
  /** What it answers to a file; null = it takes it. */
  refusesFiles: { status: number } | null;
  /** The endpoints of its Batch API. */
  offers: readonly string[];
  /** The answer to a chat completion of this model, byte for byte; null = one of the provider's own. */
  bodyOf: (model: string) => string | null;
};

const PROMPT: Behaviour = {
  worksOn: (lines) => lines,
  expires: false,
  losesCreation: false,
  refusesFiles: null,
  offers: url.options,
  bodyOf: () => null,
};

export class BatchProvider {
  behaviour: Behaviour = PROMPT;
  readonly batches: Batch[] = [];
  /** Prompts of live calls, in order. */
  readonly live: string[] = [];
  readonly #files = new Map<string, string>();
  #billMicroUsd = 0;
  #server = createServer((incoming, response) => {
    void this.#serve(incoming, response).catch(() => response.writeHead(500).end());
  });

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  /**
   * Upstreams at this provider: `up` and `soon` sell batches at half the price, `plain` does not. `soonMarginMs`: how long before
   * the deadline calls leave the batches of `soon`.
   */
  upstreams(soonMarginMs: number) {
    const base = {
      kind: "openai",
      base_url: this.baseUrl,
      api_key: "secret:PROVIDER_KEY",
      prompt_tokens_per_call: 0,
    };
    const rates = (usd: number) => ({ input: usd, output: usd });
    const prices = { "*": { ...rates(BATCH_USD.live), batch: rates(BATCH_USD.batch) } };
    return {
      up: { ...base, models: ["*"], prices, batch: { poll_ms: 100 } },
      soon: { ...base, models: [], prices, batch: { poll_ms: 100, margin_ms: soonMarginMs } },
      plain: { ...base, models: [], prices: { "*": rates(BATCH_USD.live) } },
    };
  }

  /** Forgets what it has received, and behaves as at first. The bill stays. */
  reset(): void {
    this.behave();
    this.batches.length = 0;
    this.live.length = 0;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  billUsd(): number {
    return this.#billMicroUsd / 1e6;
  }

  behave(change: Partial<Behaviour> = {}): void {
    this.behaviour = { ...PROMPT, ...change };
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(Buffer.from(piece));
    const body = Buffer.concat(pieces);
    const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://provider");
    const json = (status: number, value: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const [, , kind = "", id = "", more = ""] = pathname.split("/");
    if (url.safeParse(pathname).success) {
      const read = requestOf(JSON.parse(body.toString()));
      this.live.push(read.content);
      const answer = this.#answer(read, BATCH_USD.live);
      return void response.writeHead(200, { "content-type": "application/json" }).end(answer);
    }
    if (kind === "files" && incoming.method === "POST") return json(...(await this.#upload(incoming, body)));
    const file = this.#files.get(id);
    if (kind === "files" && more === "content" && file !== undefined) {
      return void response.writeHead(200, { "content-type": "application/octet-stream" }).end(file);
    }
    if (kind !== "batches") return json(404, { error: { message: "Invalid URL", type: "invalid_request_error" } });
    if (id === "" && incoming.method === "POST") return this.#create(JSON.parse(body.toString()), response, json);
    if (id === "") return json(200, this.#page(searchParams));
    const batch = this.batches.find((each) => each.id === id);
    if (batch === undefined) return json(404, { error: { message: "No such batch", type: "invalid_request_error" } });
    if (more === "cancel") {
      if (batch.status !== "validating" && batch.status !== "in_progress")
        return json(409, { error: { message: "ended" } });
      batch.status = "cancelling";
    } else this.#advance(batch);
    json(200, shown(batch));
  }

  async #upload({ headers }: IncomingMessage, body: Buffer): Promise<[number, unknown]> {
    const { refusesFiles } = this.behaviour;
    if (refusesFiles !== null) return [refusesFiles.status, { error: { message: "no files", type: "server_error" } }];
    const contentType = headers["content-type"] ?? "";
    const form = await new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
    const file = form.get("file");
    if (form.get("purpose") !== "batch" || !(file instanceof File)) return [400, { error: { message: "bad file" } }];
    return [200, { id: this.#keep(await file.text()), object: "file", purpose: "batch", status: "processed" }];
  }

  #create(value: unknown, response: ServerResponse, json: (status: number, value: unknown) => void): void {
    const { input_file_id: fileId, endpoint, metadata } = creation.parse(value);
    if (!this.behaviour.offers.includes(endpoint)) return json(400, { error: { message: "Invalid endpoint" } });
    const lines = (this.#files.get(fileId) ?? "")
      .split("\n")
      .filter((text) => text !== "")
      .map((text) => line.parse(JSON.parse(text)));
    if (lines.some((each) => each.url !== endpoint)) return json(400, { error: { message: "another endpoint" } });
    const batch: Batch = {
      id: `batch_${this.batches.length + 1}`,
      status: "validating",
      lines,
      metadata,
      looks: 0,
      outputFileId: null,
      errorFileId: null,
      completed: 0,
    };
    this.batches.push(batch);
    if (!this.behaviour.losesCreation) return json(200, shown(batch));
    this.behaviour = { ...this.behaviour, losesCreation: false };
    response.destroy();
  }

  /** The newest first, as OpenAI lists them. */
  #page(query: URLSearchParams): object {
    const all = this.batches.toReversed();
    const after = query.get("after");
    const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
    const data = all.slice(from, from + Number(query.get("limit") ?? 20));
    return { object: "list", data: data.map(shown), has_more: from + data.length < all.length };
  }

  /** A batch is validated by its first look, and has ended by its second, if it works on all of its lines. */
  #advance(batch: Batch): void {
    batch.looks += 1;
    if (batch.status === "cancelling") return this.#end(batch, "cancelled");
    if (batch.status === "validating") batch.status = "in_progress";
    else if (batch.status === "in_progress") {
      const isWhole = this.behaviour.worksOn(batch.lines.length) >= batch.lines.length;
      if (isWhole) this.#end(batch, "completed");
      else if (this.behaviour.expires) this.#end(batch, "expired");
    }
  }

  #end(batch: Batch, status: Batch["status"]): void {
    const worked = batch.lines.slice(0, this.behaviour.worksOn(batch.lines.length));
    const output: string[] = [];
    const errors: string[] = [];
    for (const { custom_id, body } of worked) {
      const read = requestOf(body);
      const fails = read.content.includes("refused");
      const refusal = '{"error":{"message":"refused","type":"invalid_request_error"}}';
      const answer = fails ? refusal : this.#answer(read, BATCH_USD.batch);
      const response = `{"status_code":${fails ? 400 : 200},"body":${answer}}`;
      const id = JSON.stringify(custom_id);
      (fails ? errors : output).push(`{"id":"batch_req_1","custom_id":${id},"response":${response},"error":null}`);
    }
    const code = status === "expired" ? "batch_expired" : "batch_cancelled";
    for (const { custom_id } of batch.lines.slice(worked.length)) {
      errors.push(
        JSON.stringify({ id: "batch_req_2", custom_id, response: null, error: { code, message: "not run" } }),
      );
    }
    batch.status = status;
    batch.completed = output.length;
    if (output.length > 0) batch.outputFileId = this.#keep(`${output.toReversed().join("\n")}\n`);
    if (errors.length > 0) batch.errorFileId = this.#keep(`${errors.join("\n")}\n`);
  }

  /** The body of an answer. */
  #answer({ model, content, isChat }: Request, usdPerMillion: number): string {
    const exact = isChat ? this.behaviour.bodyOf(model) : null;
    if (exact !== null) return exact;
    const tokens = Math.ceil(content.length / 4);
    this.#billMicroUsd += (isChat ? 2 : 1) * tokens * usdPerMillion;
    if (!isChat) {
      const data = [{ object: "embedding", index: 0, embedding: [tokens, 0.5] }];
      return JSON.stringify({
        object: "list",
        model,
        data,
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      });
    }
    return JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      model,
      choices: [{ index: 0, message: messageOf(content), finish_reason: "stop" }],
      usage: { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens },
      service_tier: "default",
    });
  }

  #keep(text: string): string {
    const id = `file-${this.#files.size + 1}`;
    this.#files.set(id, text);
    return id;
  }
}

function shown({ id, status, metadata, lines, completed, outputFileId, errorFileId }: Batch): object {
  const ended = status !== "validating" && status !== "in_progress" && status !== "cancelling";
  const counts = { total: lines.length, completed, failed: ended ? lines.length - completed : 0 };
  return {
    id,
    object: "batch",
    status,
    metadata,
    request_counts: counts,
    output_file_id: outputFileId,
    error_file_id: errorFileId,
  };
}

/** The message of an answer; one to a prompt about thoughts has some. */
function messageOf(content: string) {
  const thoughts = content.includes("thought") ? { reasoning_content: `about ${content}` } : {};
  return { role: "assistant", content, ...thoughts };
}
