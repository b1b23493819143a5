/** The prompts of every variant. The bare Worker and the load on the upstream use the same, so all send the same bytes. */

/** The model that the bench's upstream serves. */
export const MODEL = "bench-small";

/** What gateways of others are asked for that take only models of their catalogue: as long, so that all send as many bytes. */
export const CATALOGUE_MODEL = "gpt-4o-mini";

/** The prompt of slot `index`; `bytes` pads it with ASCII to that length. */
export function promptOf(index: number, bytes = 0): string {
  return `Summarise part ${index} of the text in one sentence.`.padEnd(bytes, " lorem ipsum");
}

/** The chat completion request for `prompt`. */
export function completionBody(prompt: string, model = MODEL): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: prompt }] });
}
