/**
 * The shape of a JSON text, measured before it is parsed: one pass, so that a hostile body costs neither the parser's time and
 * memory nor the stack of code that walks the value. It finds no faults; the parser does.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, closingQuote, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./grammar.ts";

/** What of a text is more than its bounds allow, and the index of the byte where it is. */
export type Excess = { of: "levels" | "values"; at: number };

/**
 * The first bracket that opens a level below `levelsMax`, or the first value beyond `valuesMax`, as far as brackets and commas
 * tell; null if there is neither.
 */
export function excessIn(
  bytes: Uint8Array,
  { levelsMax, valuesMax }: { levelsMax: number; valuesMax: number },
): Excess | null {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = closingQuote(bytes, at + 1);
        break;
      case COMMA:
        values += 1;
        if (values > valuesMax) return { of: "values", at };
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        values += 1;
        if (depth > levelsMax) return { of: "levels", at };
        if (values > valuesMax) return { of: "values", at };
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
    }
  }
  return null;
}
