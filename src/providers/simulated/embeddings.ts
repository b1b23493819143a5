/** Embeddings, as the simulated upstream makes them: unlike texts get unrelated directions, like texts the same one. */
import { promptHash, spread } from "./hash.ts";
import { textsIn, TEXTS_EXPECTED } from "./prompt.ts";
import { type Job, openaiError, type Protocol, type Read } from "./protocol.ts";

export const embeddings: Protocol = { read, document, frames: null, error: openaiError };

const DIMENSIONS_DEFAULT = 64;
const DIMENSIONS_MAX = 1_024;

/** An odd number near 2³² ÷ the golden ratio: its multiples are spread evenly before they are hashed. */
const STRIDE = 0x9e3779b1;

function read({ input, dimensions }: Job["request"]): Read {
  const given = textsIn(input);
  if (given === null) return { ok: false, message: `input must be ${TEXTS_EXPECTED}` };
  if (dimensionsIn(dimensions) === null) {
    return { ok: false, message: `dimensions must be a whole number from 1 to ${DIMENSIONS_MAX}` };
  }
  const [prompts, promptTokens] = [given.texts, given.tokens];
  return { ok: true, input: { prompts, promptTokens, capTokens: 0, choices: 0, structured: null } };
}

function document({ request, input, model }: Job): unknown {
  const dimensions = dimensionsIn(request["dimensions"]) ?? DIMENSIONS_DEFAULT;
  const isBase64 = request["encoding_format"] === "base64";
  const data = input.prompts.map((text, index) => {
    const vector = unitVector(text, dimensions);
    return { object: "embedding", index, embedding: isBase64 ? base64Of(vector) : vector };
  });
  const { promptTokens } = input;
  return { object: "list", data, model, usage: { prompt_tokens: promptTokens, total_tokens: promptTokens } };
}

function dimensionsIn(value: unknown): number | null {
  if (value === undefined || value === null) return DIMENSIONS_DEFAULT;
  const isPossible = typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= DIMENSIONS_MAX;
  return isPossible ? value : null;
}

/** Rounded to seven digits after the point, about what a 32-bit float holds. */
function unitVector(text: string, dimensions: number): number[] {
  const seed = promptHash(text);
  const raw = Array.from({ length: dimensions }, (_, index) => {
    return (spread((seed + Math.imul(index + 1, STRIDE)) | 0) + 0.5) / 2 ** 31 - 1;
  });
  const length = Math.hypot(...raw);
  return raw.map((value) => Math.round((value / length) * 1e7) / 1e7);
}

/** The vector as 32-bit floats, little-endian, which is what clients of OpenAI's API decode. */
function base64Of(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [index, value] of vector.entries()) bytes.setFloat32(index * 4, value, true);
  return btoa(String.fromCharCode(...new Uint8Array(bytes.buffer)));
}
