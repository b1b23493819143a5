/** The forms in which a provider can quote a key, and a reader that finds it in any of them. */

const hexOf = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, "0");

/** Each form of a key in JSON text; whoever reads the JSON, or JSON inside of it, has the key. */
export const FORMS: Record<string, (key: string) => string> = {
  plain: (key) => key,
  "one escape": (key) => `${key.slice(0, 1)}\\u${hexOf(key[1] ?? "")}${key.slice(2)}`,
  "all escaped": (key) => Array.from(key, (character) => `\\u${hexOf(character)}`).join(""),
  "capital digits": (key) => Array.from(key, (character) => `\\u${hexOf(character).toUpperCase()}`).join(""),
  "JSON in JSON": (key) => Array.from(key, (character) => `\\\\u${hexOf(character)}`).join(""),
};

/** Whether a text has the key, in plain or in any depth of JSON escapes. */
export function quotesKey(text: string, key: string): boolean {
  const unescaped = text
    .replace(/\\+u00([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\+\//g, "/");
  return text.includes(key) || unescaped.includes(key);
}
