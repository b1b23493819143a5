/** The requests to a provider's batch API over HTTP, under its key, and what their failures mean. */
import { LineSplitter } from "../../batch/lines.ts";
import { PROVIDER_REQUEST_MS_MAX, RESPONSE_BYTES_MAX } from "../../limits.ts";
import { errorWords } from "../../providers/formats/response/error.ts";
import { withQuery } from "../../providers/config/address.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { keyHeadersOf, kindOf } from "../../providers/kinds/table.ts";
import { discard, readBody } from "../../providers/read-body.ts";
import { readRetryAfterMs } from "../../providers/retry-after.ts";
import { isRecord } from "../../text/json/record.ts";
import type { Requested, RequestFailure } from "./batch-api.ts";

/** Statuses that are worth a retry and mean that nothing was done: the key, or the file, is busy. */
const LATER: ReadonlySet<number> = new Set([408, 409, 423, 425, 429]);

export type ProviderDeps = { fetch: typeof fetch; now: () => number; timeout: (ms: number) => AbortSignal };

/** The id that an answer names. If it has none, it is unknown what was made. */
export function idOf(got: Requested<unknown>): Requested<string> {
  if (!got.ok) return got;
  const id = isRecord(got.value) ? got.value["id"] : undefined;
  return typeof id === "string" ? { ok: true, value: id } : { ok: false, why: "unknown", retryAfterMs: null };
}

/** The lines of an answer, one at a time. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  const splitter = new LineSplitter(RESPONSE_BYTES_MAX);
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    for (const { bytes } of splitter.push(chunk)) if (bytes !== null) yield decoder.decode(bytes);
  }
  const last = splitter.finish();
  if (last?.bytes != null) yield decoder.decode(last.bytes);
}

type Sent<Value> = { ok: true; value: Value } | (RequestFailure & { status: number | null });

export class Requests {
  readonly #upstream: Upstream;
  readonly #deps: ProviderDeps;

  constructor(upstream: Upstream, deps: ProviderDeps) {
    this.#upstream = upstream;
    this.#deps = deps;
  }

  async json(method: string, path: string, body: string | FormData | null): Promise<Sent<unknown>> {
    const got = await this.send(method, path, body);
    if (!got.ok) return got;
    try {
      const read = await readBody(got.value);
      return { ok: true, value: read.ok ? JSON.parse(read.text) : null };
    } catch {
      return { ok: false, why: "unknown", retryAfterMs: null, status: null };
    }
  }

  /** Sends a request. Redirects are not followed: they could carry the key to another host. */
  async send(method: string, path: string, body: string | FormData | null): Promise<Sent<Response>> {
    const { baseUrl, query } = this.#upstream;
    // Called on its own: workerd's fetch refuses to be a method of another object.
    const { fetch, timeout, now } = this.#deps;
    const init: RequestInit = { method, headers: this.#headers(typeof body === "string"), redirect: "manual" };
    if (body !== null) init.body = body;
    let response: Response;
    try {
      response = await fetch(withQuery(`${baseUrl}${path}`, query ?? ""), {
        ...init,
        signal: timeout(PROVIDER_REQUEST_MS_MAX),
      });
    } catch {
      return { ok: false, why: "unknown", retryAfterMs: null, status: null };
    }
    if (response.ok) return { ok: true, value: response };
    const { status } = response;
    const retryAfterMs = readRetryAfterMs(response.headers, now());
    const why = await failureOf(response);
    return { ok: false, why, retryAfterMs, status };
  }

  #headers(isJson: boolean): Record<string, string> {
    const sent = { accept: "application/json", "user-agent": "fanout" };
    const type = isJson ? { "content-type": "application/json" } : {};
    const { headers } = kindOf(this.#upstream);
    return { ...sent, ...headers, ...this.#upstream.headers, ...type, ...keyHeadersOf(this.#upstream) };
  }
}

async function failureOf(response: Response): Promise<RequestFailure["why"]> {
  const { status } = response;
  if (status >= 500) {
    await discard(response);
    return "unknown";
  }
  if (!LATER.has(status)) {
    await discard(response);
    return "refused";
  }
  // A key whose quota is used up does not get one by waiting.
  const read = await readBody(response).catch(() => null);
  const { codes } = errorWords(read?.ok === true ? read.text : "");
  return codes.includes("insufficient_quota") ? "refused" : "later";
}
