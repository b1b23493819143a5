/**
 * Cleans untrusted text for the terminal. A control character in the text of a model or server could move the cursor, rewrite the
 * screen or forge a line of this program.
 */
import { stripVTControlCharacters } from "node:util";

/** Longest text that is shown, UTF-16 units. */
const TEXT_CHARS_MAX = 500;

/**
 * Controls, format characters (bidi overrides among them), lone surrogates, private and unassigned code points, and variation selectors,
 * after which terminals differ in the width of a character.
 */
const UNPRINTABLE = /[\p{C}\u{fe00}-\u{fe0f}\u{e0100}-\u{e01ef}]/gu;
const SPACE = /[\s\u{85}\u{2028}\u{2029}]+/gu;

/** The text as one line of at most 500 characters, without escape sequences and other unprintable characters. */
export function printable(text: string): string {
  const start = stripVTControlCharacters(text.slice(0, TEXT_CHARS_MAX));
  return start.replace(SPACE, " ").replace(UNPRINTABLE, "").trim();
}

/** A file name, quoted for a shell if necessary. */
export function shellWord(name: string): string {
  const shown = printable(name);
  return /^[\w./@%+:,-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}
