/** Byte pair encoding by a tokenizer's own merges, without its pre-tokenizer: for words and pieces of words in ASCII. */
import { readFileSync } from "node:fs";

/** One tokenizer. Texts are printable ASCII that every pre-tokenizer keeps in one piece: a word and the space before it. */
export type Bpe = {
  name: string;
  /** The tokens of a text, in order. */
  encode: (text: string) => string[];
  /** How early a token was learned, as a share of the vocabulary: the more frequent it is, the lower. */
  ageOf: (token: string) => number;
};

type Merges = { rankOf: (left: string, right: string) => number | undefined; ageOf: (token: string) => number };

/** Reads a tokenizer.json or a .tiktoken file. */
export function bpeOf(path: string): Bpe {
  const text = readFileSync(path, "utf8");
  const { rankOf, ageOf } = path.endsWith(".json") ? fromMerges(JSON.parse(text)) : fromRanks(text);
  return { name: path, encode: (word) => encode(word, rankOf), ageOf };
}

function encode(text: string, rankOf: Merges["rankOf"]): string[] {
  const tokens = [...text];
  for (;;) {
    let best = -1;
    let bestRank = Infinity;
    for (let at = 0; at + 1 < tokens.length; at++) {
      const rank = rankOf(tokens[at] ?? "", tokens[at + 1] ?? "");
      if (rank !== undefined && rank < bestRank) {
        best = at;
        bestRank = rank;
      }
    }
    if (best === -1) return tokens;
    tokens.splice(best, 2, `${tokens[best]}${tokens[best + 1]}`);
  }
}

type TokenizerJson = {
  model: { type: string; vocab: Record<string, number>; merges: readonly (string | readonly [string, string])[] };
};

function fromMerges({ model }: TokenizerJson): Merges {
  if (model.type !== "BPE") throw new Error(`expected BPE, found ${model.type}`);
  // A space is written as U+0120 by byte-level vocabularies and as U+2581 by SentencePiece.
  const plain = (token: string) => token.replaceAll(/[\u0120\u2581]/g, " ");
  const ranks = new Map<string, number>();
  for (const [rank, merge] of model.merges.entries()) {
    const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
    const key = `${plain(left ?? "")}\n${plain(right ?? "")}`;
    if (!ranks.has(key)) ranks.set(key, rank);
  }
  const ids = new Map(Object.entries(model.vocab).map(([token, id]) => [plain(token), id]));
  return {
    rankOf: (left, right) => ranks.get(`${left}\n${right}`),
    ageOf: (token) => (ids.get(token) ?? ids.size) / ids.size,
  };
}

function fromRanks(text: string): Merges {
  const lines = text.split("\n").filter((line) => line !== "");
  const ranks = new Map<string, number>();
  for (const line of lines) {
    const [token, rank] = line.split(" ");
    ranks.set(Buffer.from(token ?? "", "base64").toString("latin1"), Number(rank));
  }
  return {
    rankOf: (left, right) => ranks.get(left + right),
    ageOf: (token) => (ranks.get(token) ?? ranks.size) / ranks.size,
  };
}
