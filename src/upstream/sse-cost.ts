/** Writes a cost into the usage object of one event; every other byte of the event stays as it is. */
import { spanAt } from "./sse-json.ts";
import { fieldsOf } from "./sse-text.ts";

/** Fatal, because a place in a text whose broken characters were replaced is no place in the bytes. */
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The event with `"cost"` in the object at `path` of its data: added at the object's end, or in the place of a null.
 * The same bytes where a cost is already there, the object is missing or empty, or the event is not UTF-8. The data
 * must be JSON that parses.
 */
export function withCost(event: Uint8Array, path: readonly string[], costUsd: number): Uint8Array {
  const text = decoded(event);
  if (text === null || !Number.isFinite(costUsd)) return event;
  const { data } = fieldsOf(text);
  const usage = data === null ? null : spanAt(data, path);
  if (data === null || usage === null || data[usage.start] !== "{") return event;
  const cost = spanAt(data, [...path, "cost"]);
  if (cost !== null) {
    if (data.slice(cost.start, cost.end) !== "null") return event;
    return spliced(event, text, { ...cost, insert: JSON.stringify(costUsd) });
  }
  const close = usage.end - 1;
  if (data.slice(usage.start + 1, close).trim() === "") return event;
  return spliced(event, text, { start: close, end: close, insert: `,"cost":${JSON.stringify(costUsd)}` });
}

function decoded(event: Uint8Array): string | null {
  try {
    return strict.decode(event);
  } catch {
    return null;
  }
}

function spliced(event: Uint8Array, text: string, edit: { start: number; end: number; insert: string }): Uint8Array {
  const startByte = encoder.encode(text.slice(0, edit.start)).length;
  const endByte = startByte + encoder.encode(text.slice(edit.start, edit.end)).length;
  const insert = encoder.encode(edit.insert);
  const whole = new Uint8Array(event.length + insert.length - (endByte - startByte));
  whole.set(event.subarray(0, startByte));
  whole.set(insert, startByte);
  whole.set(event.subarray(endByte), startByte + insert.length);
  return whole;
}
