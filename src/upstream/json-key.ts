/** Decodes keys and other short texts of a JSON text, which repeat: most are taken from a cache without an allocation. */
import { BACKSLASH } from "./json-bytes.ts";

/** Longest text that is kept, bytes, and how many are: the fields of a protocol are a few hundred short names. */
const KEPT_BYTES_MAX = 32;
const KEPT_MAX = 1_024;

/** By a hash of their bytes, the latest to come: the content only saves work, it never changes a result. */
const kept: string[] = Array.from({ length: KEPT_MAX }, () => "");
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text that stands between two quotes at `start` and `end`, escapes decoded. Takes checked bytes. */
export function keyAt(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > KEPT_BYTES_MAX) return decode(bytes, start, end);
  let hash = end - start;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === BACKSLASH || byte >= 0x80) return decode(bytes, start, end);
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const slot = hash & (KEPT_MAX - 1);
  const known = kept[slot] ?? "";
  if (spells(bytes, start, end, known)) return known;
  const text = decode(bytes, start, end);
  kept[slot] = text;
  return text;
}

function spells(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (text.length !== end - start) return false;
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) !== bytes[start + at]) return false;
  }
  return true;
}

function decode(bytes: Uint8Array, start: number, end: number): string {
  const written = bytes.subarray(start, end);
  const text = decoder.decode(written);
  if (!written.includes(BACKSLASH)) return text;
  const decoded: unknown = JSON.parse(`"${text}"`);
  return String(decoded);
}
