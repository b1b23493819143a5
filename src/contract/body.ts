/** Request bodies: read under a bound that does not rely on what the client says of their length. */
import type { Reason } from "../errors.ts";
import type { Parsed } from "./errors.ts";
import { invalid } from "./errors.ts";
import { jsonFault } from "./json-fault.ts";

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;
/** A byte order mark is dropped; bytes that are no UTF-8 throw instead of becoming question marks. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The JSON value of a body. */
export async function parseBody(request: Request, bytesMax: number): Promise<Parsed<unknown>> {
  const bytes = await readJsonBytes(request, bytesMax);
  return bytes.ok ? jsonOf(bytes.value) : bytes;
}

/** The bytes of a body that is said to be JSON. A missing content type is taken for JSON: short scripts send none. */
export async function readJsonBytes(request: Request, bytesMax: number): Promise<Parsed<Uint8Array>> {
  const type = mediaType(request);
  if (type !== "" && !JSON_TYPE.test(type)) {
    return { ok: false, reason: { reason: "unsupported_media_type", got: type, expected: "application/json" } };
  }
  return await readBytes(request, bytesMax);
}

/** The JSON value that the bytes of a body spell. */
export function jsonOf(bytes: Uint8Array): Parsed<unknown> {
  const text = textOf(bytes);
  if (!text.ok) return text;
  if (text.value.trim() === "") return invalid(null, "empty body; expected a JSON object");
  try {
    const value: unknown = JSON.parse(text.value);
    return { ok: true, value };
  } catch {
    return invalid(null, jsonFault(text.value));
  }
}

/** The text of a body, which must be UTF-8. */
export function textOf(bytes: Uint8Array): Parsed<string> {
  try {
    return { ok: true, value: decoder.decode(bytes) };
  } catch {
    return invalid(null, "is not UTF-8; expected JSON or text in UTF-8");
  }
}

/** The bytes of a body, at most `bytesMax`; the rest of a longer one is left unread. */
export async function readBytes(request: Request, bytesMax: number): Promise<Parsed<Uint8Array>> {
  const header = request.headers.get("content-length");
  if (Number(header) > bytesMax) return tooLarge(bytesMax);
  // A stated length is enforced by HTTP, and a body of known length is read whole by the runtime, which is faster.
  const known = header !== null && request.headers.get("content-encoding") === null;
  const bytes = known ? new Uint8Array(await request.arrayBuffer()) : await collect(request.body, bytesMax);
  return bytes === null ? tooLarge(bytesMax) : { ok: true, value: bytes };
}

/**
 * Reads what is left of a refused request's body, up to `bytesMax` bytes, and forgets it. Most clients read no answer
 * before they have sent their body: if nobody takes it, they see a broken pipe where the reason should be.
 */
export async function hearOut(request: Request, bytesMax: number): Promise<void> {
  // Whoever read the body to its end has kept the lock.
  if (request.body === null || request.body.locked) return;
  try {
    const reader = request.body.getReader();
    for (let bytes = 0; bytes < bytesMax;) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch {
    // It was read whole already, or the client has gone.
  }
}

/** The content type without its parameters, in lower case; "" if there is none. */
export function mediaType(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";", 1).join("").trim().toLowerCase();
}

async function collect(stream: ReadableStream<Uint8Array> | null, bytesMax: number): Promise<Uint8Array | null> {
  if (stream === null) return new Uint8Array();
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > bytesMax) {
      reader.releaseLock();
      return null;
    }
    chunks.push(value);
  }
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function tooLarge(bytesMax: number): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "payload_too_large", what: "the body", bytesMax, param: null } };
}
