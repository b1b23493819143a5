/** The usage of a batch, under the names of the Responses API for every endpoint, as OpenAI reports it. */
import type { Usage } from "../call.ts";

export type BatchUsage = {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
};

/** Tokens of one line. */
export type LineUsage = Pick<Usage, "promptTokens" | "completionTokens" | "cachedTokens" | "reasoningTokens">;

/** The sum with one more line; null = no line yet. */
export function addUsage(sum: BatchUsage | null, line: LineUsage): BatchUsage {
  const input = (sum?.input_tokens ?? 0) + line.promptTokens;
  const output = (sum?.output_tokens ?? 0) + line.completionTokens;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: (sum?.input_tokens_details.cached_tokens ?? 0) + line.cachedTokens },
    output_tokens: output,
    output_tokens_details: {
      reasoning_tokens: (sum?.output_tokens_details.reasoning_tokens ?? 0) + line.reasoningTokens,
    },
    total_tokens: input + output,
  };
}
