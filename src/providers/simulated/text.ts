/** The answers of the simulated models, counted in tokens and cut to a cap. */
import type { SimulatedModelName } from "./model.ts";

/** The whole answer of a model, before its cap. `slow`, `fail` and `random` echo, too: they differ in time and failures. */
export function simulatedText(name: SimulatedModelName, prompt: string): string {
  switch (name) {
    case "echo":
    case "slow":
    case "fail":
    case "random":
      return prompt;
    case "reverse":
      return Array.from(prompt).toReversed().join("");
    case "names":
      return namesText(prompt);
    case "json":
      return JSON.stringify({ echo: prompt, words: prompt.split(/\s+/).filter((word) => word !== "").length });
  }
}

/** A line `word: number`, as the model itself writes it; the word may be a name of several words. */
const COUNT_LINE = /^[ \t]*(\p{L}[\p{L}\p{M}\p{N}'\u2019 -]{0,60}?)[ \t]*:[ \t]*(\d{1,12})[ \t]*$/u;

const LETTER_OR_DIGIT = /[\p{L}\p{M}\p{N}]/u;

/** Both halves of a map-reduce: counts the words after `Words:` in what follows `Text:`, or adds up such counts. */
function namesText(prompt: string): string {
  const lines = prompt.split(/\r?\n/);
  const textAt = lines.findIndex((line) => /^\s*text:/i.test(line));
  const wordsLine = lines.find((line) => /^\s*words:/i.test(line));
  if (textAt !== -1 && wordsLine !== undefined) return countText(wordsLine, lines.slice(textAt));
  return totalsText(lines);
}

/** Most words of one list that are counted: demos count dozens, and each word costs a pass over the text. */
const COUNTED_WORDS_MAX = 256;

/** The words of the list are separated by commas, or by white space if there is no comma. */
function countText(wordsLine: string, textLines: readonly string[]): string {
  const listed = wordsLine.replace(/^\s*words:/i, "").trim();
  const words = listed.includes(",") ? listed.split(",").map((word) => word.trim()) : listed.split(/\s+/);
  // Each word is searched in the whole text.
  const counted = new Set(words.filter((word) => word !== "").slice(0, COUNTED_WORDS_MAX));
  const text = textLines
    .join("\n")
    .replace(/^\s*text:/i, "")
    .toLowerCase();
  return Array.from(counted, (word) => `${word}: ${occurrences(word.toLowerCase(), text)}`).join("\n");
}

/** How often a word occurs in a text with no letter or digit on either side. */
function occurrences(word: string, text: string): number {
  let count = 0;
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
    const before = text.charAt(at - 1);
    const after = text.charAt(at + word.length);
    if (!LETTER_OR_DIGIT.test(before) && !LETTER_OR_DIGIT.test(after)) count++;
  }
  return count;
}

function totalsText(lines: readonly string[]): string {
  const totals = new Map<string, number>();
  for (const line of lines) {
    const [, word, count] = COUNT_LINE.exec(line) ?? [];
    if (word !== undefined) totals.set(word, (totals.get(word) ?? 0) + Number(count));
  }
  return Array.from(totals)
    .toSorted(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .map(([word, total]) => `${word}: ${total}`)
    .join("\n");
}

// ─── Tokens ───

/** A token is four bytes of UTF-8; the last one of a text may be shorter. */
export const BYTES_PER_TOKEN = 4;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** `isCut`: the answer was longer than the cap. */
export type Completion = { text: string; tokens: number; isCut: boolean };

/** Tokens of texts that make up one prompt. */
export function tokensOf(texts: readonly string[]): number {
  return Math.ceil(texts.reduce((bytes, text) => bytes + encoder.encode(text).byteLength, 0) / BYTES_PER_TOKEN);
}

/** Cut to the cap at the last whole character that fits. */
export function capped(text: string, tokensMax: number): Completion {
  const bytes = encoder.encode(text);
  const tokens = Math.ceil(bytes.byteLength / BYTES_PER_TOKEN);
  if (tokens <= tokensMax) return { text, tokens, isCut: false };
  let end = Math.max(0, Math.floor(tokensMax * BYTES_PER_TOKEN));
  // Bytes 10xxxxxx continue a character; cutting before one would split it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const cut = decoder.decode(bytes.subarray(0, end));
  return { text: cut, tokens: Math.ceil(end / BYTES_PER_TOKEN), isCut: true };
}
