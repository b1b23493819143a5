/** The prompts of every variant. The bare Worker and the load on the upstream use the same, so all send the same bytes. */

/** The model that the bench's upstream serves. */
export const MODEL = "bench-small";

/** The prompt of slot `index`; `bytes` pads it with ASCII to that length. */
export function promptOf(index: number, bytes = 0): string {
  return `Summarise part ${index} of the text in one sentence.`.padEnd(bytes, " lorem ipsum");
}

/** The chat completion request for `prompt`. */
export function completionBody(prompt: string): string {
  return JSON.stringify({ model: MODEL, messages: [{ role: "user", content: prompt }] });
}
