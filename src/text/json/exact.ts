/** JSON whose numbers keep their digits: JavaScript holds integers up to 2^53 and about 17 digits of others. */

declare global {
  // The standard has these; TypeScript's library does not yet.
  interface JSON {
    /** A value that `JSON.stringify` writes as this text, which is that of a number, a text, true, false or null. */
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/** Digits from which on a number may lose some. */
const LONG_NUMBER = /[\d.]{16}/;

/**
 * The value of a JSON text, in which a number that would lose digits stands for itself: `JSON.stringify` writes it as it came.
 * Undefined if the text is no JSON.
 */
export function tryParseExact(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

/** The same; throws if the text is no JSON. */
export function parseExact(text: string): unknown {
  return mayLoseDigits(text) ? JSON.parse(text, exactNumber) : JSON.parse(text);
}

/** Whether a text may have a number that loses digits: few do. */
export function mayLoseDigits(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/** Whether a value stands for a number with all its digits. */
export function isExactNumber(value: unknown): boolean {
  return typeof value === "object" && JSON.isRawJSON(value);
}

function exactNumber(_name: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined) return value;
  return Number.isSafeInteger(value) || String(value) === source ? value : JSON.rawJSON(source);
}
