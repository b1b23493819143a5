/** Finds the text in a conversation, which chat completions, Responses and Anthropic messages write nearly alike. */
import { isRecord } from "./record.ts";

/** What the last message of the user says; empty if there is none. */
export function lastUserText(messages: readonly unknown[]): string {
  const last = messages.findLast((message) => isRecord(message) && message["role"] === "user");
  return isRecord(last) ? contentText(last["content"]) : "";
}

/** The text of each message. */
export function messageTexts(messages: readonly unknown[]): string[] {
  return messages.map((message) => (isRecord(message) ? contentText(message["content"]) : ""));
}

/** A content's text: the content itself, or its text parts joined. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map((part) => (isRecord(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}
