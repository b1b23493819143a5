/**
 * The learned completion cap of a model, for calls that name none: answers so far have shown that it suffices. An
 * answer that ends at it is paid for and requested again, so the cap is as low as answers allow without wasting more
 * than a small share of the budget.
 */
import {
  COMPLETION_TOKENS_DEFAULT,
  LEARNED_ANSWERS_FIRST,
  LEARNED_ANSWERS_MIN,
  LEARNED_CAP_MARGIN,
  LEARNED_CAP_MARGIN_FIRST,
  LEARNED_CAP_MARGIN_SHORT,
  LEARNED_CAP_TOKENS_FIRST_MIN,
  LEARNED_CAP_TOKENS_MIN,
  LEARNED_CAP_TOKENS_SHORT,
  LEARNED_CLASS_TOKENS,
  LEARNED_PROMPT_TOKENS_PER_CAP,
  LEARNED_WASTE_SHARE,
} from "../../limits.ts";

/** The lengths of a model's whole answers, in classes of equal width; the last also counts all longer ones. */
export type CompletionLengths = {
  answers: number;
  /** Sum of the completion tokens of all answers. */
  tokens: number;
  counts: Uint32Array;
  /** The class of the longest answer, from 1 on; 0 = there is none. */
  longest: number;
};

const CLASSES = Math.ceil(COMPLETION_TOKENS_DEFAULT / LEARNED_CLASS_TOKENS);

/** The lengths of no answers yet. */
export function noLengths(): CompletionLengths {
  return { answers: 0, tokens: 0, counts: new Uint32Array(CLASSES), longest: 0 };
}

/** Counts a whole answer, in place. Do not count an answer that its cap cut: its true length is unknown. */
export function countAnswer(lengths: CompletionLengths, completionTokens: number): void {
  const tokens = Math.min(Math.max(completionTokens, 0), COMPLETION_TOKENS_DEFAULT);
  const at = Math.max(0, Math.ceil(tokens / LEARNED_CLASS_TOKENS) - 1);
  lengths.counts[at] = (lengths.counts[at] ?? 0) + 1;
  lengths.longest = Math.max(lengths.longest, at + 1);
  lengths.answers += 1;
  lengths.tokens += tokens;
}

/**
 * The cap, in tokens; null = the default holds, because too few answers were counted or they are about that long.
 *
 * It is the lowest cap, plus a margin, at which the answers that it would have cut cost at most `LEARNED_WASTE_SHARE`
 * of all tokens seen. Those answers are also at most that share of all answers. Their prompts are paid twice as well,
 * so they waste no larger share of the prompts: whatever the prices are, the waste is at most that share of the
 * spending. Of the first few answers the longest decides, with a margin of its own.
 */
export function capFor({ answers, tokens, counts, longest }: CompletionLengths): number | null {
  if (answers < LEARNED_ANSWERS_FIRST) return null;
  if (answers < LEARNED_ANSWERS_MIN) {
    return below(Math.max(LEARNED_CAP_TOKENS_FIRST_MIN, longest * LEARNED_CLASS_TOKENS * LEARNED_CAP_MARGIN_FIRST));
  }
  // Every cap above the longest answer suffices.
  let suffices = Math.max(1, longest);
  let longer = 0;
  for (; suffices > 1; suffices--) {
    longer += counts[suffices - 1] ?? 0;
    const wasted = longer * (suffices - 1) * LEARNED_CLASS_TOKENS;
    if (wasted > tokens * LEARNED_WASTE_SHARE || longer > answers * LEARNED_WASTE_SHARE) break;
  }
  const tokensOf = suffices * LEARNED_CLASS_TOKENS;
  const short = Math.min(LEARNED_CAP_TOKENS_SHORT, tokensOf * LEARNED_CAP_MARGIN_SHORT);
  return below(Math.max(LEARNED_CAP_TOKENS_MIN, short, Math.ceil(tokensOf * LEARNED_CAP_MARGIN)));
}

/** The learned cap of a call with a prompt of so many tokens: a long prompt is not to be paid twice for a lower cap. */
export function capForPrompt(capTokens: number, promptTokens: number): number {
  const floor = Math.ceil(promptTokens / LEARNED_PROMPT_TOKENS_PER_CAP);
  return Math.max(capTokens, Math.min(LEARNED_CAP_TOKENS_SHORT, floor));
}

function below(capTokens: number): number | null {
  return capTokens >= COMPLETION_TOKENS_DEFAULT ? null : capTokens;
}
