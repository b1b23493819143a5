/** The server's side of a batch, over HTTP: files, uploads, batches, and what the run has spent. */
import { again } from "./again.mjs";
import { exchange, readText } from "./http.mjs";
import { isObject, memberOf, parseJson, textOf } from "./json.mjs";
import { Problem, refused, unreachable } from "./problem.mjs";

/** Silence after which a request counts as lost, ms; a large upload is stored before it is answered. */
const SILENCE_MS = 60_000;
const UPLOAD_SILENCE_MS = 300_000;
const BUDGET_SILENCE_MS = 5_000;
/** Bytes of an answer that is JSON: a batch with a hundred errors has some tens of KB. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Attempts of a request that begins something: a server that is away for minutes is told of, not waited for. */
const ATTEMPTS_MAX = 5;

/** @typedef {{ headers: Record<string, string>, body: () => import("node:stream").Readable | string }} Body `body` anew for each attempt. */
/** @typedef {Record<string, unknown>} Document */

export class Api {
  #server;
  #deps;
  /** Whether the server has ever answered: one that never did is not waited for. */
  #isThere = false;

  /**
   * @param {import("./credential.mjs").Server} server
   * @param {import("./again.mjs").AgainDeps & { signal: AbortSignal }} deps
   */
  constructor(server, deps) {
    this.#server = server;
    this.#deps = deps;
  }

  /**
   * A request that begins something.
   * @param {string} path Behind `/v1`.
   * @param {Body} body
   */
  async post(path, body) {
    const attempt = () => this.#document("POST", path, body);
    return again(
      attempt,
      { attemptsMax: ATTEMPTS_MAX, mayPass: ({ status }) => status !== null || this.#isThere },
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
   * A batch as it stands. Asked again for as long as it takes, once the server has answered at all.
   * @param {string} id
   */
  async batch(id) {
    const attempt = () => this.#document("GET", `/batches/${segment(id)}`, null);
    return this.#patiently(attempt);
  }

  /**
   * Hands a file's bytes to `take`; all of them again, in a new call of it, if the connection breaks off.
   * @param {string} id
   * @param {(chunks: AsyncIterable<Buffer>) => Promise<void>} take
   */
  async content(id, take) {
    const path = `/files/${segment(id)}/content`;
    return this.#patiently(async () => take(this.#chunks(await this.#request("GET", path, null))));
  }

  /**
   * What the run has spent, USD; null where the server does not tell. One attempt: it only decorates the progress.
   */
  async spentUsd() {
    const { budgetUrl } = this.#server;
    if (budgetUrl === null) return null;
    try {
      const response = await this.#send("GET", budgetUrl, null, BUDGET_SILENCE_MS);
      const body = parseJson(await readText(response, ANSWER_BYTES_MAX));
      const spent = response.statusCode === 200 ? memberOf(memberOf(body, "usd"), "spent") : null;
      return typeof spent === "number" && Number.isFinite(spent) ? spent : null;
    } catch (error) {
      if (error instanceof Problem) return null;
      throw error;
    }
  }

  /**
   * What goes wrong while a chunk is awaited is the connection's; what its taker throws is not.
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
  #patiently(attempt) {
    const mayPass = () => this.#isThere;
    return again(attempt, { attemptsMax: Number.POSITIVE_INFINITY, mayPass }, this.#deps);
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
    const message = `${this.#server.apiUrl}${path} answered with something that is no JSON object.`;
    throw new Problem(message, { passing: false, status: 200 });
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Body | null} body
   */
  async #request(method, path, body) {
    const url = `${this.#server.apiUrl}${path}`;
    const response = await this.#send(method, url, body);
    this.#isThere = true;
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
    // What is stopped on purpose is no problem of the connection's.
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
  // Encoding leaves dots alone, and a URL takes these two for steps.
  return id === "." || id === ".." ? "%00" : encodeURIComponent(id);
}

/**
 * The id that a server gave what it made.
 * @param {Document} document
 * @throws {Problem} where it gave none.
 */
export function idOf(document) {
  const id = textOf(document, "id");
  if (id === null || id === "") throw new Problem("The server answered without an id.", { passing: false });
  return id;
}
