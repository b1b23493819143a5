/**
 * The shape of a JSON text, measured before it is parsed: one pass, so that a hostile body costs neither the parser's time and
 * memory nor the stack of code that walks the value. It finds no faults; the parser does.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, closingQuote, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./grammar.ts";

/** What of a text is more than its bounds allow, and the index of the byte where it is. */
export type Excess = { of: "levels" | "values"; at: number };

/** How much of each a text may have. */
type Bounds = { levelsMax: number; valuesMax: number };

/**
 * The first bracket that opens a level below `levelsMax`, or the first value beyond `valuesMax`, as far as brackets and commas
 * tell; null if there is neither.
 */
export function excessIn(bytes: Uint8Array, bounds: Bounds): Excess | null {
  return new ShapeScan(bytes, bounds).to(bytes.length);
}

/** The same, with a pause behind each `sliceBytes`: other work of the isolate goes on between them. */
export function* excessInSlices(
  bytes: Uint8Array,
  { sliceBytes, ...bounds }: Bounds & { sliceBytes: number },
): Generator<void, Excess | null, void> {
  const scan = new ShapeScan(bytes, bounds);
  for (let end = sliceBytes; end < bytes.length; end += sliceBytes) {
    const excess = scan.to(end);
    if (excess !== null) return excess;
    yield;
  }
  return scan.to(bytes.length);
}

/** A pass over a text that may stop behind any byte outside of its strings, and go on. */
class ShapeScan {
  readonly #bytes: Uint8Array;
  readonly #bounds: Bounds;
  #at = 0;
  #depth = 0;
  #values = 0;

  constructor(bytes: Uint8Array, bounds: Bounds) {
    this.#bytes = bytes;
    this.#bounds = bounds;
  }

  /** Goes on up to a byte, or to the end of the string that it is in. The first excess; null if there is none so far. */
  to(end: number): Excess | null {
    const bytes = this.#bytes;
    const { levelsMax, valuesMax } = this.#bounds;
    let depth = this.#depth;
    let values = this.#values;
    let at = this.#at;
    for (; at < end; at++) {
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
    this.#at = at;
    this.#depth = depth;
    this.#values = values;
    return null;
  }
}
