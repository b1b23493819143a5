/** The server's API for batches: files, uploads, batches, and the run with its budget. */
import { retry } from "./retry.mjs";
import { exchange, readText } from "./http.mjs";
import { isObject, memberOf, parseJson, textOf } from "../../text/json.mjs";
import { Problem, refused, unreachable } from "./problem.mjs";

/** Silence after which a request counts as lost, ms; a large upload is stored before the server replies. */
const SILENCE_MS = 60_000;
const UPLOAD_SILENCE_MS = 300_000;
const OWN_SILENCE_MS = 5_000;
/** Largest JSON reply, bytes: a batch with a hundred errors has some tens of KB. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Attempts of a request that creates something: a server that is down for minutes is an error. */
const ATTEMPTS_MAX = 5;

/** @typedef {{ headers: Record<string, string>, body: () => import("node:stream").Readable | string }} Body `body` is called for each attempt. */
/** @typedef {Record<string, unknown>} Document */

export class Api {
  #server;
  #deps;
  /** Whether the server has ever replied: the command does not wait for one that never did. */
  #hasReplied = false;

  /**
   * @param {import("./server.mjs").Server} server
   * @param {import("./retry.mjs").RetryDeps & { signal: AbortSignal }} deps
   */
  constructor(server, deps) {
    this.#server = server;
    this.#deps = deps;
  }

  /**
   * A request that creates something.
   * @param {string} path After `/v1`.
   * @param {Body} body
   */
  async post(path, body) {
    const attempt = () => this.#document("POST", path, body);
    return retry(
      attempt,
      { attemptsMax: ATTEMPTS_MAX, mayRetry: ({ status }) => status !== null || this.#hasReplied },
      this.#deps,
    );
  }

  /**
   * @param {string} path
   * @param {Document} value
   * @param {Record<string, string>} [headers]
   */
  async postJson(path, value, headers = {}) {
    return this.post(path, jsonBody(value, headers));
  }

  /**
   * The current state of a batch. Retried without limit, once the server has replied at all.
   * @param {string} id
   */
  async batch(id) {
    const attempt = () => this.#document("GET", `/batches/${segment(id)}`, null);
    return this.#retryForever(attempt);
  }

  /**
   * Passes a file's bytes to `take`. After a lost connection it calls `take` again, from the beginning of the file.
   * @param {string} id
   * @param {(chunks: AsyncIterable<Buffer>) => Promise<void>} take
   */
  async content(id, take) {
    const path = `/files/${segment(id)}/content`;
    return this.#retryForever(async () => take(this.#chunks(await this.#request("GET", path, null))));
  }

  /** What the run has spent, USD; null if the server does not say. */
  async spentUsd() {
    const spent = memberOf(memberOf(await this.#own("/budget"), "usd"), "spent");
    return typeof spent === "number" && Number.isFinite(spent) ? spent : null;
  }

  /** The id of the token's run; null if the server does not say. */
  async runId() {
    const id = textOf(await this.#own("/run"), "id");
    return id !== null && /^[\w-]{1,200}$/.test(id) ? id : null;
  }

  /**
   * The reply of one of fanout's own routes; null if there is none. One attempt, because it is only shown.
   * @param {string} path
   */
  async #own(path) {
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

  /**
   * Errors while waiting for a chunk are errors of the connection; errors of the consumer are not.
   * @param {AsyncIterable<Buffer>} response
   */
  async *#chunks(response) {
    try {
      for await (const chunk of response) yield chunk;
    } catch (error) {
      throw this.#lost(error);
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} attempt
   */
  #retryForever(attempt) {
    const mayRetry = () => this.#hasReplied;
    return retry(attempt, { attemptsMax: Number.POSITIVE_INFINITY, mayRetry }, this.#deps);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Body | null} body
   * @returns {Promise<Document>}
   */
  async #document(method, path, body) {
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

  /**
   * @param {string} method
   * @param {string} path
   * @param {Body | null} body
   */
  async #request(method, path, body) {
    const url = `${this.#server.apiUrl}${path}`;
    const response = await this.#send(method, url, body);
    this.#hasReplied = true;
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return response;
    const text = await readText(response, ANSWER_BYTES_MAX).catch(() => "");
    throw refused({ method, url, tokenFrom: this.#server.tokenFrom }, { status, headers, text });
  }

  /**
   * @param {string} method
   * @param {string} url
   * @param {Body | null} body
   * @param {number} [silenceMs]
   */
  async #send(method, url, body, silenceMs = body === null ? SILENCE_MS : UPLOAD_SILENCE_MS) {
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

  /** @param {unknown} error */
  #lost(error) {
    // An abort is not an error of the connection.
    this.#deps.signal.throwIfAborted();
    return unreachable(this.#server.apiUrl, error);
  }
}

/**
 * @param {Document} value
 * @param {Record<string, string>} [headers]
 * @returns {Body}
 */
function jsonBody(value, headers = {}) {
  const text = JSON.stringify(value);
  const length = String(Buffer.byteLength(text));
  return { headers: { "content-type": "application/json", "content-length": length, ...headers }, body: () => text };
}

/**
 * An id as part of a path.
 * @param {string} id
 */
export function segment(id) {
  // Encoding does not change dots, and a URL parser resolves these two as path steps.
  return id === "." || id === ".." ? "%00" : encodeURIComponent(id);
}

/**
 * The id of a created object.
 * @param {Document} document
 * @throws {Problem} if there is none.
 */
export function idOf(document) {
  const id = textOf(document, "id");
  if (id === null || id === "") throw new Problem("The server's reply has no id.", { isTransient: false });
  return id;
}
