/** Reads an OpenAI-style chat completion. */
import type { Usage } from "../call.ts";
import { isRecord } from "./record.ts";
import { readUsage } from "./usage.ts";

/** What an answer holds, or in what it is no answer, as words that follow "answered 200". */
export type AnswerRead =
  | { ok: true; text: string; model: unknown; finishReason: unknown; usage: Usage | null }
  | { ok: false; fault: string };

/** Reads a parsed body that reports no error. */
export function readCompletion(json: unknown): AnswerRead {
  const choices = isRecord(json) ? json["choices"] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = isRecord(choice) ? choice["message"] : undefined;
  if (!isRecord(json) || !isRecord(choice) || !isRecord(message)) {
    return { ok: false, fault: "without choices[0].message: not a chat completion" };
  }
  const text = messageText(message);
  if (text === null) return { ok: false, fault: "with a choices[0].message.content that is not text" };
  const { model, usage } = json;
  return { ok: true, text, model, finishReason: choice["finish_reason"], usage: readUsage(usage) };
}

/** The text of a message: its content, the text parts of it, a refusal's words, or nothing beside tool calls. */
function messageText(message: Record<string, unknown>): string | null {
  const { content, refusal } = message;
  if (typeof content === "string" && content !== "") return content;
  if (Array.isArray(content)) return content.map(partText).join("");
  if (content != null && content !== "") return null;
  return typeof refusal === "string" ? refusal : "";
}

function partText(part: unknown): string {
  if (!isRecord(part)) return "";
  return typeof part["text"] === "string" ? part["text"] : "";
}
