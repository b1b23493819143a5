/** Sketches of texts: small, and the more alike the more words two texts share. They choose which requests are compared word by word. */
import { SKETCH_TEXT_CHARS } from "../limits.ts";

/** Hashes of a sketch: the share of equal ones estimates the share of common pairs of words, to about a tenth. */
const HASHES = 32;

/** The sketch of a text: for each hash function its least value over all pairs of words that follow each other. */
export function sketchOf(text: string): Uint32Array {
  const least = new Uint32Array(HASHES).fill(0xffffffff);
  // What differs is as often at the end, behind a long common text, as at the beginning.
  const half = SKETCH_TEXT_CHARS / 2;
  const parts = text.length <= SKETCH_TEXT_CHARS ? [text] : [text.slice(0, half), text.slice(-half)];
  for (const part of parts) {
    let before = 0;
    for (const [word] of part.matchAll(/[\p{L}\p{N}_]+/gu)) {
      const hash = hashOf(word);
      add(least, hash);
      add(least, Math.imul(before, 0x01000193) ^ hash);
      before = hash;
    }
  }
  return least;
}

/** How alike two sketches are, from 0 to 1. */
export function likeness(a: Uint32Array, b: Uint32Array): number {
  let equal = 0;
  for (let at = 0; at < HASHES; at++) if (a[at] === b[at]) equal += 1;
  return equal / HASHES;
}

function add(least: Uint32Array, hash: number): void {
  for (let at = 0; at < HASHES; at++) {
    let mixed = Math.imul(hash ^ (at * 0x9e3779b9), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    const value = (mixed ^ (mixed >>> 16)) >>> 0;
    if (value < (least[at] ?? 0)) least[at] = value;
  }
}

/** FNV-1a. */
function hashOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  return hash;
}
