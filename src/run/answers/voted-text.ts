/** What an answer votes with: its text, or, if it has none, the tools that it calls. */
import type { Answer } from "../../call.ts";
import { jsonInAnswer } from "./answer-json.ts";
import { canonicalJson } from "../../text/schema/canonical.ts";

/**
 * The text that is compared with those of other answers. Calls of tools are equal if their names and arguments are, whatever their
 * ids and the order of keys.
 */
export function votedText({ text, parts }: Pick<Answer, "text" | "parts">): string {
  if (text !== "" || parts?.message === undefined) return text;
  const message = jsonInAnswer(parts.message);
  const calls = typeof message === "object" && message !== null && "tool_calls" in message ? message.tool_calls : null;
  if (!Array.isArray(calls) || calls.length === 0) return text;
  return canonicalJson(calls.map(calledIn));
}

/** A call without its id; a form that is not known is compared whole. */
function calledIn(call: unknown): unknown {
  if (typeof call !== "object" || call === null || !("function" in call)) return call;
  const called = call.function;
  if (typeof called !== "object" || called === null || !("arguments" in called)) return called;
  const { arguments: args } = called;
  return { ...called, arguments: typeof args === "string" ? (jsonInAnswer(args) ?? args) : args };
}
