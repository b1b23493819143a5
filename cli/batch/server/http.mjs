/**
 * One HTTP exchange. It uses `node:http` instead of `fetch`: a streamed body can have a content-length, which some servers need,
 * and an upload or a download may take any time while bytes arrive.
 */
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream";

/**
 * @typedef {{ method: string, headers: Record<string, string>, body: import("node:stream").Readable | string | null,
 *   silenceMs: number, signal: AbortSignal }} Exchange `silenceMs`: time without a byte after which the exchange fails.
 */

/**
 * Resolves when the response headers have arrived; the caller must read or destroy the body. Redirects are not followed, so that
 * the token goes only to the server that the user named.
 * @param {string} url
 * @param {Exchange} exchange
 * @returns {Promise<http.IncomingMessage>}
 */
export function exchange(url, { method, headers, body, silenceMs, signal }) {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? https.request : http.request;
    const request = send(url, { method, headers, signal });
    // A server that refuses a large body early closes the connection: its response says more than the broken pipe.
    /** @type {NodeJS.Timeout | null} */
    let late = null;
    request.once("response", (response) => {
      if (late !== null) clearTimeout(late);
      resolve(response);
    });
    request.on("error", (error) => {
      late ??= setTimeout(() => reject(error), 50);
    });
    request.setTimeout(silenceMs, () => request.destroy(new Error(`no data for ${silenceMs / 1000} s`)));
    if (body === null || typeof body === "string") request.end(body ?? undefined);
    else pipeline(body, request, (error) => error && request.destroy(error));
  });
}

/**
 * The beginning of a body as text.
 * @param {AsyncIterable<Buffer>} body
 * @param {number} bytesMax
 */
export async function readText(body, bytesMax) {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    // Leaving the loop closes the connection.
    if (text.length > bytesMax) break;
  }
  return text;
}

/**
 * The code of a connection error (`ECONNREFUSED`), or its message.
 * @param {unknown} error
 */
export function causeOf(error) {
  // If a name has several addresses, the error contains one error for each.
  const one = error instanceof AggregateError ? error.errors[0] : error;
  if (typeof one === "object" && one !== null && "code" in one && typeof one.code === "string") return one.code;
  return one instanceof Error ? one.message : String(one);
}
