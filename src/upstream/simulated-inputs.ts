/** Reads what completions and embeddings take: a text, an array of texts, or the same as token ids. */
import { tokensOf } from "./simulated-tokens.ts";

export type Inputs = { texts: readonly string[]; tokens: number };

/** Most texts of one request, as OpenAI's API has it: each gets an answer of its own. */
const TEXTS_MAX = 2_048;

export const TEXTS_EXPECTED = `a string, an array of at most ${TEXTS_MAX} strings, or token ids`;

/** Null if it is none of these. Token ids stand for a text of their numbers, which counts as many tokens as it has ids. */
export function textsIn(value: unknown): Inputs | null {
  if (typeof value === "string") return { texts: [value], tokens: tokensOf([value]) };
  if (!Array.isArray(value) || value.length === 0) return null;
  if (isTokenIds(value)) return { texts: [value.join(" ")], tokens: value.length };
  if (value.length > TEXTS_MAX) return null;
  const texts: string[] = [];
  let tokens = 0;
  for (const entry of value as readonly unknown[]) {
    if (typeof entry === "string") {
      texts.push(entry);
      tokens += tokensOf([entry]);
    } else if (Array.isArray(entry) && isTokenIds(entry)) {
      texts.push(entry.join(" "));
      tokens += entry.length;
    } else {
      return null;
    }
  }
  return { texts, tokens };
}

function isTokenIds(value: readonly unknown[]): boolean {
  return value.length > 0 && value.every((id) => typeof id === "number");
}
