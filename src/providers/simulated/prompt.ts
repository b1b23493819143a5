/** Finds the prompts of a request that is no conversation: texts, or token ids. */
import { tokensOf } from "./text.ts";

export type Inputs = { texts: readonly string[]; tokens: number };

/** Most texts of one request, as in OpenAI's API: each gets an answer of its own. */
const TEXTS_MAX = 2_048;

export const TEXTS_EXPECTED = `a string, an array of at most ${TEXTS_MAX} strings, or token ids`;

/** Null for any other value. Token ids are read as a text of their numbers, and count as many tokens as there are ids. */
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
