/** The tools that a model asks for in its message. */
import type { AskedCall } from "../../call.ts";

/** The calls of a message of the chat form, given as JSON text; undefined if it asks for something that is no call of a function. */
export function askedCalls(message: string | undefined): AskedCall[] | undefined {
  const value: unknown = message === undefined ? null : JSON.parse(message);
  const listed = typeof value === "object" && value !== null && "tool_calls" in value ? value.tool_calls : null;
  if (!Array.isArray(listed)) return [];
  const calls: AskedCall[] = [];
  for (const each of listed) {
    const call = callOf(each);
    if (call === null) return undefined;
    calls.push(call);
  }
  return calls;
}

function callOf(listed: unknown): AskedCall | null {
  if (typeof listed !== "object" || listed === null || !("id" in listed) || !("function" in listed)) return null;
  const { id, function: called } = listed;
  if (typeof id !== "string" || typeof called !== "object" || called === null || !("name" in called)) return null;
  const { name } = called;
  const written = "arguments" in called ? called.arguments : "";
  return typeof name === "string" && typeof written === "string" ? { id, name, arguments: written } : null;
}
