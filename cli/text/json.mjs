/** Reads untrusted JSON. */

/**
 * The value; undefined if the text is not JSON.
 * @param {string} text
 * @returns {unknown}
 */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A member of a value; undefined if the value is not an object or has no such member of its own.
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown}
 */
export function memberOf(value, name) {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * A member that is a string; otherwise null.
 * @param {unknown} value
 * @param {string} name
 */
export function textOf(value, name) {
  const member = memberOf(value, name);
  return typeof member === "string" ? member : null;
}

/**
 * JSON without any character that ends a line: Python's `splitlines()` also splits at U+0085, U+2028 and U+2029.
 * @param {unknown} value
 */
export function jsonLine(value) {
  return JSON.stringify(value).replace(
    /[\u0085\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
