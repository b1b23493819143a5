/** Reads an upstream's answer, at most a given number of its bytes, and leaves no body unread. */
import { RESPONSE_BYTES_MAX } from "../limits.ts";

/** The answer's text, or why it cannot be read: longer than the limit, or not UTF-8. */
export type BodyText = { ok: true; text: string } | { ok: false; why: "too_large" | "not_utf8" };

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Reads the body to its end, or cancels it once it is too long. Rejects only when the connection fails or the request
 * is aborted. An announced length below the limit lets the runtime read it whole, which is several times faster than
 * chunk by chunk; a compressed body announces the wrong length, so it is always counted as it unfolds.
 */
export async function readBody(response: Response, bytesMax = RESPONSE_BYTES_MAX): Promise<BodyText> {
  const length = announcedBytes(response.headers);
  if (length !== null && length > bytesMax) {
    await discard(response);
    return { ok: false, why: "too_large" };
  }
  if (length !== null) return decoded(new Uint8Array(await response.arrayBuffer()));
  return response.body === null ? { ok: true, text: "" } : await readCounted(response.body.getReader(), bytesMax);
}

/** Cancels an unread body, so that its connection is freed. Never rejects. */
export async function discard(response: Response): Promise<void> {
  try {
    await response.body?.cancel();
  } catch {
    // A body that already failed has nothing left to free.
  }
}

async function readCounted(reader: ReadableStreamDefaultReader<Uint8Array>, bytesMax: number): Promise<BodyText> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return decoded(joined(chunks));
    bytes += value.byteLength;
    if (bytes > bytesMax) {
      await reader.cancel().catch(() => {});
      return { ok: false, why: "too_large" };
    }
    chunks.push(value);
  }
}

function announcedBytes(headers: Headers): number | null {
  const length = headers.get("content-length");
  if (length === null || !/^\d{1,15}$/.test(length)) return null;
  const encoding = headers.get("content-encoding");
  return encoding === null || encoding === "identity" ? Number(length) : null;
}

/** The chunks as one; of a single chunk it is that one itself. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const only = chunks[0];
  if (chunks.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function decoded(bytes: Uint8Array): BodyText {
  try {
    return { ok: true, text: utf8.decode(bytes) };
  } catch {
    return { ok: false, why: "not_utf8" };
  }
}
