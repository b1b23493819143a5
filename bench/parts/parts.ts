/** Runs the parts of a bench one after another, shows their tables, and writes the figures of all of them to one file. */
import { machine, writeResult } from "../results.ts";
import { tableOf } from "../table.ts";
import { shownRow, type Part } from "./row.ts";

/**
 * Measures the parts that `only` names, separated by commas; all of them if it is empty. The exit status becomes 1 if a promise of
 * exactness does not hold. Throws if there is no part of a name.
 */
export async function runParts(
  parts: Readonly<Record<string, () => Promise<Part>>>,
  { only, file }: { only: string; file: string },
): Promise<void> {
  const rows: Part["rows"] = [];
  for (const name of only === "" ? Object.keys(parts) : only.split(",")) {
    const measure = parts[name];
    if (measure === undefined) throw new Error(`--only: expected some of ${Object.keys(parts).join(", ")}`);
    console.error(name);
    const part = await measure();
    console.log(`${name}\n${tableOf(part.rows.map(shownRow))}\n${part.faults.join("\n")}`);
    rows.push(...part.rows);
  }
  console.log(`figures: ${writeResult(file, JSON.stringify({ machine: machine(), rows }, null, 2))}`);
  process.exitCode = rows.some(({ met, exact }) => exact && met === false) ? 1 : 0;
}
