/**
 * One HTTP exchange. It uses `node:http` instead of `fetch`: a streamed body can have a content-length, which some servers need,
 * and an upload or a download may take any time while bytes arrive.
 */
import http from "node:http";
import https from "node:https";
import { pipeline, type Readable } from "node:stream";

/** `silenceMs`: time without a byte after which the exchange fails. */
export type Exchange = {
  method: string;
  headers: Record<string, string>;
  body: Readable | string | null;
  silenceMs: number;
  signal: AbortSignal;
};

/**
 * Resolves when the response headers have arrived; the caller must read or destroy the body. Redirects are not followed, so that
 * the token goes only to the server that the user named.
 */
export function exchange(
  url: string,
  { method, headers, body, silenceMs, signal }: Exchange,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? https.request : http.request;
    const request = send(url, { method, headers, signal });
    // A server that refuses a large body early closes the connection: its response says more than the broken pipe.
    let late: NodeJS.Timeout | null = null;
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

/** The beginning of a body as text. */
export async function readText(body: AsyncIterable<Buffer>, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    // Leaving the loop closes the connection.
    if (text.length > bytesMax) break;
  }
  return text;
}

/** The code of a connection error (`ECONNREFUSED`), or its message. */
export function causeOf(error: unknown): string {
  // If a name has several addresses, the error contains one error for each.
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (typeof one === "object" && one !== null && "code" in one && typeof one.code === "string") return one.code;
  return one instanceof Error ? one.message : String(one);
}
