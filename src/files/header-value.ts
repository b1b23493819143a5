/** Header values with parameters, as forms use them: `form-data; name="file"; filename="a.jsonl"`. */

/** A value and its parameters, names in lower case. Where a parameter is repeated the first one counts. */
export type HeaderValue = { value: string; parameters: ReadonlyMap<string, string> };

/** A parameter: its name, then a quoted string in which a backslash may stand before any character, or plain text. */
const PARAMETER = /;[ \t]*([^\s=;"]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[^])*)"|([^;"]*))/y;

/** Reads as many parameters as are well formed: what follows a broken one is not guessed at. */
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

/** Only quotes and backslashes are escaped by those who escape; a lone backslash is a path's, sent by those who do not. */
function unescapeQuoted(text: string): string {
  return text.replace(/\\(["\\])/g, "$1");
}

/** The text of an extended parameter (`UTF-8'en'na%C3%AFve`); null where it is not one in UTF-8. */
export function decodeExtended(text: string): string | null {
  const [, encoded] = /^utf-8'[^']*'(.*)$/is.exec(text) ?? [];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}
