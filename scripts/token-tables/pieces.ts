/**
 * Which pieces never stand side by side. In what BPE makes of a word, two neighbouring tokens are always what it makes
 * of those two alone: so where no tokenizer splits "ch" into "c" and "h", no word anywhere holds those two tokens in a
 * row, and where none splits "ght" into "g" and "ht", no word holds these.
 */
import type { Bpe } from "./bpe.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** What a pair may begin with. */
const PAIR_FIRSTS = ` ${LETTERS}${LETTERS.toUpperCase()}`;
/** What a triple may begin with. */
const TRIPLE_FIRSTS = ` ${LETTERS}`;

/**
 * Bits as base64. `pairs`: for every first of `PAIR_FIRSTS` and every letter (capitals after a space only, then a to z)
 * whether they are never two tokens. `triples`: for every first and two letters, two bits: never 1 + 2, never 2 + 1.
 */
export function pieceRules(tokenizers: readonly Bpe[]): { pairs: string; triples: string } {
  const never = (left: string, right: string) =>
    tokenizers.every(({ encode }) => {
      const tokens = encode(left + right);
      return !(tokens.length === 2 && tokens[0] === left);
    });
  const pairs: boolean[] = [];
  for (const first of PAIR_FIRSTS) {
    for (const letter of LETTERS) pairs.push(never(first, letter));
  }
  for (const letter of LETTERS.toUpperCase()) pairs.push(never(" ", letter));
  const triples: boolean[] = [];
  for (const first of TRIPLE_FIRSTS) {
    for (const second of LETTERS) {
      for (const third of LETTERS) triples.push(never(first, second + third), never(first + second, third));
    }
  }
  return { pairs: packed(pairs), triples: packed(triples) };
}

function packed(bits: readonly boolean[]): string {
  const bytes = new Uint8Array(Math.ceil(bits.length / 8));
  for (const [at, bit] of bits.entries()) if (bit) bytes[at >> 3] = (bytes[at >> 3] ?? 0) | (1 << (at & 7));
  return Buffer.from(bytes).toString("base64");
}
