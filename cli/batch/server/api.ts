/** The server's API for batches: files, uploads, batches, and the run with its budget. */
import { retry, type RetryDeps } from "./retry.ts";
import { exchange, readText } from "./http.ts";
import { isObject, parseJson } from "../../text/json.ts";
import { Budget, Created, OwnRun } from "./documents.ts";
import { Problem, refused, unreachable } from "./problem.ts";
import type { Server } from "./server.ts";
import type { Readable } from "node:stream";

/** Silence after which a request counts as lost, ms; a large upload is stored before the server replies. */
const SILENCE_MS = 60_000;
const UPLOAD_SILENCE_MS = 300_000;
const OWN_SILENCE_MS = 5_000;
/** Largest JSON reply, bytes: a batch with a hundred errors has some tens of KB. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Attempts of a request that creates something: a server that is down for minutes is an error. */
const ATTEMPTS_MAX = 5;

/** `body` is called for each attempt. */
export type Body = { headers: Record<string, string>; body: () => Readable | string };
export type Document = Record<string, unknown>;

export class Api {
  #server;
  #deps;
  /** Whether the server has ever replied: the command does not wait for one that never did. */
  #hasReplied = false;

  constructor(server: Server, deps: RetryDeps & { signal: AbortSignal }) {
    this.#server = server;
    this.#deps = deps;
  }

  /**
   * A request that creates something.
   * @param path After `/v1`.
   */
  async post(path: string, body: Body): Promise<Document> {
    const attempt = () => this.#document("POST", path, body);
    return retry(
      attempt,
      { attemptsMax: ATTEMPTS_MAX, mayRetry: ({ status }) => status !== null || this.#hasReplied },
      this.#deps,
    );
  }

  async postJson(path: string, value: Document, headers: Record<string, string> = {}): Promise<Document> {
    return this.post(path, jsonBody(value, headers));
  }

  /** The current state of a batch. Retried without limit, once the server has replied at all. */
  async batch(id: string): Promise<Document> {
    const attempt = () => this.#document("GET", `/batches/${segment(id)}`, null);
    return this.#retryForever(attempt);
  }

  /**
   * Passes a file's bytes to `take`. After a lost connection it calls `take` again, from the beginning of the file.
   */
  async content(id: string, take: (chunks: AsyncIterable<Buffer>) => Promise<void>): Promise<void> {
    const path = `/files/${segment(id)}/content`;
    return this.#retryForever(async () => take(this.#chunks(await this.#request("GET", path, null))));
  }

  /** What the run has spent, USD; null if the server does not say. */
  async spentUsd(): Promise<number | null> {
    return Budget.safeParse(await this.#own("/budget")).data?.usd.spent ?? null;
  }

  /** The id of the token's run; null if the server does not say. */
  async runId(): Promise<string | null> {
    return OwnRun.safeParse(await this.#own("/run")).data?.id ?? null;
  }

  /** The reply of one of fanout's own routes; null if there is none. One attempt, because it is only shown. */
  async #own(path: string) {
    const { gatewayUrl } = this.#server;
    if (gatewayUrl === null) return null;
    try {
      const response = await this.#send("GET", `${gatewayUrl}${path}`, null, OWN_SILENCE_MS);
      const body = parseJson(await readText(response, ANSWER_BYTES_MAX));
      return response.statusCode === 200 ? body : null;
    } catch (error) {
      if (error instanceof Problem) return null;
      throw error;
    }
  }

  /** Errors while waiting for a chunk are errors of the connection; errors of the consumer are not. */
  async *#chunks(response: AsyncIterable<Buffer>) {
    try {
      for await (const chunk of response) yield chunk;
    } catch (error) {
      throw this.#lost(error);
    }
  }

  #retryForever<T>(attempt: () => Promise<T>) {
    const mayRetry = () => this.#hasReplied;
    return retry(attempt, { attemptsMax: Number.POSITIVE_INFINITY, mayRetry }, this.#deps);
  }

  async #document(method: string, path: string, body: Body | null): Promise<Document> {
    const response = await this.#request(method, path, body);
    let text;
    try {
      text = await readText(response, ANSWER_BYTES_MAX);
    } catch (error) {
      throw this.#lost(error);
    }
    const value = parseJson(text);
    if (isObject(value)) return value;
    const message = `${this.#server.apiUrl}${path} returned something that is not a JSON object.`;
    throw new Problem(message, { isTransient: false, status: 200 });
  }

  async #request(method: string, path: string, body: Body | null) {
    const url = `${this.#server.apiUrl}${path}`;
    const response = await this.#send(method, url, body);
    this.#hasReplied = true;
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return response;
    const text = await readText(response, ANSWER_BYTES_MAX).catch(() => "");
    throw refused({ method, url, tokenFrom: this.#server.tokenFrom }, { status, headers, text });
  }

  async #send(
    method: string,
    url: string,
    body: Body | null,
    silenceMs: number = body === null ? SILENCE_MS : UPLOAD_SILENCE_MS,
  ) {
    const { signal } = this.#deps;
    const authorization = `Bearer ${this.#server.token}`;
    const headers = { accept: "*/*", "user-agent": "fanout-batch", authorization, ...body?.headers };
    const sent = body === null ? null : body.body();
    try {
      return await exchange(url, { method, headers, body: sent, silenceMs, signal });
    } catch (error) {
      throw this.#lost(error);
    }
  }

  #lost(error: unknown) {
    // An abort is not an error of the connection.
    this.#deps.signal.throwIfAborted();
    return unreachable(this.#server.apiUrl, error);
  }
}

function jsonBody(value: Document, headers: Record<string, string> = {}): Body {
  const text = JSON.stringify(value);
  const length = String(Buffer.byteLength(text));
  return { headers: { "content-type": "application/json", "content-length": length, ...headers }, body: () => text };
}

/** An id as part of a path. */
export function segment(id: string): string {
  // Encoding does not change dots, and a URL parser resolves these two as path steps.
  return id === "." || id === ".." ? "%00" : encodeURIComponent(id);
}

/**
 * The id of a created object.
 * @throws {Problem} if there is none.
 */
export function idOf(document: Document): string {
  const created = Created.safeParse(document);
  if (!created.success) throw new Problem("The server's reply has no id.", { isTransient: false });
  return created.data.id;
}
