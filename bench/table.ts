/** Rows of text as aligned columns, the last one to the left; a figure that was not measured shows as a dash. */
export function tableOf(rows: readonly Record<string, string>[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => (row[column] ?? "").replaceAll("NaN", "-")))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  return cells
    .map((row) =>
      row.map((cell, index) => (index === row.length - 1 ? cell : cell.padStart(widths[index] ?? 0))).join("  "),
    )
    .join("\n");
}
