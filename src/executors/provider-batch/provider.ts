/**
 * A provider's Batch API as OpenAI defines it (files, batches), in the requests that one group needs. Each request ends as data:
 * its result, or what its failure means.
 */
import type { BatchUrl } from "../../batch/endpoints.ts";
import { LineSplitter } from "../../batch/lines.ts";
import { isRecord } from "../../text/json/record.ts";
import { PROVIDER_FIND_PAGES_MAX, PROVIDER_REQUEST_MS_MAX, RESPONSE_BYTES_MAX } from "../../limits.ts";
import { errorWords } from "../../providers/formats/response/error.ts";
import { withQuery } from "../../providers/config/address.ts";
import { keyHeadersOf } from "../../providers/kinds/table.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { discard, readBody } from "../../providers/read-body.ts";
import { readRetryAfterMs } from "../../providers/retry-after.ts";
import type { BatchLook } from "./next-step.ts";

/**
 * `refused`: nothing was done, and a retry would be refused, too. `later`: nothing was done, but a retry may succeed. `unknown`:
 * it is unknown whether it was done.
 */
export type RequestFailure = { ok: false; why: "refused" | "later" | "unknown"; retryAfterMs: number | null };
export type Requested<Value> = { ok: true; value: Value } | RequestFailure;

/** The requests of one group to its provider. */
export type Provider = {
  upload: (lines: string) => Promise<Requested<string>>;
  create: (fileId: string, url: BatchUrl, tag: string) => Promise<Requested<string>>;
  /** The id of the batch with this tag; null = there is none so far. */
  find: (tag: string) => Promise<Requested<string | null>>;
  look: (batchId: string) => Promise<Requested<BatchLook>>;
  cancel: (batchId: string) => Promise<Requested<null>>;
  /** The lines of a file. It rejects if the file breaks off. */
  lines: (fileId: string) => Promise<Requested<AsyncIterable<string>>>;
};

/** The key of the metadata that has the tag of a batch. */
const TAG = "fanout";

/** States in which a batch is at work; in others it has ended. An unknown state counts as ended. */
const ENDED: ReadonlySet<string> = new Set(["completed", "expired", "cancelled"]);

/** Statuses that are worth a retry and mean that nothing was done: the key, or the file, is busy. */
const LATER: ReadonlySet<number> = new Set([408, 409, 423, 425, 429]);

export type ProviderDeps = { fetch: typeof fetch; now: () => number; timeout: (ms: number) => AbortSignal };

export function providerAt(upstream: Upstream, deps: ProviderDeps): Provider {
  const http = new Requests(upstream, deps);
  return {
    upload: async (lines) => {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new Blob([lines], { type: "application/jsonl" }), "fanout.jsonl");
      return idOf(await http.json("POST", "/files", form));
    },
    create: async (fileId, url, tag) => {
      const metadata = { [TAG]: tag };
      const body = { input_file_id: fileId, endpoint: url, completion_window: "24h", metadata };
      return idOf(await http.json("POST", "/batches", JSON.stringify(body)));
    },
    find: (tag) => find(http, tag),
    look: async (batchId) => {
      const got = await http.json("GET", `/batches/${encodeURIComponent(batchId)}`, null);
      if (!got.ok) return got.status === 404 ? { ok: true, value: { state: "gone" } } : got;
      return { ok: true, value: lookOf(got.value) };
    },
    cancel: async (batchId) => {
      const got = await http.json("POST", `/batches/${encodeURIComponent(batchId)}/cancel`, null);
      // 409: it has ended already. The next poll shows how.
      return got.ok || got.status === 409 ? { ok: true, value: null } : got;
    },
    lines: async (fileId) => {
      const got = await http.send("GET", `/files/${encodeURIComponent(fileId)}/content`, null);
      return got.ok ? { ok: true, value: linesOf(got.value) } : got;
    },
  };
}

async function find(http: Requests, tag: string): Promise<Requested<string | null>> {
  let after = "";
  for (let page = 0; page < PROVIDER_FIND_PAGES_MAX; page++) {
    const got = await http.json("GET", `/batches?limit=100${after}`, null);
    if (!got.ok) return got;
    const { data, has_more: hasMore } = isRecord(got.value) ? got.value : {};
    if (!Array.isArray(data)) return { ok: false, why: "later", retryAfterMs: null };
    const found = data.find(
      (batch: unknown) => isRecord(batch) && isRecord(batch["metadata"]) && batch["metadata"][TAG] === tag,
    );
    if (isRecord(found) && typeof found["id"] === "string") return { ok: true, value: found["id"] };
    const last: unknown = data.at(-1);
    if (hasMore !== true || !isRecord(last) || typeof last["id"] !== "string") break;
    after = `&after=${encodeURIComponent(last["id"])}`;
  }
  return { ok: true, value: null };
}

/** If an answer has no id, it is unknown what was made. */
function idOf(got: Requested<unknown>): Requested<string> {
  if (!got.ok) return got;
  const id = isRecord(got.value) ? got.value["id"] : undefined;
  return typeof id === "string" ? { ok: true, value: id } : { ok: false, why: "unknown", retryAfterMs: null };
}

function lookOf(batch: unknown): BatchLook {
  if (!isRecord(batch) || typeof batch["status"] !== "string") return { state: "working" };
  const { status, errors, request_counts: counts } = batch;
  if (status === "failed") return { state: "failed", isFull: isFull(errors) };
  if (!ENDED.has(status)) return { state: "working" };
  const file = (name: string): string | null => {
    const id = batch[name];
    return typeof id === "string" && id !== "" ? id : null;
  };
  const completed = isRecord(counts) && typeof counts["completed"] === "number" ? counts["completed"] : null;
  return { state: "ended", outputFileId: file("output_file_id"), errorFileId: file("error_file_id"), completed };
}

/** Whether a batch was refused because the key has too many tokens enqueued already (`token_limit_exceeded`). */
function isFull(errors: unknown): boolean {
  const data = isRecord(errors) ? errors["data"] : null;
  return (
    Array.isArray(data) && data.some((error: unknown) => isRecord(error) && error["code"] === "token_limit_exceeded")
  );
}

async function* linesOf(response: Response): AsyncGenerator<string> {
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

class Requests {
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
    const sent = { accept: "application/json", "user-agent": "fanout", ...this.#upstream.headers };
    const type = isJson ? { "content-type": "application/json" } : {};
    return { ...sent, ...type, ...keyHeadersOf(this.#upstream) };
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
