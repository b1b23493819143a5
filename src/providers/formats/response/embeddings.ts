/**
 * Encodes embeddings as the client requested. OpenAI's SDKs request base64 by default, and some upstreams answer with
 * numbers all the same, which older SDKs read as an empty vector.
 */
import { applyPatches, type Patch } from "../../../text/json/edit.ts";
import { valueEnd } from "../../../text/json/grammar.ts";
import { firstElement, kindAt, member, nextElement, readObject, scanObject } from "../../../text/json/scan.ts";

const decoder = new TextDecoder();

/** Re-encodes each `data[i].embedding` that is a list of numbers as base64 of little-endian float32; the rest stays. */
export function floatsToBase64(bytes: Uint8Array): Uint8Array {
  const scan = scanObject(bytes);
  const data = scan.ok ? member(scan.object, "data") : null;
  if (data?.kind !== "array") return bytes;
  const patches: Patch[] = [];
  for (let at = firstElement(bytes, data.start); at !== -1;) {
    const element = kindAt(bytes, at) === "object" ? readObject(bytes, at) : null;
    const embedding = element === null ? null : member(element, "embedding");
    if (embedding?.kind === "array") {
      const { start, end } = embedding;
      const base64 = encode(JSON.parse(decoder.decode(bytes.subarray(start, end))));
      if (base64 !== null) patches.push({ start, end, text: `"${base64}"` });
    }
    at = nextElement(bytes, element?.end ?? valueEnd(bytes, at));
  }
  return applyPatches(bytes, patches);
}

/** Null if the value is not a list of numbers, or one of them is out of the range of float32. */
function encode(vector: unknown): string | null {
  if (!Array.isArray(vector)) return null;
  const encoded = new Uint8Array(vector.length * 4);
  const view = new DataView(encoded.buffer);
  for (let at = 0; at < vector.length; at++) {
    const value: unknown = vector[at];
    if (typeof value !== "number" || !Number.isFinite(Math.fround(value))) return null;
    view.setFloat32(at * 4, value, true);
  }
  return toBase64(encoded);
}

/** Bytes encoded in one call: its arguments must fit the stack. A multiple of 3 needs no padding. */
const CHUNK_BYTES = 6_144;

function toBase64(bytes: Uint8Array): string {
  let base64 = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    base64 += btoa(String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES)));
  }
  return base64;
}
