/** Calls of agents: how long their prompts and answers are, and what they truly cost, known before they are made. */
import { Random } from "../adversary/random.ts";
import { countTokens } from "../adversary/tokenizers.ts";
import { textIn } from "../adversary/texts.ts";

export type TrueCall = {
  prompt: string;
  promptTokens: number;
  completionTokens: number;
  latencyMs: number;
  costNanoUsd: number;
};

/**
 * Completion tokens of 226 leaf calls of fast-rlm (its public sample logs, MIT), every twentieth; the two calls of 15,000
 * tokens are left out, for no default cap would let them through.
 */
const LEAF_TOKENS = [
  31, 110, 145, 160, 185, 202, 226, 255, 268, 286, 312, 329, 355, 388, 426, 482, 574, 656, 976, 1_386, 2_426,
];
/** Answers of a word or a line, as maps over chunks get them: the same spread, a sixth as long. */
const SHORTER = 6;

export type Shape = "agents" | "labels";

/** Nano-USD per token. */
export const PRICE = { input: 150, output: 600 };
/** Tokens that the upstream adds to each prompt. */
const TEMPLATE_TOKENS = 21;
/** Characters of a prompt. */
const PROMPT_CHARS = { agents: [1_000, 6_000], labels: [300, 1_500] } as const;

export function drawCalls(seed: number, count: number, shape: Shape): TrueCall[] {
  return Array.from({ length: count }, (_, index) => drawCall(new Random(seed, index), index, shape));
}

function drawCall(random: Random, index: number, shape: Shape): TrueCall {
  const [min, max] = PROMPT_CHARS[shape];
  const prompt = `#${index}# ${textIn("prose", random.integer(min, max), random)}`;
  const leaf = quantile(LEAF_TOKENS, random.fraction());
  const completionTokens = Math.max(1, Math.round(shape === "agents" ? leaf : leaf / SHORTER));
  const promptTokens = countTokens("words", prompt) + TEMPLATE_TOKENS;
  const costNanoUsd = promptTokens * PRICE.input + completionTokens * PRICE.output;
  return { prompt, promptTokens, completionTokens, latencyMs: random.integer(50, 300), costNanoUsd };
}

function quantile(table: readonly number[], share: number): number {
  const at = share * (table.length - 1);
  const low = table[Math.floor(at)] ?? 0;
  const high = table[Math.ceil(at)] ?? low;
  return low + (high - low) * (at - Math.floor(at));
}

/**
 * Wall time of the calls, ms, at `width` on `limitNanoUsd` by somebody who knows what each will cost: the next one starts
 * as soon as a place is free and what is spent and in flight leaves room for it.
 */
export function idealWallMs(calls: readonly TrueCall[], width: number, limitNanoUsd: number): number {
  const inFlight: { endsMs: number; cost: number }[] = [];
  let nowMs = 0;
  let committed = 0;
  for (const call of calls) {
    while (inFlight.length >= width || committed + call.costNanoUsd > limitNanoUsd) {
      const first = inFlight.sort((a, b) => a.endsMs - b.endsMs).shift();
      // Truth is spent for good: where nothing is in flight, nothing comes back.
      if (first === undefined) return nowMs;
      nowMs = Math.max(nowMs, first.endsMs);
    }
    committed += call.costNanoUsd;
    inFlight.push({ endsMs: nowMs + call.latencyMs, cost: call.costNanoUsd });
  }
  return Math.max(nowMs, ...inFlight.map(({ endsMs }) => endsMs));
}
