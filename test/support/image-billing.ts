/**
 * What providers bill for an image, written from their own descriptions, apart from the gateway's bounds: the mock's side of the
 * account.
 */
import type { Size } from "./images.ts";

export type Bills = {
  name: string;
  /** A model of the family. */
  model: string;
  /** Tokens of an image of this size; `detail` as the request names it. */
  tokens: (size: Size, detail?: string) => number;
  /** In the detail that costs most. */
  largest: number;
};

/** OpenAI's tiles: fit 2,048 × 2,048, bring the shorter side down to 768, count squares of 512. */
export function tiles([width, height]: Size, base: number, tile: number, detail = "auto", enlarges = false): number {
  if (detail === "low") return base;
  let [wide, high] = [width, height];
  const longest = Math.max(wide, high);
  if (longest > 2_048) [wide, high] = [Math.floor((wide * 2_048) / longest), Math.floor((high * 2_048) / longest)];
  const shortest = Math.min(wide, high);
  if (shortest > 768 || enlarges)
    [wide, high] = [Math.floor((wide * 768) / shortest), Math.floor((high * 768) / shortest)];
  return base + tile * Math.ceil(wide / 512) * Math.ceil(high / 512);
}

/** OpenAI's patches, with the shrink factor of its guide. */
function patches([width, height]: Size, budget: number, edge: number, times: number): number {
  const fit = Math.min(1, edge / Math.max(width, height));
  let [wide, high] = [Math.max(1, Math.floor(width * fit)), Math.max(1, Math.floor(height * fit))];
  if (Math.ceil(wide / 32) * Math.ceil(high / 32) > budget) {
    const shrink = Math.sqrt((32 ** 2 * budget) / (wide * high));
    const inCells = (side: number): number => Math.max(1, Math.floor((side * shrink) / 32)) / ((side * shrink) / 32);
    const adjusted = shrink * Math.min(inCells(wide), inCells(high));
    [wide, high] = [Math.max(1, Math.floor(wide * adjusted)), Math.max(1, Math.floor(high * adjusted))];
  }
  return Math.ceil(Math.min(budget, Math.ceil(wide / 32) * Math.ceil(high / 32)) * times);
}

/** Claude: the largest size of the same shape whose longer side and whose patches of 28 pixels are within both limits. */
function claude([width, height]: Size, tokensMax: number, edge: number): number {
  const longest = Math.max(width, height);
  const tokensAt = (long: number): number => {
    const scaled = (side: number): number => Math.max(1, Math.round((side * long) / longest));
    return Math.ceil(scaled(width) / 28) * Math.ceil(scaled(height) / 28);
  };
  let long = Math.min(longest, edge);
  while (long > 1 && tokensAt(long) > tokensMax) long -= 1;
  return tokensAt(long);
}

/** Gemini 2: one crop for a small image, else crops of two thirds of its shorter side. */
function crops([width, height]: Size): number {
  if (width <= 384 && height <= 384) return 258;
  const unit = Math.max(1, Math.floor(Math.min(width, height) / 1.5));
  return 258 * Math.min(64, Math.ceil(width / unit) * Math.ceil(height / unit));
}

/** Python's `round`. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Qwen's `smart_resize`, and the two tokens around an image. */
function qwen([width, height]: Size, side: number, tokensMin: number): number {
  const [least, most] = [tokensMin * side * side, 16_384 * side * side];
  const rounded = (length: number): number => Math.max(side, roundHalfEven(length / side) * side);
  let [wide, high] = [rounded(width), rounded(height)];
  if (wide * high > most) {
    const beta = Math.sqrt((width * height) / most);
    [wide, high] = [width, height].map((length) => Math.max(1, Math.floor(length / beta / side)) * side) as [
      number,
      number,
    ];
  } else if (wide * high < least) {
    const beta = Math.sqrt(least / (width * height));
    [wide, high] = [width, height].map((length) => Math.ceil((length * beta) / side) * side) as [number, number];
  }
  // An image of more than 200 to 1 is refused; what a server makes of it is within its maximum.
  return Math.min(16_384, (wide * high) / side ** 2) + 2;
}

/** Mistral's encoder: a token for each patch, and one behind each row. */
function mistral([width, height]: Size, side: number, edge: number): number {
  const ratio = Math.max(width, height) / edge;
  const fit = (length: number): number => Math.max(1, ratio > 1 ? roundHalfEven(length / ratio) : length);
  const cells = (length: number): number => Math.floor((fit(length) - 1) / side) + 1;
  return (cells(width) + 1) * cells(height);
}

/** The families of the issue, by a model of each. */
export const FAMILIES: readonly Bills[] = [
  {
    ...{ name: "OpenAI's tiles", model: "gpt-4o-2024-11-20", largest: 85 + 8 * 170 },
    tokens: (size, detail) => tiles(size, 85, 170, detail),
  },
  {
    ...{ name: "OpenAI's patches", model: "gpt-5-mini", largest: Math.ceil(4_096 * 1.62) },
    tokens: (size) => patches(size, 6_144, 2_048, 1.62),
  },
  {
    ...{ name: "Anthropic", model: "claude-opus-4-8", largest: 4_784 },
    tokens: (size) => claude(size, 4_784, 2_576),
  },
  { name: "Gemini", model: "gemini-2.5-flash", largest: 64 * 258, tokens: crops },
  { name: "Qwen-VL", model: "Qwen/Qwen2.5-VL-72B-Instruct", largest: 16_386, tokens: (size) => qwen(size, 28, 4) },
  {
    ...{ name: "Pixtral", model: "pixtral-12b-2409", largest: 65 * 64 },
    tokens: (size) => mistral(size, 16, 1_024),
  },
];

/** Further members of those families. */
export const RELATIVES: readonly Bills[] = [
  {
    ...{ name: "GPT-4o mini", model: "gpt-4o-mini", largest: 2_833 + 8 * 5_667 },
    tokens: (size, detail) => tiles(size, 2_833, 5_667, detail),
  },
  {
    ...{ name: "GPT-5.6", model: "openai/gpt-5.6-sol", largest: 36_000 },
    tokens: (size, detail) =>
      detail === "high"
        ? patches(size, 2_500, 65_535, 1.2)
        : detail === "low"
          ? patches(size, 256, 512, 1.2)
          : patches(size, 30_000, 65_535, 1.2),
  },
  {
    ...{ name: "GPT-5.4", model: "gpt-5.4-2026-03-05", largest: 12_000 },
    tokens: (size, detail) =>
      detail === "original"
        ? patches(size, 10_000, 6_000, 1.2)
        : detail === "low"
          ? patches(size, 256, 512, 1.2)
          : patches(size, 2_500, 2_048, 1.2),
  },
  {
    ...{ name: "Claude 4.5", model: "anthropic/claude-sonnet-4.5", largest: 1_568 },
    tokens: (size) => claude(size, 1_568, 1_568),
  },
  { name: "Gemini 3", model: "google/gemini-3-flash", largest: 1_120, tokens: () => 1_120 },
  { name: "Qwen3-VL", model: "qwen3-vl-8b-instruct", largest: 16_386, tokens: (size) => qwen(size, 32, 64) },
  {
    ...{ name: "Mistral Small", model: "mistral-small-2506", largest: 56 * 55 },
    tokens: (size) => mistral(size, 28, 1_540),
  },
];
