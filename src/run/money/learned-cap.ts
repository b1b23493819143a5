/**
 * The learned completion cap of a model, for calls that name none: answers so far have shown that it suffices. An
 * answer that ends at it is paid for and requested again, so the cap is as low as answers allow without wasting more
 * than a small share of the budget.
 */
import {
  COMPLETION_TOKENS_DEFAULT,
  LEARNED_ANSWERS_MIN,
  LEARNED_CAP_MARGIN,
  LEARNED_CAP_TOKENS_MIN,
  LEARNED_CLASS_TOKENS,
  LEARNED_WASTE_SHARE,
} from "../../limits.ts";

/** The lengths of a model's whole answers, in classes of equal width; the last also counts all longer ones. */
export type CompletionLengths = {
  answers: number;
  /** Sum of the completion tokens of all answers. */
  tokens: number;
  counts: Uint32Array;
};

const CLASSES = Math.ceil(COMPLETION_TOKENS_DEFAULT / LEARNED_CLASS_TOKENS);

/** The lengths of no answers yet. */
export function noLengths(): CompletionLengths {
  return { answers: 0, tokens: 0, counts: new Uint32Array(CLASSES) };
}

/** Counts a whole answer, in place. Do not count an answer that its cap cut: its true length is unknown. */
export function countAnswer(lengths: CompletionLengths, completionTokens: number): void {
  const tokens = Math.min(Math.max(completionTokens, 0), COMPLETION_TOKENS_DEFAULT);
  const at = Math.max(0, Math.ceil(tokens / LEARNED_CLASS_TOKENS) - 1);
  lengths.counts[at] = (lengths.counts[at] ?? 0) + 1;
  lengths.answers += 1;
  lengths.tokens += tokens;
}

/**
 * The cap, in tokens; null = the default holds, because too few answers were counted or they are about that long.
 *
 * It is the lowest cap, plus a margin, at which the answers that it would have cut cost at most `LEARNED_WASTE_SHARE`
 * of all tokens seen. Those answers are also at most that share of all answers. Their prompts are paid twice as well,
 * so they waste no larger share of the prompts: whatever the prices are, the waste is at most that share of the
 * spending.
 */
export function capFor({ answers, tokens, counts }: CompletionLengths): number | null {
  if (answers < LEARNED_ANSWERS_MIN) return null;
  let suffices = CLASSES;
  let longer = 0;
  for (; suffices > 1; suffices--) {
    longer += counts[suffices - 1] ?? 0;
    const wasted = longer * (suffices - 1) * LEARNED_CLASS_TOKENS;
    if (wasted > tokens * LEARNED_WASTE_SHARE || longer > answers * LEARNED_WASTE_SHARE) break;
  }
  const capTokens = Math.ceil(suffices * LEARNED_CLASS_TOKENS * LEARNED_CAP_MARGIN);
  return capTokens >= COMPLETION_TOKENS_DEFAULT ? null : Math.max(LEARNED_CAP_TOKENS_MIN, capTokens);
}
