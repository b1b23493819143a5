/** Text for terminals: tables, and the figures in them. One look for all commands. */
import { durationText, usdText } from "../batch/progress.mjs";
import { printable } from "./printable.mjs";

/**
 * Rows in columns as wide as their widest cell; numbers to the right.
 * @param {readonly string[]} header
 * @param {readonly (readonly (string | number | null)[])[]} rows
 */
export function tableText(header, rows) {
  const cells = [header, ...rows.map((row) => row.map((cell) => printable(String(cell ?? "–"))))];
  const widths = header.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? "").length)));
  const isNumber = header.map(
    (_, at) => rows.length > 0 && rows.every((row) => /^(–|<?\$)?[\d,.]*[%sm]?$/.test(String(row[at] ?? "–"))),
  );
  const line = (/** @type {readonly string[]} */ row) =>
    row
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return `${cells.map(line).join("\n")}\n`;
}

/** "$0.0012 · 4s". @param {number} usd @param {number} startedAtMs */
export function costAndTime(usd, startedAtMs) {
  return `${usdText(usd)} · ${durationText(Date.now() - startedAtMs)}`;
}

/** The member of an answer at a path, as a number; 0 if there is none. @param {unknown} value @param {...string} path */
export function numberAt(value, ...path) {
  const found = at(value, path);
  return typeof found === "number" ? found : 0;
}

/** The sum of the numbers in an object by its path; 0 if there are none. @param {unknown} value @param {...string} path */
export function sumAt(value, ...path) {
  const found = at(value, path);
  if (typeof found !== "object" || found === null) return 0;
  return Object.values(found).reduce((sum, each) => sum + (typeof each === "number" ? each : 0), 0);
}

/** The same as a text; "" if there is none. @param {unknown} value @param {...string} path */
export function textAt(value, ...path) {
  const found = at(value, path);
  return typeof found === "string" ? found : "";
}

/** @param {unknown} value @param {string[]} path @returns {unknown} */
function at(value, path) {
  return path.reduce((/** @type {unknown} */ inner, name) => {
    if (inner === null || typeof inner !== "object" || !Object.hasOwn(inner, name)) return undefined;
    return Object.entries(inner).find(([key]) => key === name)?.[1];
  }, value);
}

/** The elements of a member that is a list. @param {unknown} value @param {...string} path @returns {unknown[]} */
export function listAt(value, ...path) {
  const found = at(value, path);
  return Array.isArray(found) ? found : [];
}
