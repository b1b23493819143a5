/**
 * Marks for a provider's cache in values that are not read further, such as the schema of a tool. Providers document them at fixed
 * places only; one that looks for them everywhere bills the whole prompt as a write, so the prompt is reserved at that price.
 */
import { closingQuote, COLON, QUOTE, skipSpace } from "../../../text/json/grammar.ts";
import { keyAt } from "../../../text/json/key.ts";
import { kindAt, readObject, type JsonValue } from "../../../text/json/scan.ts";
import { foldCase } from "./field-table.ts";
import { CACHE_MARKS } from "./inner-fields.ts";

const NAMES: ReadonlySet<string> = new Set(Object.keys(CACHE_MARKS));
const SHORTEST = Math.min(...[...NAMES].map((name) => name.length));
/** All letters of the longest name as escapes of 6 bytes. */
const LONGEST_BYTES = 6 * Math.max(...[...NAMES].map((name) => name.length));

/** The longest lifetime of the marks in a value; null = there is none. A name counts in any case, for some servers ignore it. */
export function hiddenMark(bytes: Uint8Array, { start, end }: JsonValue): "5m" | "1h" | null {
  let found: "5m" | null = null;
  for (let at = start; at < end; at++) {
    if (bytes[at] !== QUOTE) continue;
    const opens = at + 1;
    at = closingQuote(bytes, opens);
    const length = at - opens;
    if (length < SHORTEST || length > LONGEST_BYTES) continue;
    const colon = skipSpace(bytes, at + 1);
    if (bytes[colon] !== COLON || !NAMES.has(foldCase(keyAt(bytes, opens, at)))) continue;
    const value = skipSpace(bytes, colon + 1);
    if (kindAt(bytes, value) !== "object") continue;
    if (namesLifetime(bytes, value)) return "1h";
    found = "5m";
  }
  return found;
}

/** Whether a mark names a lifetime that is not the shortest; one with too many fields to read may. */
function namesLifetime(bytes: Uint8Array, start: number): boolean {
  const members = readObject(bytes, start)?.members;
  if (members === undefined) return true;
  return members.some(({ name, kind, start: from, end }) => {
    if (foldCase(name) !== "ttl" || kind === "null") return false;
    return kind !== "text" || keyAt(bytes, from + 1, end - 1) !== "5m";
  });
}
