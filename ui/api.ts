/** Requests to the gateway that serves this page. The credential is sent as a header, never in an address. */
import { isRecord } from "./model/line.ts";

const SECRET_PREFIX = "fo-run-";
const CLOCKS_EQUAL_MS = 3_000;

/** A refusal in the gateway's words. */
export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Json = Record<string, unknown>;

type Request = {
  method?: string;
  body?: Json;
  signal?: AbortSignal;
  runId?: string;
  headers?: Record<string, string>;
};

export class Api {
  readonly #credential: string;
  /** How much the gateway's clock is ahead of this one, ms. */
  #aheadMs = 0;

  constructor(credential: string) {
    this.#credential = credential;
  }

  /** Whether the credential is the operator's key rather than a run's token. */
  get isOperator(): boolean {
    return !this.#credential.startsWith(SECRET_PREFIX);
  }

  /** The gateway's time, epoch ms: figures are compared with times that it has sent. */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** The JSON object at a path; `runId`: of what run, for the operator. Throws an ApiError if the gateway refuses. */
  async json(path: string, options: Request = {}): Promise<Json> {
    const { method = "GET", body, signal, runId } = options;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = this.#headers({
      ...options.headers,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(runId === undefined || !this.isOperator ? {} : { "x-fanout-run": runId }),
    });
    const reply = await fetch(path, { method, headers, ...sent, ...(signal === undefined ? {} : { signal }) });
    this.#compareClocks(reply);
    const value: unknown = await reply.json().catch(() => null);
    if (!reply.ok) throw new ApiError(reply.status, messageOf(value) ?? `the gateway answered ${reply.status}`);
    return isRecord(value) ? value : {};
  }

  /** A stream of the gateway. Throws an ApiError if it refuses. */
  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const reply = await fetch(path, { headers: this.#headers({ accept: "text/event-stream" }), signal });
    if (!reply.ok || reply.body === null) {
      const value: unknown = await reply.json().catch(() => null);
      throw new ApiError(reply.status, messageOf(value) ?? `the gateway answered ${reply.status}`);
    }
    return reply.body;
  }

  /** A file of the gateway, whole. Throws an ApiError if it refuses. */
  async file(path: string): Promise<Blob> {
    const reply = await fetch(path, { headers: this.#headers({}) });
    if (!reply.ok) throw new ApiError(reply.status, `the gateway answered ${reply.status}`);
    return reply.blob();
  }

  /** Clocks that differ by less than a few seconds are taken as equal: the header has whole seconds, and the reply took a while. */
  #compareClocks({ headers }: Response): void {
    const aheadMs = Date.parse(headers.get("date") ?? "") - Date.now();
    if (!Number.isNaN(aheadMs)) this.#aheadMs = Math.abs(aheadMs) < CLOCKS_EQUAL_MS ? 0 : aheadMs;
  }

  #headers(others: Record<string, string>): Record<string, string> {
    return { authorization: `Bearer ${this.#credential}`, ...others };
  }
}

function messageOf(value: unknown): string | null {
  const error = isRecord(value) ? value["error"] : null;
  return isRecord(error) && typeof error["message"] === "string" ? error["message"] : null;
}
