/** What a worker delivers, as the answer of an upstream of OpenAI's protocol: the executor of the attempt reads it as one. */
import type { PullAnswer } from "./board.ts";
import type { ClaimedUsage } from "./claimed-cost.ts";

/** A completed item: its message in the chat form and its usage, or an error. USD as a decimal number. */
export type Completed =
  | { message: Record<string, unknown>; finishReason: string; usage: ClaimedUsage | null }
  | { error: { message: string; retryable: boolean } };

export function answerFor(completed: Completed): PullAnswer {
  if ("error" in completed) {
    const { message, retryable } = completed.error;
    const type = retryable ? "server_error" : "invalid_request_error";
    const error = { message, type, param: null, code: retryable ? "worker_failed" : "worker_refused" };
    return { status: retryable ? 503 : 422, body: JSON.stringify({ error }) };
  }
  const { message, finishReason, usage } = completed;
  const choice = { index: 0, message, finish_reason: finishReason };
  return {
    status: 200,
    body: JSON.stringify({ object: "chat.completion", choices: [choice], ...usageOf(usage) }),
  };
}

function usageOf(usage: ClaimedUsage | null): object {
  if (usage === null) return {};
  const { promptTokens, completionTokens, costUsd } = usage;
  const tokens = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  return { usage: costUsd === undefined ? tokens : { ...tokens, cost: costUsd } };
}
