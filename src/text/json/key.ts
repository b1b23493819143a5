/** Decodes the keys and other short strings of a JSON text. They repeat, so most come from a cache without allocation. */
import { BACKSLASH, QUOTE } from "./grammar.ts";

/** Longest string that is cached, bytes, and size of the cache: the fields of a protocol are a few hundred short names. */
const CACHED_BYTES_MAX = 32;
const CACHE_SLOTS = 1_024;

/** The latest string of each hash. The content saves work only and never changes a result. */
const cache: string[] = Array.from({ length: CACHE_SLOTS }, () => "");
/** Characters below it are written as escapes. */
const SPACE = 0x20;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The string between two quotes, whose content is from `start` to `end`, escapes decoded. Takes validated bytes; throws on
 * others.
 */
export function keyAt(bytes: Uint8Array, start: number, end: number): string {
  return shortText(bytes, start, end) ?? decode(bytes, start, end);
}

/** The same string of any bytes; null if it is long, or has more than the characters of ASCII that are written as they are. */
export function shortText(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start > CACHED_BYTES_MAX) return null;
  let hash = end - start;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < SPACE || byte >= 0x80 || byte === BACKSLASH || byte === QUOTE) return null;
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const slot = hash & (CACHE_SLOTS - 1);
  const cached = cache[slot] ?? "";
  if (spells(bytes, start, end, cached)) return cached;
  const text = decode(bytes, start, end);
  cache[slot] = text;
  return text;
}

/** Whether the bytes from `start` to `end` are those of an ASCII text. */
export function spells(bytes: Uint8Array, start: number, end: number, text: string): boolean {
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
