/** Reads the tables of a page. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./page.ts";

/** The rows below the header that begins with `first`, cell by cell, over all such tables of the page. */
export async function rowsOf(page: string, first: string): Promise<string[][]> {
  const lines = (await readFile(join(ROOT, page), "utf8")).split("\n");
  const rows: string[][] = [];
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith(`| ${first} |`)) continue;
    for (const row of lines.slice(index + 2)) {
      if (!row.startsWith("|")) break;
      rows.push(
        row
          .split(/(?<!\\)\|/)
          .slice(1, -1)
          .map((cell) => cell.trim()),
      );
    }
  }
  return rows;
}

/** What a cell has between backticks. */
export function codesIn(cell: string | undefined): string[] {
  return [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}
