/** When two answers are the same vote. */
import type { Comparison } from "../../call.ts";
import { VOTE_KEY_CHARS_MAX } from "../../limits.ts";
import { jsonInAnswer, valueAt } from "./answer-json.ts";
import { canonicalJson } from "../../text/schema/canonical.ts";

/**
 * What an answer votes for, as a text that only equal votes share; null if it votes for nothing: it is empty, or has no
 * JSON with the key. The text of a long vote is its length and a hash.
 */
export function voteOf(text: string, comparison: Comparison): string | null {
  const vote = wholeVoteOf(text, comparison);
  if (vote === null || vote === "") return null;
  return vote.length <= VOTE_KEY_CHARS_MAX ? vote : `${vote.length}:${hashOf(vote)}`;
}

function wholeVoteOf(text: string, comparison: Comparison): string | null {
  if (comparison.by === "exact") return text;
  if (comparison.by === "normalized") return normalized(text);
  const value = valueAt(jsonInAnswer(text), comparison.key);
  if (value === undefined || value === null) return null;
  // A text and a number that look alike are one vote: models quote numbers or not.
  return typeof value === "object" ? canonicalJson(value) : normalized(String(value));
}

/** A text as it is compared: `**Yes.**`, `"yes"` and `YES` are one. */
export function normalized(text: string): string {
  const plain = text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ");
  let from = 0;
  let to = plain.length;
  while (from < to && isOuterMark(plain[from], AROUND)) from += 1;
  while (to > from && isOuterMark(plain[to - 1], AROUND + FINAL)) to -= 1;
  return plain.slice(from, to);
}

const AROUND = " \"'`*_“”‘’«»";
const FINAL = ".,;:!";

function isOuterMark(char: string | undefined, marks: string): boolean {
  return char !== undefined && marks.includes(char);
}

/** 64 bits of FNV-1a in two halves: no object can afford the memory of 50,000 long answers. */
function hashOf(text: string): string {
  let low = 0x811c9dc5;
  let high = 0xcbf29ce4;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code ^ (low >>> 13), 0x85ebca6b);
  }
  return `${(low >>> 0).toString(36)}.${(high >>> 0).toString(36)}`;
}
