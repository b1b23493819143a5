/** Reads an Anthropic message, in the terms of a chat completion. */
import type { Included } from "../../../call.ts";
import type { AnswerRead } from "../response/chat.ts";
import { messageParts } from "./message.ts";
import { readAnthropicUsage } from "../usage/anthropic.ts";
import { isRecord } from "../../../text/json/record.ts";

/** The finish reasons of chat completions, by stop reason; any other stop reason keeps its name. */
const FINISH_REASONS: ReadonlyMap<unknown, string> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

/** Reads a parsed body that reports no error. The text is that of the text blocks, without thinking. */
export function readAnthropicMessage(json: unknown): AnswerRead {
  if (!isRecord(json) || !Array.isArray(json["content"])) {
    return { ok: false, fault: "without a list of content blocks: not an Anthropic message" };
  }
  let text = "";
  const blocks: Record<string, unknown>[] = [];
  for (const [index, block] of json["content"].entries()) {
    if (!isRecord(block)) return { ok: false, fault: `with a content[${index}] that is not a block` };
    blocks.push(block);
    if (block["type"] !== "text") continue;
    if (typeof block["text"] !== "string")
      return { ok: false, fault: `with a content[${index}].text that is not text` };
    text += block["text"];
  }
  const { model, stop_reason: stopReason, stop_details: stopDetails, usage } = json;
  const finishReason = FINISH_REASONS.get(stopReason) ?? stopReason;
  const read = { blocks, text, stopReason, stopDetails };
  const partsIn = (body: string, include: readonly Included[]) => messageParts(body, read, include);
  return { ok: true, text, partsIn, model, finishReason, usage: readAnthropicUsage(usage) };
}
