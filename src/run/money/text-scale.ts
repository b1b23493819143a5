/**
 * Whether the look at a text (src/text/tokens/text-bound.ts) is valid for an upstream's model. Its tables are valid for the
 * tokenizers that they were derived from, and only an upstream's bills show which tokenizer it has. So the bill of
 * every answer is compared with the look, and until there is one, a byte counts as a token.
 */
import type { CallFacts } from "../../call.ts";
import { TEXT_RATIO_MIN, TEXT_SAMPLE_DENSITY_MAX, TEXT_SAMPLE_TOKENS_MIN, TEXT_SCALE_MARGIN } from "../../limits.ts";
import type { TokenBounds } from "./estimate.ts";

/**
 * Tokens of a call by the look at its text, if its answer can judge the look; null = the prompt is too short, not only
 * text, or dense. In dense text the look counts nearly every byte, so its bill shows nothing about words: it would
 * confirm the look for a tokenizer that makes one token of each byte.
 */
export function textSampleOf({
  promptBytes,
  textTokensMax,
  mediaParts,
  fileParts,
  promptTokenIds,
  unbounded,
}: CallFacts): number | null {
  if (textTokensMax === undefined || textTokensMax < TEXT_SAMPLE_TOKENS_MIN) return null;
  if (textTokensMax > promptBytes * TEXT_SAMPLE_DENSITY_MAX) return null;
  // What no reservation covers may be billed beside the text, and shows nothing of it.
  const isTextOnly = mediaParts === 0 && [fileParts, promptTokenIds, unbounded].every((fact) => fact === undefined);
  return isTextOnly ? textTokensMax : null;
}

/**
 * Tokens billed per token of the look; null = so few that the upstream does not count tokens. The upstream's own
 * addition to the prompt is not subtracted, so the ratio is never too low.
 */
export function textRatioOf(promptTokens: number, textSample: number): number | null {
  return promptTokens < textSample * TEXT_RATIO_MIN ? null : promptTokens / textSample;
}

/**
 * True if the look at texts is believed of a model: answers were seen, and the bills of all of them were below it by
 * the margin. One that was not shows a tokenizer unlike those that the tables were made from: then only bytes are a
 * bound.
 *
 * @param ratio Largest ratio seen; undefined = none.
 */
export function isLookBelieved(ratio: number | undefined): boolean {
  return ratio !== undefined && ratio * TEXT_SCALE_MARGIN <= 1;
}

/** The bounds of an upstream's tokens, tightened by the look at texts if it is believed. */
export function withLook(bounds: TokenBounds, ratio: number | undefined): TokenBounds {
  return isLookBelieved(ratio) ? { ...bounds, believesLook: true } : bounds;
}
