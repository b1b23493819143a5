import { describe, expect, test } from "vitest";
import { packWords } from "../../../../scripts/token-tables/words.ts";
import { BARE, CAPITAL, HASH_SEED, hashStep, SUFFIXED, WordSet } from "../../../../src/text/tokens/words.ts";

const FACTS = [
  { word: "a", capital: true, bare: true, suffixes: false },
  { word: "able", capital: false, bare: false, suffixes: true },
  { word: "abler", capital: false, bare: true, suffixes: false },
  { word: "zoo", capital: false, bare: false, suffixes: false },
];
const set = new WordSet(packWords(FACTS));

/** Looks a word up in the middle of other bytes. */
function factsOf(word: string): number {
  const bytes = Buffer.from(`x${word}y`);
  const letters = [...bytes.subarray(1, -1)];
  const hash = letters.reduce((sum, letter, at) => hashStep(sum, at === 0 ? letter | 32 : letter), HASH_SEED);
  return set.factsOf(bytes, 1, bytes.length - 1, hash);
}

describe("WordSet", () => {
  test.each([
    ["a", CAPITAL | BARE],
    ["able", SUFFIXED],
    ["abler", BARE],
    ["zoo", 0],
    ["Zoo", 0],
    ["Able", SUFFIXED],
  ])("finds %s with its facts", (word, facts) => {
    expect(factsOf(word)).toBe(facts);
  });

  test.each(["b", "ab", "abl", "ables", "zooo", "zo", "aBle", "ZOO", "A[", "abler "])("does not find %s", (word) => {
    expect(factsOf(word)).toBe(-1);
  });

  test("distinguishes words of the same hash", () => {
    const bytes = Buffer.from("zoo");
    const hash = [...Buffer.from("able")].reduce(hashStep, HASH_SEED);
    expect(set.factsOf(bytes, 0, 3, hash)).toBe(-1);
  });
});
