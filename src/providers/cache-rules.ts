/**
 * How providers cache the beginning of a prompt, as data: what marks it, how long it must be and how long it is kept. Prices
 * are in the price catalogue. An entry is there for other calls once the answer to the call that writes it has begun.
 *
 * Sources: platform.claude.com/docs/en/build-with-claude/prompt-caching, developers.openai.com/api/docs/guides/prompt-caching
 * (November 2026).
 */
import type { CacheMark } from "../call.ts";
import type { TargetCache } from "../run/leases/shard.ts";

/** The setting `prompt_cache` of an upstream. `auto`: as its kind, its host and the model say. */
export const PROMPT_CACHES = ["auto", "mark", "breakpoint", "key", "implicit", "none"] as const;
export type PromptCache = (typeof PROMPT_CACHES)[number];

type Rule = {
  /** What the request has for it; null = nothing. */
  mark: CacheMark["by"] | null;
  /** Fewest tokens of what is cached. */
  minTokens: number;
  /** How long an entry is kept after its last use, ms. */
  keptMs: number;
};

const MINUTES_5 = 300_000;

/**
 * `mark`: Anthropic's `cache_control`, kept for 5 minutes from its last use. `breakpoint`: OpenAI's from GPT-5.6 on, which write
 * at 1.25 times the price, and at the newest message unless a breakpoint says where; kept for 30 minutes. `key`: OpenAI's before,
 * free of charge; the key brings calls to the same machine; kept for 5 to 10 minutes. `implicit`: providers that need nothing,
 * such as DeepSeek, Gemini, vLLM; how long they keep entries is not documented, so the shortest time of the others counts.
 */
const RULES: Readonly<Record<Exclude<PromptCache, "auto" | "none">, Rule>> = {
  mark: { mark: "cache_control", minTokens: 1_024, keptMs: MINUTES_5 },
  breakpoint: { mark: "breakpoint", minTokens: 1_024, keptMs: 30 * 60_000 },
  key: { mark: "key", minTokens: 1_024, keptMs: MINUTES_5 },
  implicit: { mark: null, minTokens: 1_024, keptMs: MINUTES_5 },
};

/** Anthropic's models that cache no less than so many tokens, by a part of their name. The others cache 1,024. */
const MIN_TOKENS: readonly (readonly [name: string, minTokens: number])[] = [
  ["haiku-4", 4_096],
  ["opus-4-5", 4_096],
  ["opus-4-6", 4_096],
  ["opus-4-7", 4_096],
  ["sonnet-4-6", 2_048],
  ["haiku-3", 2_048],
  ["3-5-haiku", 2_048],
  ["3-haiku", 2_048],
];

/** How the prompts of a model are cached by a rule; null = they are not, or nothing is gained by it. */
export function targetCache(how: Exclude<PromptCache, "auto">, model: string): TargetCache | null {
  if (how === "none") return null;
  const { mark, minTokens, keptMs } = RULES[how];
  const larger = how === "mark" ? MIN_TOKENS.find(([name]) => model.includes(name))?.[1] : undefined;
  return { mark, minTokens: larger ?? minTokens, keptMs };
}
