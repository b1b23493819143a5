/** Reads the tables of a Markdown page. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./page.ts";

/** The rows, cell by cell, of all tables on the page whose header begins with `first`. */
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

/** The texts between backticks in a cell. */
export function codesIn(cell: string | undefined): string[] {
  return [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}
