/** Anthropic's messages, as the simulated upstream reads and writes them. */
import { contentText, lastUserText, messageTexts } from "./prompt.ts";
import { anthropicError, capIn, type Job, type Protocol, type Read } from "./protocol.ts";
import { type Frame, typedFrame } from "./stream.ts";
import { tokensOf } from "./text.ts";

export const messages: Protocol = { read, document, frames, error: anthropicError };

/** Output tokens that the first event of a stream reports, as in Anthropic's API: the count at the start, not a total. */
const OUTPUT_TOKENS_AT_START = 1;

function read({ messages, system, max_tokens: cap }: Job["request"]): Read {
  if (!Array.isArray(messages)) return { ok: false, message: "messages: Field required" };
  const promptTokens = tokensOf([contentText(system), ...messageTexts(messages)]);
  return { ok: true, input: { prompts: [lastUserText(messages)], promptTokens, capTokens: capIn(cap), choices: 1 } };
}

function document(job: Job): unknown {
  const content = [{ type: "text", text: textOf(job), citations: null }];
  return { ...messageOf(job, content, job.completionTokens), stop_reason: stopReason(job) };
}

function* frames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  yield typedFrame("opening", "message_start", { message: messageOf(job, [], OUTPUT_TOKENS_AT_START) });
  const block = { type: "text", text: "", citations: null };
  yield typedFrame("opening", "content_block_start", { index: 0, content_block: block });
  yield typedFrame("opening", "ping", {});
  for (const text of split(textOf(job))) {
    yield typedFrame("delta", "content_block_delta", { index: 0, delta: { type: "text_delta", text } });
  }
  yield typedFrame("closing", "content_block_stop", { index: 0 });
  const delta = { stop_reason: stopReason(job), stop_sequence: null };
  yield typedFrame("closing", "message_delta", { delta, usage: messageUsage(job, job.completionTokens) });
  yield typedFrame("closing", "message_stop", {});
}

function messageOf(job: Job, content: readonly unknown[], outputTokens: number) {
  return {
    id: `msg_sim_${job.id}`,
    type: "message",
    role: "assistant",
    model: job.model,
    content,
    stop_reason: null,
    stop_sequence: null,
    usage: messageUsage(job, outputTokens),
  };
}

function messageUsage({ input }: Job, outputTokens: number) {
  return {
    input_tokens: input.promptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
  };
}

function textOf({ completions }: Job): string {
  return completions[0]?.text ?? "";
}

function stopReason({ completions }: Job): "max_tokens" | "end_turn" {
  return completions[0]?.isCut === true ? "max_tokens" : "end_turn";
}
