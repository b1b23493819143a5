/** Reads JSON that others wrote: nothing is taken for granted. */

/**
 * The value; undefined where the text is no JSON, which has no undefined of its own.
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
 * A member of what may be an object; undefined where it is none or has none of its own.
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown}
 */
export function memberOf(value, name) {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * A member that is text; null where it is not.
 * @param {unknown} value
 * @param {string} name
 */
export function textOf(value, name) {
  const member = memberOf(value, name);
  return typeof member === "string" ? member : null;
}

/**
 * JSON on one line for every reader: Python's `splitlines()` ends one at U+0085, U+2028 and U+2029, too.
 * @param {unknown} value
 */
export function jsonLine(value) {
  return JSON.stringify(value).replace(
    /[\u0085\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
