/**
 * Finds places in JSON text that `JSON.parse` has accepted, so that a value can be written there without touching the
 * rest. Of members with the same name the last counts, as it does for the parser.
 */

/** Indexes in the text: from the value's first character to the one after its last. */
export type Span = { start: number; end: number };

const LITERAL = /[^\s,\]}]*/y;
const SPACE = /[ \t\r\n]*/y;

/** The value at a path of member names, or null where one of them is missing or holds no object on the way. */
export function spanAt(json: string, path: readonly string[]): Span | null {
  let span: Span | null = valueAt(json, skip(SPACE, json, 0));
  for (const name of path) {
    if (span === null || json[span.start] !== "{") return null;
    span = memberOf(json, span.start, name);
  }
  return span;
}

/** Index of the quote that ends the string whose content starts at `from`; the text's length if it is not there. */
export function stringEnd(json: string, from: number): number {
  let end = json.indexOf('"', from);
  while (end !== -1 && isEscaped(json, end, from)) end = json.indexOf('"', end + 1);
  return end === -1 ? json.length : end;
}

function isEscaped(json: string, at: number, from: number): boolean {
  let first = at;
  while (first > from && json[first - 1] === "\\") first--;
  return (at - first) % 2 === 1;
}

function memberOf(json: string, open: number, name: string): Span | null {
  let found: Span | null = null;
  let at = skip(SPACE, json, open + 1);
  while (json[at] === '"') {
    const key = valueAt(json, at);
    const colon = skip(SPACE, json, key.end);
    const value = valueAt(json, skip(SPACE, json, colon + 1));
    if (JSON.parse(json.slice(key.start, key.end)) === name) found = value;
    const comma = skip(SPACE, json, value.end);
    at = json[comma] === "," ? skip(SPACE, json, comma + 1) : comma;
  }
  return found;
}

function valueAt(json: string, start: number): Span {
  const first = json[start];
  if (first === '"') return { start, end: stringEnd(json, start + 1) + 1 };
  if (first !== "{" && first !== "[") return { start, end: skip(LITERAL, json, start) };
  let depth = 0;
  let at = start;
  do {
    const char = json[at];
    if (char === '"') at = stringEnd(json, at + 1);
    else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") depth--;
    at++;
  } while (depth > 0 && at < json.length);
  return { start, end: at };
}

function skip(what: RegExp, json: string, from: number): number {
  what.lastIndex = from;
  what.test(json);
  return what.lastIndex;
}
