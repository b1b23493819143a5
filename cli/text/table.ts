/** Text for terminals: tables, and the figures in them. One look for all commands. */
import { durationText, usdText } from "./amounts.ts";
import { printable } from "./printable.ts";

/** Rows in columns as wide as their widest cell; numbers to the right. */
export function tableText(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const cells = [header, ...rows.map((row) => row.map((cell) => printable(String(cell ?? "–"))))];
  const widths = header.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? "").length)));
  const isNumber = header.map(
    (_, at) => rows.length > 0 && rows.every((row) => /^(–|<?\$)?[\d,.]*[%sm]?$/.test(String(row[at] ?? "–"))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return `${cells.map(line).join("\n")}\n`;
}

/** "$0.0012 · 4s". */
export function costAndTime(usd: number, startedAtMs: number): string {
  return `${usdText(usd)} · ${durationText(Date.now() - startedAtMs)}`;
}

/** The member of an answer at a path, as a number; 0 if there is none. */
export function numberAt(value: unknown, ...path: string[]): number {
  const found = at(value, path);
  return typeof found === "number" ? found : 0;
}

/** The sum of the numbers in an object by its path; 0 if there are none. */
export function sumAt(value: unknown, ...path: string[]): number {
  const found = at(value, path);
  if (typeof found !== "object" || found === null) return 0;
  const values: unknown[] = Object.values(found);
  return values.reduce<number>((sum, each) => sum + (typeof each === "number" ? each : 0), 0);
}

/** The same as a text; "" if there is none. */
export function textAt(value: unknown, ...path: string[]): string {
  const found = at(value, path);
  return typeof found === "string" ? found : "";
}

function at(value: unknown, path: string[]): unknown {
  return path.reduce((inner: unknown, name) => {
    if (inner === null || typeof inner !== "object" || !Object.hasOwn(inner, name)) return undefined;
    return Object.entries(inner).find(([key]) => key === name)?.[1];
  }, value);
}

/** The elements of a member that is a list. */
export function listAt(value: unknown, ...path: string[]): unknown[] {
  const found = at(value, path);
  return Array.isArray(found) ? found : [];
}
