/** The words that are one token, with a space before them, in every tokenizer; the most frequent of them. */
import { SUFFIXES, WORD_LETTERS_MAX } from "../../src/text/tokens/words.ts";
import type { Bpe } from "./bpe.ts";

/** What is known of a word that is one token after a space. */
export type WordFact = {
  word: string;
  /** One token after a space with a capital, too. */
  capital: boolean;
  /** One token without a space, too. */
  bare: boolean;
  /** With each of `SUFFIXES`, never more than 3 tokens after a space, 4 with a capital after it, or without a space. */
  suffixes: boolean;
};

/** What some pre-tokenizers keep in one piece with the word that follows: every sign of ASCII, and the tab. */
const MARKS = [...'\t!"#$%&()*+,-./0123456789:;<=>?@[\\]^_`{|}~'];

/** The facts of at most `max` words, sorted. */
export function wordFacts(dictionary: readonly string[], tokenizers: readonly Bpe[], max: number): WordFact[] {
  const atMost = (text: string, tokens: number) => tokenizers.every(({ encode }) => encode(text).length <= tokens);
  const words = [...new Set(dictionary)].filter(
    (word) =>
      /^[a-z]+$/.test(word) &&
      word.length <= WORD_LETTERS_MAX &&
      atMost(` ${word}`, 1) &&
      otherForms(word).every((form) => atMost(form, 2)) &&
      MARKS.every((mark) => atMost(mark + word, 3) && atMost(mark + capitalOf(word), 3)),
  );
  const ages = new Map(words.map((word) => [word, tokenizers.reduce((sum, { ageOf }) => sum + ageOf(` ${word}`), 0)]));
  const byAge = words.toSorted((left, right) => (ages.get(left) ?? 0) - (ages.get(right) ?? 0));
  // A long word gains more than a short one of the same frequency, which falls about as the rank grows.
  const gain = new Map(byAge.map((word, rank) => [word, Math.sqrt(word.length) / (rank + 50)]));
  const kept = byAge.toSorted((left, right) => (gain.get(right) ?? 0) - (gain.get(left) ?? 0)).slice(0, max);
  return kept.toSorted().map((word) => ({
    word,
    capital: atMost(` ${capitalOf(word)}`, 1),
    bare: atMost(word, 1) && MARKS.every((mark) => atMost(mark + word, 2)),
    suffixes: SUFFIXES.every(
      (suffix) => atMost(` ${word}${suffix}`, 3) && otherForms(word + suffix).every((form) => atMost(form, 4)),
    ),
  }));
}

function capitalOf(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** A word without a space, with a capital, and with both. */
function otherForms(word: string): string[] {
  return [word, capitalOf(word), ` ${capitalOf(word)}`];
}

/**
 * Words in order, each as one character and the letters by which it differs from the one before it. The character is
 * 33 (no letter of a word) plus the number of first letters that the two share (at most 7) plus 8, 16 and 32 for the
 * three facts: see `unpackWords`.
 */
export function packWords(facts: readonly WordFact[]): string {
  let last = "";
  let packed = "";
  for (const { word, capital: isCapital, bare, suffixes } of facts) {
    let shared = 0;
    while (shared < 7 && shared < last.length && last[shared] === word[shared]) shared++;
    const code = 33 + shared + (isCapital ? 8 : 0) + (bare ? 16 : 0) + (suffixes ? 32 : 0);
    packed += String.fromCharCode(code) + word.slice(shared);
    last = word;
  }
  return packed;
}
