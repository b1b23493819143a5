/** The tools that a model asks for in its message. */
import type { AskedCall } from "../../call.ts";
import { TOOL_CALL_ID_CHARS_MAX, TOOL_TALK_BYTES_MAX } from "../../limits.ts";

/**
 * The calls of a message of the chat form, given as JSON text. Undefined if it asks for what is no call of a function, or if it is too
 * long to be answered.
 */
export function askedCalls(message: string | undefined): AskedCall[] | undefined {
  if (message === undefined || !message.includes('"tool_calls"')) return [];
  if (message.length > TOOL_TALK_BYTES_MAX) return undefined;
  const listed = listedCalls(message);
  if (!Array.isArray(listed)) return [];
  const calls = listed.map(callOf);
  return calls.every((call) => call !== null) ? calls : undefined;
}

function listedCalls(message: string): unknown {
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === "object" && value !== null && "tool_calls" in value ? value.tool_calls : null;
  } catch {
    return null;
  }
}

function callOf(listed: unknown): AskedCall | null {
  if (typeof listed !== "object" || listed === null || !("id" in listed) || !("function" in listed)) return null;
  const { id, function: called } = listed;
  if (typeof id !== "string" || id.length > TOOL_CALL_ID_CHARS_MAX) return null;
  if (typeof called !== "object" || called === null || !("name" in called)) return null;
  const { name } = called;
  const written = "arguments" in called ? called.arguments : "";
  return typeof name === "string" && typeof written === "string" ? { id, name, arguments: written } : null;
}
