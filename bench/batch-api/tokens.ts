/** The content of line `index` of a batch, and the provider's answer and bill for it. Both sides compute it from the number. */
import { MODEL } from "../load/prompts.ts";

/** Tokens of one answer. */
export type Tokens = { prompt: number; completion: number; cached: number; reasoning: number };

/** Differs from line to line, so that a sum which misses a line and counts another twice is another sum. */
export function tokensOf(index: number): Tokens {
  const [prompt, completion] = [40 + (index % 89), 10 + (index % 53)];
  return { prompt, completion, cached: index % 7, reasoning: index % 5 };
}

/** What the provider answers to line `index`. */
export function textOf(index: number): string {
  return `This is the answer to line ${index}, in one sentence of the usual length.`;
}

export function customIdOf(index: number): string {
  return `line-${index}`;
}

/** Line `index` of a batch's input, `bytes` long with its end (or as long as it must be). */
export function lineOf(index: number, bytes: number): string {
  const body = (content: string) => ({ model: `up/${MODEL}`, messages: [{ role: "user", content }], max_tokens: 64 });
  const line = (content: string) =>
    `${JSON.stringify({ custom_id: customIdOf(index), method: "POST", url: "/v1/chat/completions", body: body(content) })}\n`;
  const prompt = `#${index}# Summarise this part of the text in one sentence.`;
  return line(prompt.padEnd(prompt.length + bytes - line(prompt).length, " lorem ipsum"));
}

/** The number of the line whose body this is; null for a call that is no line of a batch. */
export function indexIn(body: string): number | null {
  const found = /#(\d+)#/.exec(body)?.[1];
  return found === undefined ? null : Number(found);
}
