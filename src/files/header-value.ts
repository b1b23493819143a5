/** Parses header values with parameters, as in forms: `form-data; name="file"; filename="a.jsonl"`. */

/** A value and its parameters, names in lower case. Of a repeated parameter the first one counts. */
export type HeaderValue = { value: string; parameters: ReadonlyMap<string, string> };

/** A parameter: its name, then a quoted string in which a backslash may escape any character, or plain text. */
const PARAMETER = /;[ \t]*([^\s=;"]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[^])*)"|([^;"]*))/y;

/** Reads parameters up to the first malformed one. */
export function parseHeaderValue(text: string): HeaderValue {
  const valueEnd = text.indexOf(";");
  const parameters = new Map<string, string>();
  if (valueEnd === -1) return { value: text.trim().toLowerCase(), parameters };
  PARAMETER.lastIndex = valueEnd;
  for (let match = PARAMETER.exec(text); match !== null; match = PARAMETER.exec(text)) {
    const [, name = "", quoted, plain = ""] = match;
    const key = name.toLowerCase();
    if (!parameters.has(key)) parameters.set(key, quoted === undefined ? plain.trim() : unescapeQuoted(quoted));
    PARAMETER.lastIndex += text.slice(PARAMETER.lastIndex).search(/;|$/);
  }
  return { value: text.slice(0, valueEnd).trim().toLowerCase(), parameters };
}

/** Senders that escape do so for quotes and backslashes only; any other backslash is part of a path. */
function unescapeQuoted(text: string): string {
  return text.replace(/\\(["\\])/g, "$1");
}

/** The text of an extended parameter (`UTF-8'en'na%C3%AFve`); null if it is malformed or not UTF-8. */
export function decodeExtended(text: string): string | null {
  const [, encoded] = /^utf-8'[^']*'(.*)$/is.exec(text) ?? [];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}
