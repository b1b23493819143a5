/** The JSON in a model's answer: alone, in a fenced block, or between words. */
import { ANSWER_JSON_CHARS_MAX, ANSWER_JSON_DEPTH_MAX } from "../../limits.ts";

/** The JSON value of an answer; undefined if it has none, or one too long or too deeply nested to be compared. */
export function jsonInAnswer(text: string): unknown {
  if (text.length > ANSWER_JSON_CHARS_MAX) return undefined;
  for (const candidate of candidatesIn(text.trim())) {
    const value = parsed(candidate);
    if (value !== undefined) return nestsTooDeep(value) ? undefined : value;
  }
  return undefined;
}

function* candidatesIn(text: string): Generator<string> {
  yield text;
  const fence = text.indexOf("```");
  if (fence >= 0) {
    const from = text.indexOf("\n", fence);
    const to = text.indexOf("```", fence + 3);
    if (from >= 0 && to > from) yield text.slice(from + 1, to);
  }
  const from = text.search(/[[{]/);
  const to = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]"));
  if (from >= 0 && to > from) yield text.slice(from, to + 1);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Without recursion: an answer may nest deeper than the stack. */
function nestsTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= ANSWER_JSON_DEPTH_MAX; depth++) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}

/** The value at a path of member names and indexes, `a.b.0`; undefined if there is none. */
export function valueAt(value: unknown, path: string): unknown {
  let at: unknown = value;
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
