/**
 * Servers that differ in how they read a request and in what they bill, each after a kind that exists, and each with the
 * configuration that a sensible operator would give it.
 */
import type { TokenPrice } from "../../src/run/money/token-price.ts";
import type { Bills } from "../../test/support/image-billing.ts";
import type { KeyPolicy } from "./lenient-json.ts";
import { billsOf } from "./pictures.ts";
import type { Tokenizer } from "./tokenizers.ts";

/** The fate of a request. All but `answer` and `refuse` bill without an answer that reports it. */
export type Ending =
  | "answer"
  | "refuse"
  | "content-filter"
  | "violation"
  | "gave-up"
  | "reset"
  | "truncated"
  | "cut-stream"
  | "hang"
  | "no-usage"
  | "slow";

export type Personality = {
  name: string;
  kind: "openai" | "anthropic";
  keys: KeyPolicy;
  /** Spellings of the completion cap that it reads, in the order in which it prefers them. */
  caps: readonly string[];
  /** Takes the largest spelling instead of the preferred one. */
  largestCap?: true;
  /** Spellings that it refuses. */
  refusedCaps?: readonly string[];
  /** Hidden tokens of each prompt, and further ones where tools are sent. */
  template: number;
  toolsTemplate: number;
  tokenizer: Tokenizer;
  endings: readonly (readonly [Ending, number])[];
  /** Bills by the requested `service_tier`, and names it. */
  tiers?: true;
  /** Supports billable parameters of many providers, and unknown ones. */
  extras?: true;
  /** Writes each new prompt to its cache by itself, at the write price. */
  writesByItself?: true;
  /** Resolves what names something that it holds, wherever it stands, and bills thoughts beyond the cap. */
  resolves?: true;
  /** Counts images by their sizes, as the provider of that model does; absent = each as so many tokens. */
  sees?: Bills;
  /** Finds more in some images than their headers say, and nobody can know which. */
  isLiedTo?: true;
  /** Names the cost in `usage.cost`, a little below its list. */
  namesCost?: true;
  /** Prices of a tier, beside the list, in the operator's configuration, if the gateway takes any. */
  config: Record<string, unknown>;
  /** Settings that the gateway may not know yet: left out then. */
  settings?: Record<string, unknown>;
};

/** Nano-USD per token of the model `m`; `m-large` costs ten times as much. */
export const PRICE = { input: 1_000, cached: 100, write5m: 1_250, write1h: 2_000, output: 4_000 };
export const LARGE_FACTOR = 10;
const PICO_IN_NANO = 1_000;
/** The same as the gateway reckons with it. */
export const TOKEN_PRICE: TokenPrice = {
  inputPicoUsd: PRICE.input * PICO_IN_NANO,
  cachedInputPicoUsd: PRICE.cached * PICO_IN_NANO,
  cacheWritePicoUsd: PRICE.write5m * PICO_IN_NANO,
  cacheWrite1hPicoUsd: PRICE.write1h * PICO_IN_NANO,
  outputPicoUsd: PRICE.output * PICO_IN_NANO,
};

const usd = (factor: number) => ({ input: factor, cached_input: 0.1 * factor, output: 4 * factor });
const PRICES = { "m-large*": usd(LARGE_FACTOR), "m*": usd(1) };
const WRITE_PRICES = {
  "m-large*": { ...usd(LARGE_FACTOR), cache_write: 1.25 * LARGE_FACTOR },
  "m*": { ...usd(1), cache_write: 1.25 },
};

/** Tokens that one image or sound, and one file, counts at most: the mock stays below, the operator configures it. */
export const MEDIA_TOKENS = 2_000;
export const FILE_TOKENS = 20_000;

/** Time limit of an attempt, ms: longer than any slow answer, shorter than a hang. */
export const TIMEOUT_MS = 600;

const BOUNDS = { media_tokens_max: MEDIA_TOKENS, timeout_ms: TIMEOUT_MS, prices: PRICES };
const SETTINGS = { file_tokens_max: FILE_TOKENS };
/** The operator says nothing of images: the models' names do. */
const SEEING = { media_tokens_max: undefined, prices: { "*": usd(1) } };
const ANSWERS = [
  ["answer", 94],
  ["refuse", 4],
  ["slow", 2],
] as const satisfies Personality["endings"];
const BOTH = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

const openai = (name: string, fields: Partial<Personality>): Personality => ({
  name,
  kind: "openai",
  keys: "last",
  caps: BOTH,
  template: 7,
  toolsTemplate: 60,
  tokenizer: "words",
  endings: ANSWERS,
  ...fields,
  config: { ...BOUNDS, ...fields.config },
  settings: { ...SETTINGS, ...fields.settings },
});

const anthropic = (name: string, fields: Partial<Personality>): Personality => ({
  ...openai(name, { caps: ["max_tokens"], template: 12, toolsTemplate: 346, ...fields }),
  kind: "anthropic",
});

const seeing = (name: string, family: string, fields: Partial<Personality> = {}): Personality => {
  const sees = billsOf(family);
  const make = sees.model.includes("claude") && fields.kind !== "openai" ? anthropic : openai;
  return make(name, { sees, ...fields, config: SEEING });
};

/** The models that it serves. */
export function modelsOf({ sees }: Personality): string[] {
  return sees === undefined ? ["m", "m-large"] : [sees.model];
}

export const PERSONALITIES: readonly Personality[] = [
  openai("plain", {}),
  openai("folds", { keys: "fold", caps: ["max_tokens", "max_output_tokens"], template: 21 }),
  openai("first-wins", { keys: "first", template: 35, tokenizer: "prose" }),
  openai("deepseek", { caps: ["max_tokens", "max_output_tokens"], template: 35 }),
  openai("newer", {
    caps: ["max_completion_tokens", "max_output_tokens"],
    refusedCaps: ["max_tokens"],
    template: 70,
    config: { cap_field: "max_completion_tokens" },
  }),
  openai("reads-both", { largestCap: true, template: 21, tokenizer: "prose" }),
  openai("tools-350", { template: 70, toolsTemplate: 280 }),
  openai("hidden-600", { template: 600 }),
  openai("dense", { tokenizer: "bytes", template: 21 }),
  openai("sparse", { tokenizer: "quads", template: 0 }),
  openai("azure", {
    template: 12,
    endings: [
      ["answer", 70],
      ["content-filter", 30],
    ],
  }),
  openai("fees", {
    endings: [
      ["answer", 70],
      ["violation", 30],
    ],
    settings: { errors_cost: "reservation" },
  }),
  openai("proxied", {
    endings: [
      ["answer", 60],
      ["refuse", 10],
      ["gave-up", 30],
    ],
  }),
  openai("flaky", {
    template: 35,
    endings: [
      ["answer", 60],
      ["reset", 10],
      ["truncated", 10],
      ["cut-stream", 10],
      ["hang", 3],
      ["no-usage", 7],
    ],
  }),
  openai("tiers", { tiers: true }),
  openai("extras", { extras: true, template: 21 }),
  openai("writes", { writesByItself: true, config: { prices: WRITE_PRICES } }),
  openai("router", { namesCost: true, keys: "last", template: 35 }),
  openai("resolves", { resolves: true, template: 21 }),
  seeing("sees-tiles", "OpenAI's tiles"),
  seeing("sees-patches", "OpenAI's patches"),
  seeing("sees-originals", "GPT-5.6"),
  seeing("sees-crops", "Gemini"),
  seeing("sees-cells", "Qwen-VL", { template: 21 }),
  seeing("sees-rows", "Pixtral"),
  seeing("lied-to", "GPT-5.6", { isLiedTo: true }),
  seeing("claude-sees", "Anthropic"),
  seeing("claude-lied-to", "Claude 4.5", { isLiedTo: true }),
  anthropic("claude-resolves", { resolves: true }),
  anthropic("claude", { toolsTemplate: 350 }),
  anthropic("claude-tools", { toolsTemplate: 690, tokenizer: "prose" }),
  anthropic("claude-folds", { keys: "fold", tokenizer: "bytes" }),
  anthropic("claude-tiers", { tiers: true }),
  anthropic("claude-flaky", {
    endings: [
      ["answer", 70],
      ["gave-up", 10],
      ["reset", 5],
      ["truncated", 5],
      ["cut-stream", 10],
    ],
  }),
];

/** `UPSTREAMS` of a gateway in front of them. `knows`: the settings that it accepts. */
export function upstreamsOf(
  personalities: readonly Personality[],
  origin: string,
  knows: ReadonlySet<string>,
): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    personalities.map((personality) => {
      const { name, kind, config, settings, sees } = personality;
      const known = Object.entries(settings ?? {}).filter(([setting]) => knows.has(setting));
      // Where files have no bound of their own, the one of media must hold for them.
      const files = knows.has("file_tokens_max") ? {} : { media_tokens_max: FILE_TOKENS };
      const models = sees === undefined ? ["m", "m-*"] : modelsOf(personality);
      const base = `${origin}/${name}${kind === "openai" ? "/v1" : ""}`;
      return [name, { kind, base_url: base, models, ...config, ...files, ...Object.fromEntries(known) }];
    }),
  );
}

export const SETTING_NAMES: readonly string[] = [
  ...new Set(PERSONALITIES.flatMap(({ settings }) => Object.keys(settings ?? {}))),
];
