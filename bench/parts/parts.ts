/** Runs the parts of a bench one after another, shows their tables, and writes the figures of all of them to one file. */
import { machine, writeResult } from "../results.ts";
import { tableOf } from "../table.ts";
import { shownRow, type Part } from "./row.ts";

/**
 * Measures the parts that `only` names; all of them if it names none. The exit status becomes 1 if a promise of exactness does not
 * hold. Throws if there is no part of a name.
 * @param more What the file has beside the rows, once all parts are measured.
 */
export async function runParts(
  parts: Readonly<Record<string, () => Promise<Part>>>,
  { only, file, more = () => ({}) }: { only: readonly string[]; file: string; more?: () => object },
): Promise<void> {
  const unknown = only.filter((name) => parts[name] === undefined);
  if (unknown.length > 0) throw new Error(`no part ${unknown.join(", ")}; there are ${Object.keys(parts).join(", ")}`);
  const rows: Part["rows"] = [];
  const faults: string[] = [];
  for (const [name, measure] of Object.entries(parts)) {
    if (only.length > 0 && !only.includes(name)) continue;
    console.error(name);
    const part = await measure();
    console.log(`${name}\n${tableOf(part.rows.map(shownRow))}\n${part.faults.join("\n")}`);
    rows.push(...part.rows);
    faults.push(...part.faults.map((fault) => `${name}: ${fault}`));
  }
  const result = { at: new Date().toISOString(), machine: machine(), ...more(), rows, faults };
  console.log(`figures: ${writeResult(file, JSON.stringify(result, null, 2))}`);
  process.exitCode = rows.some(({ met, exact }) => exact && met === false) ? 1 : 0;
}

/** The names in a list with commas; none if it is empty. */
export function namesIn(list: string): string[] {
  return list === "" ? [] : list.split(",");
}
