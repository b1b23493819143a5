/**
 * Whether a name matches a pattern in which `*` matches any characters, slashes included. Everything else is literal
 * and case counts. Each literal piece is searched once, left to right, so the time is bounded by the two lengths and no
 * pattern can make it explode, as a regular expression built from input could.
 */
export function matchesPattern(pattern: string, name: string): boolean {
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  if (pieces.length === 1) return name === pattern;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
