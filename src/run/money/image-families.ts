/**
 * How providers count images in prompts: a table of data, by families of models. Each row has its source, and the day on which
 * the source said so. Every provider shrinks large images, so every family has a largest image.
 */

/** Patches of a side of so many pixels, within an image that fits both: `patches` in all, `edge` pixels at its longer side. */
export type PatchBox = { patches: number; edge: number };

export type ImageRule =
  /** OpenAI's former rule: tiles of 512 pixels of an image whose shorter side has 768, and whose longer at most 2,048. */
  | { by: "tiles"; base: number; tile: number }
  /**
   * A token for each patch, times a factor. `low`: patches of an image whose detail is low, absent = as `high`. `usual`: the box
   * without a detail, absent = `high`. `pixelsPerToken`: counts by area too, as the provider did before.
   */
  | {
      by: "patches";
      side: number;
      times: number;
      low?: number;
      high: PatchBox;
      original?: PatchBox;
      usual?: "original";
      pixelsPerToken?: number;
    }
  /** As much for each image, whatever its size; `most`: with a detail that asks for more. */
  | { by: "flat"; tokens: number; most: number }
  /** Crops of two thirds of the shorter side, and at least as many of `largest` pixels; one crop up to `small` pixels. */
  | { by: "crops"; crop: number; small: number; largest: number; cropsMax: number }
  /** Cells of a side of so many pixels; images with fewer or more of them than these bounds are resized. */
  | { by: "grid"; side: number; tokensMin: number; tokensMax: number }
  /** Cells in rows, with a token behind each row, of an image that fits a square. */
  | { by: "rows"; side: number; edge: number };

export type ImageFamily = {
  name: string;
  source: string;
  /** The day on which the source had this rule. */
  date: string;
  /** Patterns of the last part of a model's id in lower case: `*` at either end matches anything. The first match counts. */
  match: readonly string[];
  rule: ImageRule;
  /** Tokens that mark an image's beginning and end. */
  framing: number;
};

const OPENAI = "https://developers.openai.com/api/docs/guides/images-vision";
const ANTHROPIC = "https://platform.claude.com/docs/en/build-with-claude/vision";
const GEMINI_3 = "https://ai.google.dev/gemini-api/docs/media-resolution";
const GEMINI_2 = "https://ai.google.dev/gemini-api/docs/image-understanding";
const QWEN = "https://github.com/QwenLM/Qwen3-VL (qwen-vl-utils, vision_process.py)";
const MISTRAL = "https://github.com/mistralai/mistral-common (tokens/tokenizers/image.py)";

/** The day of the newest row. */
export const IMAGE_FAMILIES_DATE = "2026-09-27";

const openaiTiles = (base: number, tile: number, match: string): ImageFamily => ({
  ...{ name: "openai-tiles", source: OPENAI, date: "2026-09-27", match: match.split(" ") },
  rule: { by: "tiles", base, tile },
  framing: 8,
});

/** The models that take at most 2,048 pixels at a side. For them a low detail is not known to cost less. */
const openaiPatches = (times: number, match: string): ImageFamily => ({
  ...{ name: "openai-patches", source: OPENAI, date: "2026-09-27", match: match.split(" ") },
  rule: { by: "patches", side: 32, times, high: { patches: 6_144, edge: 2_048 } },
  framing: 8,
});

const LOW = 256;

const openaiOriginal = (rule: Pick<Extract<ImageRule, { by: "patches" }>, "high" | "original" | "usual">) => ({
  ...{ name: "openai-original", source: OPENAI, date: "2026-09-24", framing: 8 },
  rule: { by: "patches", side: 32, times: 1.2, low: LOW, ...rule } as const,
});

const claude = (high: PatchBox, match: string): ImageFamily => ({
  ...{ name: "anthropic", source: ANTHROPIC, date: "2026-09-27", match: match.split(" ") },
  rule: { by: "patches", side: 28, times: 1, high, pixelsPerToken: 750 },
  framing: 8,
});

const qwen = (side: number, tokensMin: number, match: string): ImageFamily => ({
  ...{ name: "qwen-vl", source: QWEN, date: "2026-09-01", match: match.split(" ") },
  rule: { by: "grid", side, tokensMin, tokensMax: 16_384 },
  framing: 2,
});

const mistral = (side: number, edge: number, match: string): ImageFamily => ({
  ...{ name: "mistral", source: MISTRAL, date: "2026-09-01", match: match.split(" ") },
  rule: { by: "rows", side, edge },
  framing: 0,
});

export const IMAGE_FAMILIES: readonly ImageFamily[] = [
  {
    ...openaiOriginal({
      high: { patches: 2_500, edge: 65_535 },
      // More patches are rejected.
      original: { patches: 30_000, edge: 65_535 },
      usual: "original",
    }),
    match: ["gpt-5.6*", "gpt-6*"],
  },
  {
    ...openaiOriginal({
      high: { patches: 2_500, edge: 2_048 },
      original: { patches: 10_000, edge: 6_000 },
      usual: "original",
    }),
    match: ["gpt-5.5*"],
  },
  openaiPatches(1.62, "gpt-5.4-mini* gpt-5-mini* gpt-4.1-mini* gpt-5-codex-mini* gpt-5.1-codex-mini*"),
  openaiPatches(2.46, "gpt-5.4-nano* gpt-5-nano* gpt-4.1-nano*"),
  openaiPatches(1.72, "o4-mini*"),
  openaiPatches(1.2, "gpt-5.2* gpt-5.3*"),
  {
    ...openaiOriginal({ high: { patches: 2_500, edge: 2_048 }, original: { patches: 10_000, edge: 6_000 } }),
    match: ["gpt-5.4*"],
  },
  openaiTiles(2_833, 5_667, "gpt-4o-mini*"),
  openaiTiles(85, 170, "gpt-4o* chatgpt-4o* gpt-4.1 gpt-4.1-2025* gpt-4.5* gpt-4-turbo* gpt-4-vision*"),
  openaiTiles(75, 150, "o1* o3*"),
  openaiTiles(70, 140, "gpt-5 gpt-5-2025* gpt-5-chat* gpt-5.1 gpt-5.1-2025* gpt-5.1-chat*"),
  openaiTiles(65, 129, "computer-use-preview*"),
  claude(
    { patches: 1_600, edge: 1_568 },
    "*claude-3* *claude-opus-4 *claude-opus-4-0* *claude-opus-4-1* *claude-opus-4.1* *claude-opus-4-2025* " +
      "*claude-opus-4-5* *claude-opus-4.5* *claude-opus-4-6* *claude-opus-4.6* *claude-sonnet-4 *claude-sonnet-4-0* " +
      "*claude-sonnet-4-2025* *claude-sonnet-4-5* *claude-sonnet-4.5* *claude-sonnet-4-6* *claude-sonnet-4.6* " +
      "*claude-haiku-4-5* *claude-haiku-4.5*",
  ),
  // Claude 4.7 and all later ones.
  claude({ patches: 4_784, edge: 2_576 }, "*claude*"),
  {
    ...{ name: "gemini-3", source: GEMINI_3, date: "2026-09-27", match: ["gemini-3*"] },
    rule: { by: "flat", tokens: 1_120, most: 2_240 },
    framing: 16,
  },
  {
    ...{ name: "gemini-2", source: GEMINI_2, date: "2026-09-01" },
    match: ["gemini-1.5*", "gemini-2*", "gemini-flash-1.5*", "gemini-pro-1.5*"],
    rule: { by: "crops", crop: 258, small: 384, largest: 768, cropsMax: 64 },
    framing: 2,
  },
  qwen(32, 64, "qwen3-vl* qwen3.5* qwen3.6*"),
  qwen(28, 4, "qwen2-vl* qwen2.5-vl* qwen-vl* qvq*"),
  mistral(16, 1_024, "pixtral*"),
  mistral(
    28,
    1_540,
    "mistral-small-2503* mistral-small-2506* mistral-small-3.1* mistral-small-3.2* mistral-medium-2505* " +
      "mistral-medium-2508* mistral-medium-3*",
  ),
];
