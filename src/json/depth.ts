/**
 * The nesting of a JSON text, measured before it is parsed: one pass, so that a hostile body costs neither the parser's
 * memory nor the stack of code that walks the value. It finds no faults; the parser does.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, closingQuote, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./grammar.ts";

/** The index of the first bracket that opens a level below `levelsMax`; null if there is none. */
export function tooDeepAt(bytes: Uint8Array, levelsMax: number): number | null {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = closingQuote(bytes, at + 1);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        if (depth > levelsMax) return at;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
    }
  }
  return null;
}
