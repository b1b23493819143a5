/** Request bodies, read under a bound that does not rely on the announced length. */
import type { Reason } from "../errors.ts";
import {
  BODIES_FULL_RETRY_AFTER_MS,
  JSON_BODY_DEPTH_MAX,
  JSON_VALUES_MAX,
  SCAN_SLICE_BYTES,
  SLICED_BODY_BYTES_MIN,
} from "../limits.ts";
import type { Parsed } from "./errors.ts";
import { invalid } from "./errors.ts";
import { pause, type Sliced } from "../text/bytes/slices.ts";
import { excessIn, excessInSlices, type Excess } from "../text/json/depth.ts";
import { parseRelayed } from "./relayed-numbers.ts";
import { describeFault, jsonFault } from "../text/json/validate.ts";

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;
/** A byte order mark is dropped; bytes that are no UTF-8 throw instead of becoming question marks. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** How much a body may have, and what it takes of the memory that all bodies share. */
export type BodyRoom = {
  bytesMax: number;
  /** Takes so many bytes in total for the body. False if there is no room for them now. */
  take: (totalBytes: number) => boolean;
};

/** The JSON value of a body. */
export async function parseBody(request: Request, room: BodyRoom): Promise<Parsed<unknown>> {
  const bytes = await readJsonBytes(request, room);
  return bytes.ok ? jsonOf(bytes.value) : bytes;
}

/** The bytes of a body whose content type is JSON. A missing content type counts as JSON: short scripts send none. */
export function readJsonBytes(request: Request, room: BodyRoom): Promise<Parsed<Uint8Array>> {
  const type = mediaType(request);
  if (type === "" || JSON_TYPE.test(type)) return readBytes(request, room);
  const reason: Reason = { reason: "unsupported_media_type", got: type, expected: "application/json" };
  return Promise.resolve({ ok: false, reason });
}

/** Why a body is nested too deep to be parsed, or has too many values for that; null if neither. `valuesMax`: Infinity = any number. */
export function shapeFault(bytes: Uint8Array, valuesMax: number): ShapeFault | null {
  return faultOf(excessIn(bytes, { levelsMax: JSON_BODY_DEPTH_MAX, valuesMax }), valuesMax);
}

/** The same of a large body, in slices. */
export function* shapeLook(bytes: Uint8Array, valuesMax: number): Sliced<ShapeFault | null> {
  const bounds = { levelsMax: JSON_BODY_DEPTH_MAX, valuesMax, sliceBytes: SCAN_SLICE_BYTES };
  return faultOf(yield* excessInSlices(bytes, bounds), valuesMax);
}

type ShapeFault = { ok: false; reason: Reason };

function faultOf(excess: Excess | null, valuesMax: number): ShapeFault | null {
  if (excess === null) return null;
  const problem = {
    levels: `opens level ${JSON_BODY_DEPTH_MAX + 1} of nesting at byte ${excess.at}; expected at most ${JSON_BODY_DEPTH_MAX}`,
    values: `has more than ${valuesMax} values, the last of these at byte ${excess.at}; expected at most so many elements and fields together`,
  };
  return invalid(null, problem[excess.of]);
}

/** The JSON value that the bytes of a body spell. */
export function jsonOf(bytes: Uint8Array): Parsed<unknown> {
  const unfit = shapeFault(bytes, JSON_VALUES_MAX);
  if (unfit !== null) return unfit;
  const text = textOf(bytes);
  if (!text.ok) return text;
  if (text.value.trim() === "") return invalid(null, "is empty; expected a JSON object");
  try {
    const value = parseRelayed(text.value);
    return { ok: true, value };
  } catch {
    return invalid(null, problemOf(bytes));
  }
}

/** Where the bytes of a body stop being JSON. `JSON.parse` names no position for most faults. */
function problemOf(bytes: Uint8Array): string {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const json = marked ? bytes.subarray(3) : bytes;
  const fault = jsonFault(json);
  return fault === null ? "is not JSON" : describeFault(json, fault);
}

/** The text of a body, which must be UTF-8. */
export function textOf(bytes: Uint8Array): Parsed<string> {
  try {
    return { ok: true, value: decoder.decode(bytes) };
  } catch {
    return invalid(null, "is not UTF-8; expected JSON or text in UTF-8");
  }
}

/**
 * The bytes of a body, at most `bytesMax`; the rest of a longer one is left unread, and so is one that there is no room
 * for: an announced one before its first byte, one of unknown length when it has grown too large. A body that breaks off, or
 * whose bytes are not what its headers announce, is refused: its sender may have left, or be wrong.
 */
export async function readBytes(request: Request, room: BodyRoom): Promise<Parsed<Uint8Array>> {
  const header = request.headers.get("content-length");
  const announced = Number(header);
  if (announced > room.bytesMax) return { ok: false, reason: bodyTooLarge(room.bytesMax) };
  // A stated length is enforced by HTTP, and a body of known length is read whole by the runtime, which is faster.
  const known = header !== null && request.headers.get("content-encoding") === null;
  if (known && !room.take(announced)) return { ok: false, reason: NO_ROOM };
  try {
    const bytes = known
      ? { ok: true as const, value: new Uint8Array(await request.arrayBuffer()) }
      : await collect(request.body, room);
    // What is done with it now takes long: many of them take turns.
    if (bytes.ok && bytes.value.length >= SLICED_BODY_BYTES_MIN) await pause();
    return bytes;
  } catch {
    return invalid(null, BROKEN);
  }
}

const BROKEN = "cannot be read to its end: it ended early, or its chunks or its compression are damaged";

const NO_ROOM: Reason = {
  reason: "overloaded",
  message: "the gateway is busy with other large bodies; retry later, or send the calls in smaller batches",
  retryAfterMs: BODIES_FULL_RETRY_AFTER_MS,
};

/**
 * Drains the rest of a refused request's body, up to `bytesMax` bytes. Most clients read no answer before they have sent
 * their body: without this they see a broken pipe instead of the reason.
 */
export async function drain(request: Request, bytesMax: number): Promise<void> {
  // A reader that has read the body to its end keeps the lock.
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

/** The content type without its parameters, in lower case; "" if it is missing. */
export function mediaType(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";", 1).join("").trim().toLowerCase();
}

/** The bytes of a stream. One buffer that doubles: pieces may be one byte each. */
async function collect(stream: ReadableStream<Uint8Array> | null, room: BodyRoom): Promise<Parsed<Uint8Array>> {
  if (stream === null) return { ok: true, value: new Uint8Array() };
  const { bytesMax } = room;
  const reader = stream.getReader();
  const left = (reason: Reason): Parsed<never> => {
    reader.releaseLock();
    return { ok: false, reason };
  };
  const first = await reader.read();
  if (first.done) return { ok: true, value: new Uint8Array() };
  let buffer = first.value;
  let bytes = buffer.length;
  if (!room.take(bytes)) return left(NO_ROOM);
  while (bytes <= bytesMax) {
    const { done, value } = await reader.read();
    if (done) return { ok: true, value: buffer.subarray(0, bytes) };
    if (bytes + value.length > buffer.length) {
      const grownBytes = Math.min(bytesMax + 1, Math.max(bytes + value.length, buffer.length * 2));
      if (!room.take(grownBytes)) return left(NO_ROOM);
      const grown = new Uint8Array(grownBytes);
      grown.set(buffer.subarray(0, bytes));
      buffer = grown;
    }
    buffer.set(value.subarray(0, buffer.length - bytes), bytes);
    bytes += value.length;
  }
  return left(bodyTooLarge(bytesMax));
}

/** The refusal of a body of more than `bytesMax` bytes. */
export function bodyTooLarge(bytesMax: number): Reason {
  return { reason: "payload_too_large", what: "the body", bytesMax, param: null };
}
