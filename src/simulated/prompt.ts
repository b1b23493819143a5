/** Finds the prompt in a request: in a conversation, or in texts and token ids. */
import { isRecord } from "../json/record.ts";
import { tokensOf } from "./text.ts";

/** The text of the user's last message; empty if there is none. */
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

export type Inputs = { texts: readonly string[]; tokens: number };

/** Most texts of one request, as in OpenAI's API: each gets an answer of its own. */
const TEXTS_MAX = 2_048;

export const TEXTS_EXPECTED = `a string, an array of at most ${TEXTS_MAX} strings, or token ids`;

/** Null for any other value. Token ids are read as a text of their numbers, and count as many tokens as there are ids. */
export function textsIn(value: unknown): Inputs | null {
  if (typeof value === "string") return { texts: [value], tokens: tokensOf([value]) };
  if (!Array.isArray(value) || value.length === 0) return null;
  if (isTokenIds(value)) return { texts: [value.join(" ")], tokens: value.length };
  if (value.length > TEXTS_MAX) return null;
  const texts: string[] = [];
  let tokens = 0;
  for (const entry of value as readonly unknown[]) {
    if (typeof entry === "string") {
      texts.push(entry);
      tokens += tokensOf([entry]);
    } else if (Array.isArray(entry) && isTokenIds(entry)) {
      texts.push(entry.join(" "));
      tokens += entry.length;
    } else {
      return null;
    }
  }
  return { texts, tokens };
}

function isTokenIds(value: readonly unknown[]): boolean {
  return value.length > 0 && value.every((id) => typeof id === "number");
}
