/** Reads untrusted JSON. */

/** The value; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member of a value; undefined if the value is not an object or has no such member of its own. */
export function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A member that is a string; otherwise null. */
export function textOf(value: unknown, name: string): string | null {
  const member = memberOf(value, name);
  return typeof member === "string" ? member : null;
}

/** JSON without any character that ends a line: Python's `splitlines()` also splits at U+0085, U+2028 and U+2029. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u0085\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
