/** What the simulated models say to a prompt. */
import type { SimulatedModelName } from "./simulated-model.ts";

/** The whole answer of a model, before its cap. `slow`, `fail` and `random` differ from `echo` in time and luck only. */
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

/** A line `word: number`, as this model itself writes them; the word may be a name of several. */
const COUNT_LINE = /^[ \t]*(\p{L}[\p{L}\p{M}\p{N}'’ -]{0,60}?)[ \t]*:[ \t]*(\d{1,12})[ \t]*$/u;

const LETTER_OR_DIGIT = /[\p{L}\p{M}\p{N}]/u;

/** Both halves of a map-reduce: counts the words after `Words:` in what follows `Text:`, or adds up such counts. */
function namesText(prompt: string): string {
  const lines = prompt.split(/\r?\n/);
  const textAt = lines.findIndex((line) => /^\s*text:/i.test(line));
  const wordsLine = lines.find((line) => /^\s*words:/i.test(line));
  if (textAt !== -1 && wordsLine !== undefined) return countText(wordsLine, lines.slice(textAt));
  return totalsText(lines);
}

/** The words asked for are separated by commas, or by white space when there is no comma. */
function countText(wordsLine: string, textLines: readonly string[]): string {
  const listed = wordsLine.replace(/^\s*words:/i, "").trim();
  const asked = new Set(listed.split(listed.includes(",") ? /\s*,\s*/ : /\s+/).filter((word) => word !== ""));
  const text = textLines
    .join("\n")
    .replace(/^\s*text:/i, "")
    .toLowerCase();
  return Array.from(asked, (word) => `${word}: ${occurrences(word.toLowerCase(), text)}`).join("\n");
}

/** How often a word stands in a text with no letter or digit on either side. */
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
