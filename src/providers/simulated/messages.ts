/** Anthropic's messages, as the simulated upstream reads and writes them. */
import { tryParse } from "../../text/json/parse.ts";
import { contentText, turnsIn } from "./conversation.ts";
import { messagesFormat } from "./format.ts";
import {
  anthropicError,
  callIdOf,
  capIn,
  conversationInput,
  type Job,
  type Protocol,
  type Read,
  type ToolCall,
} from "./protocol.ts";
import { type Frame, typedFrame } from "./stream.ts";

export const messages: Protocol = { read, document, frames, error: anthropicError };

/** Output tokens that the first event of a stream reports, as in Anthropic's API: the count at the start, not a total. */
const OUTPUT_TOKENS_AT_START = 1;

function read(request: Job["request"]): Read {
  const { messages, system, max_tokens: cap } = request;
  if (!Array.isArray(messages)) return { ok: false, message: "messages: Field required" };
  const [instructions, format, capTokens] = [contentText(system), messagesFormat(request), capIn(cap)];
  return conversationInput(request, turnsIn(messages), { instructions, format, capTokens, choices: 1 });
}

function document(job: Job): unknown {
  const { call } = job;
  const text = { type: "text", text: textOf(job), citations: null };
  // Arguments that were cut are no JSON; their block has none.
  const content = call === null ? text : { ...callBlock(job, call), input: tryParse(textOf(job)) ?? {} };
  return { ...messageOf(job, [content], job.completionTokens), stop_reason: stopReason(job) };
}

function* frames(job: Job, split: (text: string) => readonly string[]): Generator<Frame> {
  yield typedFrame("opening", "message_start", { message: messageOf(job, [], OUTPUT_TOKENS_AT_START) });
  const { call } = job;
  const block = call === null ? { type: "text", text: "", citations: null } : callBlock(job, call);
  yield typedFrame("opening", "content_block_start", { index: 0, content_block: block });
  yield typedFrame("opening", "ping", {});
  for (const text of split(textOf(job))) {
    const delta = call === null ? { type: "text_delta", text } : { type: "input_json_delta", partial_json: text };
    yield typedFrame("delta", "content_block_delta", { index: 0, delta });
  }
  yield typedFrame("closing", "content_block_stop", { index: 0 });
  const delta = { stop_reason: stopReason(job), stop_sequence: null };
  yield typedFrame("closing", "message_delta", { delta, usage: messageUsage(job, job.completionTokens) });
  yield typedFrame("closing", "message_stop", {});
}

function callBlock(job: Job, call: ToolCall) {
  return { type: "tool_use", id: callIdOf(job, call, 0), name: call.name, input: {} };
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

function stopReason({ completions, call }: Job): "max_tokens" | "tool_use" | "end_turn" {
  if (completions[0]?.isCut === true) return "max_tokens";
  return call === null ? "end_turn" : "tool_use";
}
