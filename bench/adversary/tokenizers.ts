/**
 * Tokenizers of the upstream, each as bad as real ones are on some text. None makes more than one token of a byte.
 * `bytes` has no vocabulary at all; `words` knows English words, pairs of letters, and nothing else; `prose` is generous to
 * lower-case letters and dense for all others; `quads` takes four bytes at a time whatever they are.
 */
export type Tokenizer = "bytes" | "words" | "prose" | "quads";

/** The words that the grammar writes its prose with. */
export const WORDS: readonly string[] = (
  "the of and to in that it was his with as for had you not be on at by which have or from this him but all she they " +
  "were my are me one their so an said them we who would been will no when there if more out up into do any your what " +
  "has man could other than our some very time upon about may its only now like little then can made should did us such " +
  "great before must two these see know over much down after first good men never without where light colour glass water " +
  "between through experiment distance surface paper bodies refraction reflection observation question answer summary"
).split(" ");

const KNOWN = new Set(WORDS);
const PIECES = /[A-Za-z]+|[0-9]|\s+|[^A-Za-z0-9\s]/gu;

export function countTokens(tokenizer: Tokenizer, text: string): number {
  if (tokenizer === "bytes") return Buffer.byteLength(text);
  if (tokenizer === "quads") return Math.ceil(Buffer.byteLength(text) / 4);
  let tokens = 0;
  for (const [piece] of text.matchAll(PIECES)) tokens += tokenizer === "words" ? wordTokens(piece) : proseTokens(piece);
  return tokens;
}

function wordTokens(piece: string): number {
  if (/^[A-Za-z]/.test(piece)) return KNOWN.has(piece.toLowerCase()) ? 1 : Math.ceil(piece.length / 2);
  if (/^\s/.test(piece)) return piece === " " ? 0 : Buffer.byteLength(piece);
  return Buffer.byteLength(piece);
}

function proseTokens(piece: string): number {
  if (/^[a-z]+$/.test(piece)) return Math.ceil(piece.length / 5);
  return piece === " " ? 0 : Buffer.byteLength(piece);
}
