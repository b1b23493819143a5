/** How the simulated upstream counts, and how it cuts an answer to its cap. */

/** A token is four bytes of UTF-8, begun ones counted. */
export const BYTES_PER_TOKEN = 4;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** `isCut`: there was more to say than the cap allowed. */
export type Completion = { text: string; tokens: number; isCut: boolean };

/** Tokens of texts that make up one prompt. */
export function tokensOf(texts: readonly string[]): number {
  return Math.ceil(texts.reduce((bytes, text) => bytes + encoder.encode(text).byteLength, 0) / BYTES_PER_TOKEN);
}

/** Cut to the cap at the last whole character that fits. */
export function capped(text: string, tokensMax: number): Completion {
  const bytes = encoder.encode(text);
  const tokens = Math.ceil(bytes.byteLength / BYTES_PER_TOKEN);
  if (tokens <= tokensMax) return { text, tokens, isCut: false };
  let end = Math.max(0, Math.floor(tokensMax * BYTES_PER_TOKEN));
  // Bytes 10xxxxxx continue a character; cutting before one would split it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const cut = decoder.decode(bytes.subarray(0, end));
  return { text: cut, tokens: Math.ceil(end / BYTES_PER_TOKEN), isCut: true };
}
