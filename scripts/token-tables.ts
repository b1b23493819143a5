/**
 * Derives src/text/tokens/tables.json, the facts about tokenizers that src/text/tokens/text-bound.ts counts with:
 *
 *   node scripts/token-tables.ts DICTIONARY TOKENIZER...
 *
 * DICTIONARY is a list of English words, one a line (Debian's package wamerican has one). Each TOKENIZER is a
 * tokenizer.json (byte-level or SentencePiece BPE) or a .tiktoken file. A fact is kept only if it holds in every one of
 * them, so a tokenizer more can only shrink the tables.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { bpeOf, type Bpe } from "./token-tables/bpe.ts";
import { pieceRules } from "./token-tables/pieces.ts";
import { packWords, wordFacts } from "./token-tables/words.ts";

/** How many words are kept: each costs about 3.5 bytes of the Worker's bundle and gains less than the one before it. */
const WORDS_MAX = 6_000;

const [dictionaryPath, ...tokenizerPaths] = process.argv.slice(2);
if (dictionaryPath === undefined || tokenizerPaths.length === 0) {
  console.error("usage: node scripts/token-tables.ts DICTIONARY TOKENIZER...");
  process.exit(2);
}
const dictionary = readFileSync(dictionaryPath, "utf8").split("\n");
const tokenizers: Bpe[] = tokenizerPaths.map((path) => bpeOf(path));
const { pairs, triples } = pieceRules(tokenizers);
const words = wordFacts(dictionary, tokenizers, WORDS_MAX);
const tables = { words: packWords(words), pairs, triples };
writeFileSync("src/text/tokens/tables.json", `${JSON.stringify(tables, null, 1)}\n`);
console.log(`${words.length} words of ${tokenizers.length} tokenizers, ${JSON.stringify(tables).length} bytes`);
