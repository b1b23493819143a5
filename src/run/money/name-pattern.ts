/** Patterns of models' names in tables of data. They are no regular expressions, so no name can make a look-up slow. */

/** True if a name matches a pattern: `*` at either end matches anything and `#` one digit. One pass over the name at most. */
export function fitsPattern(pattern: string, name: string): boolean {
  const openStart = pattern.startsWith("*");
  const openEnd = pattern.endsWith("*");
  const text = pattern.slice(openStart ? 1 : 0, openEnd ? -1 : undefined);
  if (openStart) return openEnd ? name.includes(text) : name.endsWith(text);
  if (name.length < text.length || (name.length > text.length && !openEnd)) return false;
  return text.includes("#") ? sameButDigits(text, name) : name.startsWith(text);
}

function sameButDigits(text: string, name: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const isSame = text[at] === "#" ? isDigit(name.charCodeAt(at)) : text[at] === name[at];
    if (!isSame) return false;
  }
  return true;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
