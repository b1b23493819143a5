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
